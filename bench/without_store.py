"""The CPU that an advance takes outside the store: tokens, decision, rendering, rows, in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import msgspec

from bench.execution_walk import notes_of, write_workflow
from bench.figures import Figure
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import LoadedRows
from interlock.surfaces.call import Call, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool
from support.harness import Agent
from support.memory_store import MemoryStore

BATCHES, CALLS, WARM_UP = 50, 20, 5


class TimedStore(MemoryStore):
    """A store in memory that knows how much CPU it took."""

    spent = 0.0

    def load(self, *arguments: Any, **more: Any) -> LoadedRows | None:
        began = thread_time()
        loaded = super().load(*arguments, **more)
        self.spent += thread_time() - began
        return loaded

    def append(self, *changes: Any) -> None:
        began = thread_time()
        super().append(*changes)
        self.spent += thread_time() - began


def figures(folder: Path) -> Iterator[Figure]:
    """Yield the CPU of an advance, without the store's.

    Every batch has a store of its own: one in memory looks through all of its rows, and many of them would
    push the code under measurement out of the processor's cache.
    """
    folder.mkdir()
    write_workflow(folder / "workflows")
    library = Library([Source("configured", folder / "workflows")])
    batches = [_batch(folder, library) for _ in range(BATCHES)]
    yield Figure("CPU of an advance without its store", median(batches), most=0.25)


def _batch(folder: Path, library: Library) -> float:
    """Return the milliseconds of an advance, from the arguments of the call to the reply."""
    store: Any = TimedStore(folder)  # it has what a run needs of a store
    agent = Agent(ExecutionSurface(Ledger(store, Keys(folder), library, Settings())))
    agent.start("bench.long", goal="measure")
    for number in range(WARM_UP):
        agent.ack(notes_of(number))
    spent = 0.0
    for number in range(CALLS):
        tokens = {name: agent.last[name] for name in ("stateToken", "ackToken")}
        arguments, store.spent = {**tokens, "output": {"notesMarkdown": notes_of(number)}}, 0.0
        began = thread_time()
        reply = call_tool(agent.surface, "continue_workflow", arguments, Call(agent.client))
        spent += thread_time() - began - store.spent
        assert isinstance(reply, Reply)
        assert isinstance(reply.structured, msgspec.Raw)
        agent.last = msgspec.json.decode(reply.structured)
    return spent * 1000 / CALLS
