"""Measure how the cost of a step grows: with the length of its run, and with the number of stored sessions.

    python -m bench.growth [--steps 100000] [--sessions 1000,100000] [--postgres 1000,100000] [--plots FOLDER]

In one process, beside a bare durable commit of as many bytes on the same database. Prints medians, and the
CPU of a step; with --plots it writes run-length.svg, session-count.svg and resume.svg. What lies between two
measured points is filled in without waiting for the disk: steps as usual, sessions by copies of real ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import apsw
import msgspec
from msgspec import Struct

from bench.plot import Points, chart
from bench.postgres import cpu_of
from bench.seeded import seed
from bench.timing import milliseconds
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import Store
from interlock.store.sqlite.store import SqliteStore, open_store
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent
from support.postgres_server import PostgresServer

SAMPLE = 200
ROUNDS = 20
QUERY = "needle17 common"
BODY = 3000
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

Lines = dict[str, Points]


class Cost(Struct, frozen=True):
    """What one step costs: medians of a sample, in milliseconds; `server` is PostgreSQL's CPU."""

    advance: float
    bare: float
    rehydrate: float
    cpu: float
    server: float

    def __str__(self) -> str:
        mine = f"{self.advance:9.2f} {self.bare:12.2f} {self.rehydrate:10.2f} {self.cpu:7.2f}"
        return f"{mine} {self.server:16.2f}" if self.server else mine


HEADINGS = "  advance  bare commit  rehydrate     CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="0 for none")
    parser.add_argument("--sessions", default="1000,100000", help="counts on SQLite; empty for none")
    parser.add_argument("--postgres", default="1000,100000", help="counts on PostgreSQL; empty for none")
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    by_length = _by_run_length(options.steps) if options.steps else {}
    by_count: Lines = {}
    with TemporaryDirectory() as name:
        if counts := _counts(options.sessions):
            by_count |= _by_session_count("SQLite", _grown_sqlite(Path(name), counts))
        if counts := _counts(options.postgres):
            by_count |= _by_session_count("PostgreSQL", _grown_postgres(Path(name), counts))
    if options.plots and by_length:
        chart(options.plots / "run-length.svg", "A step, by the length of its run", "steps", by_length)
    if options.plots and by_count:
        steps, searches = (
            {name: points for name, points in by_count.items() if name.startswith(what)}
            for what in ("advance", "resume")
        )
        chart(options.plots / "session-count.svg", "A step, by the number of sessions", "sessions", steps)
        chart(options.plots / "resume.svg", "Finding work by words", "sessions", searches)


def _counts(listed: str) -> list[int]:
    return [int(count) for count in listed.split(",") if count]


def _by_run_length(most: int) -> Lines:
    """Measure a step after 100, 1,000, 10,000 … steps of one run on SQLite."""
    points: dict[str, list[tuple[float, float]]] = {"advance": [], "bare commit": [], "rehydrate": []}
    print(f"{'run length':>20} {HEADINGS}")
    with TemporaryDirectory() as name, _bare_file(Path(name)) as bare:
        store, done, target = open_store(Path(name)), 0, 100
        agent = _agent(Path(name), store)
        while target <= most:
            with _unsynced(store):
                while done < target:
                    agent.ack("notes")
                    done += 1
            cost = _cost(agent, bare)
            done += SAMPLE
            print(f"{target:20,} {cost}", flush=True)
            points["advance"].append((target, cost.advance))
            points["bare commit"].append((target, cost.bare))
            points["rehydrate"].append((target, cost.rehydrate))
            target *= 10
        store.close()
    return dict(points)


class Grown(Struct, frozen=True):
    """A store that holds so many sessions now, with what commits as many bytes bare beside it."""

    count: int
    agent: Agent
    bare: Callable[[], object]
    server: int | None = None


