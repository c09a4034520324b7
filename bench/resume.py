"""How long `resume_session` takes to find work among many stored sessions, some of it not indexed yet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.execution_walk import write_workflow
from bench.figures import Figure
from bench.seeded import seed
from bench.timing import milliseconds
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent

ROUNDS = 25
CHECKOUT = {"repo_root": "/nowhere", "git_branch": "topic/17"}
QUERIES = {
    "two words of a goal": "needle17 common",
    "a word in every goal": "common",
    "words of the newest notes": "newest notes",
    "a workflow's id": "bench.task",
    "the commit": "0000011000000",
    "the branch": "topic/17",
    "words of older notes": "deep17",
    "nothing like it": "zebra quagga",
    "no words": "",
}
MOST = {2000: 3.0, 100_000: 15.0}


def figures(folder: Path, count: int) -> Iterator[Figure]:
    """Yield the time of the quickest and of the slowest kind of query, each after a step elsewhere."""
    folder.mkdir()
    write_workflow(folder / "workflows")
    store = open_store(folder)
    seed(store, count)
    library = Library([Source("configured", folder / "workflows")])
    ledger = Ledger(store, Keys(folder), library, Settings())
    agent = Agent(ExecutionSurface(ledger))
    agent.start("bench.long")
    medians = {}
    for kind, query in QUERIES.items():
        times = list[float]()
        for number in range(ROUNDS):
            agent.ack(f"Step {number}")  # so that the index does not know all
            times.append(milliseconds(partial(find, ledger, query, CHECKOUT)))
        medians[kind] = median(times)
    store.close()
    by_time = sorted(medians, key=lambda kind: medians[kind])
    for kind in (by_time[0], by_time[-1]):
        yield Figure(f"resume, {count:,} sessions, by {kind}, p50", medians[kind], most=MOST.get(count))
