"""The guard's share of a durable advance: the CPU of judging and learning, beside that of the whole call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time
from typing import ParamSpec, TypeVar
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.execution_walk import notes_of, write_workflow
from bench.figures import Figure
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.engine import decide
from interlock.core.guard.audit import learned
from interlock.core.guard.inspection import judge
from interlock.ledger.ledger import Ledger
from interlock.ledger.log import projection
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent

WARM_UP, CALLS = 50, 1000

P = ParamSpec("P")
R = TypeVar("R")


class Timer:
    """How much CPU the functions took that it was put around."""

    spent = 0.0

    def around(self, function: Callable[P, R]) -> Callable[P, R]:
        def timed(*arguments: P.args, **more: P.kwargs) -> R:
            began = thread_time()
            result = function(*arguments, **more)
            self.spent += thread_time() - began
            return result

        return timed


def figures(folder: Path) -> Iterator[Figure]:
    """Yield the share of an advance that the guard takes: before it is written, and with its rows."""
    folder.mkdir()
    write_workflow(folder / "workflows")
    library, store = Library([Source("configured", folder / "workflows")]), open_store(folder)
    agent = Agent(ExecutionSurface(Ledger(store, Keys(folder), library, Settings())))
    agent.start("bench.long", goal="measure")
    for number in range(WARM_UP):
        agent.ack(notes_of(number))
    with timed_guard() as guard:
        began = thread_time()
        for number in range(CALLS):
            agent.ack(notes_of(number))
        spent = thread_time() - began
    store.close()
    yield Figure("the guard's share of a durable advance, CPU", guard.spent / spent * 100, "%", most=5)


@contextmanager
def timed_guard() -> Iterator[Timer]:
    """Time the guard where it is called."""
    timer = Timer()
    with (
        patch.object(decide, "judge", timer.around(judge)),
        patch.object(projection, "learned", timer.around(learned)),
    ):
        yield timer