def _by_session_count(kind: str, stores: Iterator[Grown]) -> Lines:
    steps, searches = list[tuple[float, float]](), list[tuple[float, float]]()
    print(f"\n{f'sessions, {kind}':>20} {HEADINGS}{'  CPU, PostgreSQL' * (kind == 'PostgreSQL')}  resume")
    for grown in stores:
        ledger = grown.agent.ledger
        catch_up(ledger.store, ledger.pins)
        resume = median(milliseconds(partial(find, ledger, QUERY)) for _ in range(ROUNDS))
        cost = _cost(grown.agent, grown.bare, grown.server)
        print(f"{grown.count:20,} {cost} {resume:7.2f}", flush=True)
        steps.append((grown.count, cost.advance))
        searches.append((grown.count, resume))
    return {f"advance, {kind}": steps, f"resume, {kind}": searches}


def _cost(agent: Agent, bare: Callable[[], object], server: int | None = None) -> Cost:
    commits = [milliseconds(bare) for _ in range(SAMPLE)]
    own, served = process_time(), cpu_of(server)
    steps = [milliseconds(partial(agent.ack, f"notes of step {number}")) for number in range(SAMPLE)]
    own, served = process_time() - own, cpu_of(server) - served
    here = agent.last
    looks = [milliseconds(lambda: agent.look(here)) for _ in range(ROUNDS)]
    agent.last = here
    return Cost(median(steps), median(commits), median(looks), own * 1000 / SAMPLE, served * 1000 / SAMPLE)


def _agent(folder: Path, store: Store) -> Agent:
    """Return an agent on a run of its own."""
    workflows = folder / "workflows"
    workflows.mkdir(exist_ok=True)
    (workflows / "grown.json").write_bytes(msgspec.json.encode(WORKFLOW))
    ledger = Ledger(store, Keys(folder), Library([Source("configured", workflows)]), Settings())
    agent = Agent(ExecutionSurface(ledger))
    agent.start("bench.grown")
    return agent


def _grown_sqlite(folder: Path, counts: list[int]) -> Iterator[Grown]:
    store = open_store(folder)
    with _bare_file(folder) as bare:
        for count, more in _growth(counts):
            with _unsynced(store):
                seed(store, more)
            yield Grown(count, _agent(folder, store), bare)
    store.close()


def _grown_postgres(folder: Path, counts: list[int]) -> Iterator[Grown]:
    """Fill one server, restarted between filling and measuring: only what is measured waits for the disk."""
    from interlock.store.postgres.connections import connect
    from interlock.store.postgres.database import open_store as open_postgres

    server = PostgresServer(shared_buffers="1GB", max_wal_size="8GB")
    try:
        for count, more in _growth(counts):
            server.start(fsync="off", synchronous_commit="off")
            store = open_postgres(server.url)
            seed(store, more)
            store.close()
            server.execute("ANALYZE")
            server.stop()
            server.start()
            store, connection = open_postgres(server.url), connect(server.url)
            connection.execute("CREATE TABLE IF NOT EXISTS bare (body bytea)")

            def bare(connection: object = connection) -> object:
                return connection.execute("INSERT INTO bare VALUES ($1)", (bytes(BODY),))  # type: ignore[attr-defined]

            yield Grown(count, _agent(folder, store), bare, server.pid)
            store.close()
            connection.close()
            server.stop()
    finally:
        server.remove()


def _growth(counts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield each count, and by how many it is more than the one before."""
    return ((count, count - before) for before, count in zip([0, *counts], counts, strict=False))


@contextmanager
def _unsynced(store: SqliteStore) -> Iterator[None]:
    store._connection.pragma("synchronous", "off")
    yield
    store._connection.pragma("synchronous", "full")


@contextmanager
def _bare_file(folder: Path) -> Iterator[Callable[[], object]]:
    """A commit to a file of its own on the same disk, as durable."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE bare (body BLOB)")
    yield lambda: connection.execute("INSERT INTO bare VALUES (zeroblob(?))", (BODY,))
    connection.close()


if __name__ == "__main__":
    main()
