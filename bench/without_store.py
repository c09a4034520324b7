"""The CPU that an advance takes outside the store: tokens, decision, rendering, rows, in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.execution_walk import notes_of, write_workflow
from bench.figures import Figure
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import LoadedRows
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent
from support.memory_store import MemoryStore

BATCHES, CALLS, WARM_UP = 50, 20, 100


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
    """Yield the CPU of an advance, without the store's."""
    folder.mkdir()
    write_workflow(folder / "workflows")
    store = TimedStore(folder)
    library = Library([Source("configured", folder / "workflows")])
    agent = Agent(ExecutionSurface(Ledger(store, Keys(folder), library, Settings())))
    agent.start("bench.long", goal="measure")
    for number in range(WARM_UP):
        agent.ack(notes_of(number))
    batches = list[float]()
    for _ in range(BATCHES):
        store.spent, began = 0.0, thread_time()
        for number in range(CALLS):
            agent.ack(notes_of(number))
        batches.append((thread_time() - began - store.spent) * 1000 / CALLS)
    yield Figure("CPU of an advance without its store", median(batches), most=0.25)
