"""The guard over a whole log: every command judged again, from the first event on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.guard.audit import Audit, learned
from interlock.core.guard.hearing import Violation
from interlock.core.guard.inspection import inspect
from interlock.core.run import events as e
from interlock.ledger.log.chain import Entry, entries_of
from interlock.ledger.log.records import AdvanceRecorded, NodeCreated
from interlock.store.protocol import CommitRow


class Judged(Struct, frozen=True):
    """A command that breaks a promise, by its first event."""

    event: int
    violation: Violation

    @property
    def text(self) -> str:
        """The violation in a line."""
        return f"event {self.event}: {self.violation.text}"


def violations(commits: Iterable[CommitRow], plan_of: Callable[[str], Plan | None]) -> Iterator[Judged]:
    """Yield the commands of a session that break a promise; a run whose workflow is lost is not judged."""
    log = _Log(plan_of)
    for row in commits:
        for violation in log.judge(entries_of(row)):
            yield Judged(row.first, violation)


class _Log:
    """What is known of a session while its commits are read: what the guard has learned at each node."""

    def __init__(self, plan_of: Callable[[str], Plan | None]) -> None:
        self._plan_of = plan_of
        self._plans: dict[int, Plan | None] = {}
        self._audits: dict[int, Audit] = {}
        self._abandoned: set[int] = set()

    def judge(self, entries: Sequence[Entry]) -> Iterator[Violation]:
        """Judge the events of one command: those that lead to a node, those at one, those of an attempt."""
        held: dict[int | None, list[e.Event]] = {}
        for entry in entries:
            match entry.event:
                case NodeCreated(node=node, parent=parent):
                    before = Audit() if parent is None else self._audits[parent]
                    self._audits[node] = yield from self._judged(entry.run, before, held.pop(node, []))
                case AdvanceRecorded(node=node, child=None):
                    yield from self._judged(entry.run, self._audits[node], held.pop(None, []))
                case e.RunEvent() as event if entry.node in self._audits:
                    at = self._audits[entry.node]
                    self._audits[entry.node] = yield from self._judged(entry.run, at, [event])
                case e.RunEvent() as event:
                    if isinstance(event, e.RunStarted) and entry.run is not None:
                        self._plans[entry.run] = self._plan_of(event.workflow_hash)
                    held.setdefault(entry.node, []).append(event)
                case _:
                    continue

    def _judged(
        self, run: int | None, audit: Audit, events: Sequence[e.Event]
    ) -> Generator[Violation, None, Audit]:
        """Yield what the events break, and return what the guard knows after them."""
        plan = self._plans.get(run) if run is not None else None
        if events and run in self._abandoned:
            yield Violation("I7", f"run {run} was abandoned on all its branches")
        elif plan is not None and (violation := inspect(plan, audit, events)) is not None:
            yield violation
        if any(isinstance(event, e.RunAbandoned) for event in events) and run is not None:
            self._abandoned.add(run)
        return learned(audit, events)
