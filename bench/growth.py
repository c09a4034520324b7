"""Measure how the cost of a step grows: with the length of its run, and with the number of stored sessions.

    python -m bench.growth [--steps 10000] [--sessions 1000,100000] [--postgres] [--plots docs]

In one process, beside a bare SQLite FULL commit of the same moment. Prints medians, and the CPU of a step;
with --plots it writes run-length.svg and session-count.svg.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import apsw
import msgspec

from bench.plot import chart
from bench.seeded import seed
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent

SAMPLE = 200
LOOPS = 110
WORKFLOW = {
    "id": "bench.grown",
    "name": "Grown",
    "description": "One step, again and again.",
    "version": "1.0.0",
    "steps": [
        {
            "id": f"loop-{number}",
            "type": "loop",
            "title": "Again",
            "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            "body": [{"id": f"once-{number}", "title": "Once", "prompt": "Do it."}],
        }
        for number in range(LOOPS)
    ],
}


class Cost:
    """What one step costs at one point: medians of a sample."""

    def __init__(self, agent: Agent, bare: apsw.Connection) -> None:
        times, commits = list[float](), list[float]()
        began = process_time()
        for number in range(SAMPLE):
            times.append(_taken(lambda number=number: agent.ack(f"notes of step {number}")))
        self.cpu = (process_time() - began) * 1000 / SAMPLE
        for _ in range(SAMPLE):
            commits.append(_taken(lambda: bare.execute("INSERT INTO bare VALUES (zeroblob(3000))")))
        here = agent.last
        self.advance, self.bare = median(times), median(commits)
        self.rehydrate = median(_taken(lambda: agent.look(here)) for _ in range(20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--sessions", default="1000,100000")
    parser.add_argument("--postgres", action="store_true", help="measure session counts on PostgreSQL too")
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    counts = [int(count) for count in options.sessions.split(",") if count]
    lines = {"run": _by_run_length(options.steps) if options.steps else {}}
    lines["sqlite"] = _by_session_count("SQLite", counts)
    if options.postgres:
        lines["postgres"] = _by_session_count("PostgreSQL", counts)
    if options.plots and lines["run"]:
        chart(options.plots / "run-length.svg", "A step, by the length of its run", "steps", lines["run"])
    if options.plots and counts:
        both = {**lines["sqlite"], **lines.get("postgres", {})}
        chart(options.plots / "session-count.svg", "By the number of stored sessions", "sessions", both)


def _by_run_length(most: int) -> dict[str, list[tuple[float, float]]]:
    points: dict[str, list[tuple[float, float]]] = {"advance": [], "bare commit": [], "rehydrate": []}
    print("run length   advance   bare commit   rehydrate   CPU (ms, medians of one process)")
    with TemporaryDirectory() as name, _bare(name) as bare, _store("SQLite", Path(name)) as store:
        agent = _agent(Path(name), store)
        done, target = 0, 10
        while done < most:
            while done < target - SAMPLE // 2:
                agent.ack("notes")
                done += 1
            cost = Cost(agent, bare)
            done += SAMPLE
            _show(f"{target:10,}", cost)
            for line, value in (("advance", cost.advance), ("bare commit", cost.bare)):
                points[line].append((target, value))
            points["rehydrate"].append((target, cost.rehydrate))
            target *= 10
    return points


def _by_session_count(kind: str, counts: list[int]) -> dict[str, list[tuple[float, float]]]:
    points: dict[str, list[tuple[float, float]]] = {f"advance, {kind}": [], f"resume, {kind}": []}
    if not counts:
        return points
    print(f"\nsessions on {kind}   advance   bare commit   rehydrate   CPU   resume by words")
    with TemporaryDirectory() as name, _store(kind, Path(name)) as store, _bare(name) as bare:
        stored = 0
        for count in counts:
            seed(store, count - stored)
            stored = count
            agent = _agent(Path(name), store)
            cost, ledger = Cost(agent, bare), agent.ledger
            find(ledger, "needle17 common")  # the index catches up
            resume = median(_taken(lambda ledger=ledger: find(ledger, "needle17 common")) for _ in range(20))
            _show(f"{count:14,}", cost, f"{resume:8.2f}")
            points[f"advance, {kind}"].append((count, cost.advance))
            points[f"resume, {kind}"].append((count, resume))
    return points


def _show(first: str, cost: Cost, last: str = "") -> None:
    figures = f"{cost.advance:9.2f} {cost.bare:13.2f} {cost.rehydrate:11.2f} {cost.cpu:8.2f}"
    print(f"{first} {figures} {last}", flush=True)


def _taken(action: Any) -> float:
    started = perf_counter()
    action()
    return (perf_counter() - started) * 1000


def _agent(folder: Path, store: Store) -> Agent:
    """Return an agent on a run of its own."""
    workflows = folder / "workflows"
    workflows.mkdir(exist_ok=True)
    (workflows / "grown.json").write_bytes(msgspec.json.encode(WORKFLOW))
    ledger = Ledger(store, Keys(folder), Library([Source("configured", workflows)]), Settings())
    agent = Agent(ExecutionSurface(ledger))
    agent.start("bench.grown")
    return agent


@contextmanager
def _bare(folder: str) -> Iterator[apsw.Connection]:
    """A file of its own on the same disk, committed as durably."""
    connection = apsw.Connection(str(Path(folder) / "bare.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE bare (body BLOB)")
    yield connection
    connection.close()


@contextmanager
def _store(kind: str, folder: Path) -> Iterator[Store]:
    if kind == "SQLite":
        store: Store = open_store(folder)
        yield store
        store.close()
        return
    from interlock.store.postgres.database import open_store as open_postgres
    from support.postgres_server import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        store = open_postgres(server.url)
        yield store
        store.close()
    finally:
        server.remove()


if __name__ == "__main__":
    main()
