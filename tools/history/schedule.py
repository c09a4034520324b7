"""The same clients on the store in memory, one at a time, in an order that a seed decides.

A client stops before each use of the store, and the seed says who goes on. It also says which calls fail
before they are stored, which after it, and which processes die at that moment. So a seed is a failure's name.

    python -m tools.history --seeds 1-200
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Condition, Thread, local
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import msgspec

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import AskedQuestion, answer_question, inbox
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import Changes, LoadedRows, Reader, Store, StoreAway, Writer
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool
from support.harness import compile_cache, gate, steps, workflow
from support.memory_store import DATABASES, MemoryStore
from tools.history.check import Unexplained, unexplained
from tools.history.clients import DecidingClient, Lost, Refused, Result, RivalClient, SharedRun, WalkingClient
from tools.history.model import ModelRun

STEPS = 6
GATE = 3
ITEMS = [*(f"s{number}" for number in range(GATE)), "which", *(f"s{number}" for number in range(GATE, STEPS))]
RIVALS = 2
ACTIONS = 12
FAILS_BEFORE, FAILS_AFTER, DIES = 0.03, 0.03, 0.03


class Scheduler:
    """Lets one of its threads run at a time; the seed says which."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self._changed = Condition()
        self._waiting: dict[str, bool] = {}
        self._own = local()

    def run(self, **clients: Callable[[], None]) -> None:
        """Run clients to their ends, interleaved."""
        failures = list[BaseException]()
        threads = [Thread(target=self._client, args=(name, act, failures)) for name, act in clients.items()]
        self._waiting = dict.fromkeys(clients, False)
        for thread in threads:
            thread.start()
        with self._changed:
            while self._waiting:
                self._changed.wait_for(lambda: all(self._waiting.values()))
                if self._waiting:
                    self._waiting[self.chance.choice(sorted(self._waiting))] = False
                    self._changed.notify_all()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _client(self, name: str, act: Callable[[], None], failures: list[BaseException]) -> None:
        self._own.name = name
        try:
            self.pause()
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            with self._changed:
                del self._waiting[name]
                self._changed.notify_all()

    def pause(self) -> None:
        """Stop until it is this thread's turn."""
        name = getattr(self._own, "name", None)
        if name is None:
            return
        with self._changed:
            self._waiting[name] = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting[name])


class Died(BaseException):
    """The process was killed at this moment."""


class ScheduledStore:
    """A store that stops before each use, and fails as the seed says."""

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self._store, self._scheduler = store, scheduler
        self._is_open = False

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        self._scheduler.pause()
        return self._store.load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        self._scheduler.pause()
        drawn = self._scheduler.chance.random()
        if drawn < FAILS_BEFORE:
            raise StoreAway("The database is away.")
        self._store.append(*changes)
        if drawn > 1 - FAILS_AFTER:
            raise StoreAway("The connection was lost while the call was stored.")
        if drawn > 1 - FAILS_AFTER - DIES:
            raise Died

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        if not self._is_open:
            self._scheduler.pause()
        self._is_open, before = True, self._is_open
        try:
            with self._store.reading() as reader:
                yield reader
        finally:
            self._is_open = before

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        self._scheduler.pause()
        with self._store.writing() as writer:
            yield writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class SimulatedServers:
    """Processes on one store in memory, each with a client of its own."""

    def __init__(self, folder: Path, scheduler: Scheduler) -> None:
        self.folder = folder
        (folder / "workflows").mkdir()
        before, after = steps(*ITEMS[:GATE]), steps(*ITEMS[GATE + 1 :])
        flow = workflow(*before, gate("which", "left", "right"), *after)
        (folder / "workflows" / "flow.json").write_bytes(msgspec.json.encode(flow))
        self._scheduler = scheduler
        self._now = 1_800_000_000_000

    def ledger(self) -> Ledger:
        """Return the ledger of another process."""
        memory: Any = MemoryStore(self.folder)  # it has what a run needs of a store
        store: Any = ScheduledStore(memory, self._scheduler)
        library = Library([Source("configured", self.folder / "workflows")], compile_cache())
        settings = Settings(terms=Terms(decisions="user"))
        return Ledger(store, Keys(self.folder), library, settings, self._clock)

    def _clock(self) -> int:
        self._now += 1
        return self._now

    def send(self) -> Callable[..., Result]:
        """Return what calls tools of a process; one that dies is replaced."""
        surface = ExecutionSurface(self.ledger())

        def send(tool: str, **arguments: Any) -> Result:
            nonlocal surface
            arguments.pop("waitSeconds", None)  # who waits here would wait alone
            try:
                reply = call_tool(surface, tool, arguments, Call(Client("history")))
            except Died:
                surface = ExecutionSurface(self.ledger())
                raise Lost from None
            assert isinstance(reply, Reply)
            raw = reply.structured
            body: Any = msgspec.json.decode(bytes(raw)) if isinstance(raw, msgspec.Raw) else raw
            if reply.is_error and body["retry"]["kind"] == "not_retryable":
                raise Refused(body["code"])
            if reply.is_error:
                raise Lost
            return {"structuredContent": body, "_meta": dict(reply.meta)}

        return send

    def deciding(self, name: str, run: SharedRun) -> DecidingClient:
        """Return a client that decides in a process of its own."""
        ledger = self.ledger()

        def shown(session: str) -> Any:
            return next((each for each in inbox(ledger) if each.session_id == session), None)

        def decide(asked: AskedQuestion) -> bool:
            try:
                answer_question(ledger, asked, "left", "", "inbox")
            except (StoreAway, Died):
                raise Lost from None
            except LedgerError:
                return False
            return True

        return DecidingClient(name, run, shown, decide)

    def notes(self, session: str) -> tuple[str, ...]:
        """Return the notes that a session was advanced with, as its log has them."""
        with MemoryStore(self.folder).reading() as reader:
            events = [entry.event for row in reader.commits(session) for entry in entries_of(row)]
        return tuple(event.notes for event in events if isinstance(event, OutputAppended))


def simulated(seed: int) -> SharedRun:
    """Let clients share one run in the order that a seed decides, and return what they recorded."""
    with TemporaryDirectory() as name:
        folder, scheduler = Path(name), Scheduler(seed)
        try:
            servers, run = SimulatedServers(folder, scheduler), SharedRun(f"run-{seed:08}", ITEMS, GATE)
            walker = WalkingClient("walker", run, servers.send(), scheduler.chance)
            rivals = [
                RivalClient(f"rival{number}", run, servers.send(), scheduler.chance)
                for number in range(RIVALS)
            ]
            deciding = [servers.deciding(f"person{number}", run) for number in range(2)]

            def again(act: Callable[[], None], most: int) -> Callable[[], None]:
                def repeated() -> None:
                    for _ in range(most):
                        act()
                        scheduler.pause()

                return repeated

            def until_over(act: Callable[[], None]) -> Callable[[], None]:
                def repeated() -> None:
                    while not run.is_over:
                        act()
                        scheduler.pause()

                return repeated

            scheduler.run(
                walker=walker.walk,
                **{rival.name: again(rival.act, ACTIONS) for rival in rivals},
                **{person.name: until_over(person.act) for person in deciding},
            )
            number = run.history.invoke("log", "log")
            run.history.answered(number, *servers.notes(run.session))
        finally:
            DATABASES.pop(folder, None)
    return run


def checked(seed: int) -> Unexplained | None:
    """Simulate a seed and return why no sequential history explains it, if none does."""
    return unexplained(simulated(seed).history.calls, ModelRun(GATE))
