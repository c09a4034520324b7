"""Checks that are running, each in a thread of its own: the calls that wait for one come back and ask.

A call that no longer asks has lost its client, and what it waited for is ended.
"""

from __future__ import annotations

import time
from _thread import RLock  # `threading` would slow down the start of every stdio server
from collections.abc import Callable, Hashable

from interlock.core.run.events import CheckRan

LEASE_SECONDS = 5.0
MOST_RUNNING = 8
MOST_KEPT = 64
END_SECONDS = 3.0

Work = Callable[[Callable[[], bool]], CheckRan]


class Job:
    """One run of a check; `ran` is set when it has ended."""

    def __init__(self, work: Work) -> None:
        import threading

        self._work = work
        self._asked_at = time.monotonic()
        self._is_ended = False
        self._error: Exception | None = None
        self.ran: CheckRan | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ran = self._work(self._is_cancelled)
        except Exception as error:  # whoever asks for the result gets it
            self._error = error

    def _is_cancelled(self) -> bool:
        return self._is_ended or time.monotonic() > self._asked_at + LEASE_SECONDS

    @property
    def is_forgotten(self) -> bool:
        """Whether nobody has asked for it in time."""
        return time.monotonic() > self._asked_at + LEASE_SECONDS

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def ask(self) -> CheckRan | None:
        """Return the result, or nothing while it runs."""
        if self._error is not None:
            raise self._error
        if self.ran is None:
            self._asked_at = time.monotonic()
        return self.ran

    def end(self) -> None:
        """End it, and wait for that a moment."""
        self._is_ended = True
        self._thread.join(END_SECONDS)


class CheckJobs:
    """The checks of one process that are running or whose result nobody has taken yet.

    A result that has passed is kept for a call that must still ask the user, and then comes again.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._jobs: dict[Hashable, Job] = {}
        self.passed: dict[Hashable, CheckRan] = {}

    def result(self, key: Hashable, work: Work, *, may_wait: bool) -> CheckRan | None:
        """Return what came of a check, which the first to ask begins; nothing while it runs.

        Who may wait no longer ends it.
        """
        with self._lock:
            job = self._begun(key, work, may_wait=may_wait)
        if job is None:
            return None
        if not may_wait:
            job.end()
        try:
            ran = job.ask()
        except Exception:
            self._jobs.pop(key, None)
            raise
        if ran is None:
            return None
        with self._lock:
            self._jobs.pop(key, None)
            if ran.passed:
                self.passed = dict([*self.passed.items(), (key, ran)][-MOST_KEPT:])
        return ran

    def _begun(self, key: Hashable, work: Work, *, may_wait: bool) -> Job | None:
        """Return the run of a check, begun now if there is none that somebody asks for."""
        job = self._jobs.get(key)
        if job is not None and not job.is_forgotten:
            return job
        self._jobs = {known: job for known, job in self._jobs.items() if not job.is_forgotten}
        if may_wait and sum(job.is_running for job in self._jobs.values()) >= MOST_RUNNING:
            return None
        self._jobs[key] = Job(work)
        return self._jobs[key]

    def close(self) -> None:
        """End whatever runs."""
        for job in list(self._jobs.values()):
            job.end()
