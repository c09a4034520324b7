"""How long a search takes while 20 clients of the same principal write, beside their own steps.

    python -m bench.search_load [--sessions 1000] [--large 100000] [--seconds 15] [--pause 0.1]

Two replicas on PostgreSQL, then one server on SQLite with few and with many sessions. Needs PostgreSQL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.execution_walk import write_workflow
from bench.figures import HEAD, Figure, show
from bench.http import HttpCaller, Walk
from bench.seeded import seed
from bench.timing import milliseconds, percentile
from interlock.store.postgres import database
from interlock.store.protocol import Store
from interlock.store.sqlite import store as sqlite
from support.console_client import ConsoleClient
from support.http_server import HttpServer
from support.postgres_server import PostgresServer

WRITERS = 20
REPLICAS = 2
QUERIES = ("needle17 common", "newest notes", "deep17", "zebra quagga")
MOST = 150.0
PAUSE = 0.1  # seconds between two steps of a client: agents are slower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument(
        "--large", type=int, default=100_000, help="sessions of the second SQLite store; 0: none"
    )
    parser.add_argument("--seconds", type=float, default=15, help="how long each store is measured")
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two steps of a client")
    options = parser.parse_args()
    print(HEAD)
    with TemporaryDirectory() as name:
        counts = options.sessions, options.large
        show(all_figures(Path(name), *counts, options.seconds, options.pause))


def all_figures(
    folder: Path, count: int, large: int, seconds: float, pause: float = PAUSE
) -> Iterator[Figure]:
    """Yield the figures of both stores with so many sessions, then of SQLite with many."""
    yield from on_postgres(folder / "postgres", count, seconds, pause)
    for many in filter(None, (count, large)):
        yield from on_sqlite(folder / f"sqlite-{many}", many, seconds, pause)


def on_postgres(folder: Path, count: int, seconds: float, pause: float) -> Iterator[Figure]:
    """Yield the figures of two replicas on a PostgreSQL of their own."""
    postgres = PostgresServer()
    try:
        postgres.start()
        filled(database.open_store(postgres.url), count)
        store = ("--store", postgres.url)
        yield from figures(folder, f"PostgreSQL, {count:,} sessions", REPLICAS, store, seconds, pause)
    finally:
        postgres.remove()


def on_sqlite(folder: Path, count: int, seconds: float, pause: float = PAUSE) -> Iterator[Figure]:
    """Yield the figures of one server on a file."""
    filled(sqlite.open_store(folder), count)
    yield from figures(folder, f"SQLite, {count:,} sessions", 1, (), seconds, pause)


def filled(store: Store, count: int) -> None:
    seed(store, count)
    store.close()


def figures(
    folder: Path, name: str, replicas: int, store: tuple[str, ...], seconds: float, pause: float
) -> Iterator[Figure]:
    """Search at one replica after the other while all of them are written to."""
    folder.mkdir(exist_ok=True)
    write_workflow(folder / "workflows")
    with ExitStack() as running:
        servers = list[HttpServer]()
        for _ in range(replicas):
            servers.append(HttpServer(folder, "--workflows", str(folder / "workflows"), "--quiet", *store))
            running.callback(servers[-1].stop)
        addresses = [f"{server.host}:{server.port}" for server in servers]
        context = get_context("spawn")
        over, taken = context.Event(), context.Queue()
        writing = context.Process(target=write, args=(addresses, pause, over, taken))
        writing.start()
        running.callback(writing.join)
        running.callback(over.set)
        sleep(2)  # all of them have begun
        times = searched(servers, seconds)
        over.set()
        steps: list[float] = taken.get()
    for kind, found in times.items():
        most = MOST if name == "PostgreSQL, 1,000 sessions" else None
        yield Figure(f"{kind} under writes, {name}, p50", percentile(found, 0.5))
        yield Figure(f"{kind} under writes, {name}, p95", percentile(found, 0.95), most=most)
    yield Figure(f"a step of the {WRITERS} clients meanwhile, {name}, p95", percentile(steps, 0.95))
    yield Figure(f"steps meanwhile, {name}", len(steps) / seconds, "/s")


def searched(servers: list[HttpServer], seconds: float) -> dict[str, list[float]]:
    """Search again and again as an agent and as a person, and return how long each search took."""
    callers = [HttpCaller(f"{server.host}:{server.port}") for server in servers]
    people = [ConsoleClient.entered(server) for server in servers]
    times: dict[str, list[float]] = {"resume": [], "console search": []}
    ends, turn = monotonic() + seconds, 0
    while monotonic() < ends:
        query, at = QUERIES[turn % len(QUERIES)], turn % len(servers)
        times["resume"].append(milliseconds(partial(callers[at].call, "resume_session", query=query)))
        path = f"search.json?q={query.replace(' ', '+')}"
        times["console search"].append(milliseconds(partial(people[at].shows, path)))
        turn += 1
    return times


def write(addresses: list[str], pause: float, over: Event, taken: object) -> None:
    """Let clients take steps, each in a run of its own, in a process beside the one that searches."""
    times = list[float]()

    def one(address: str) -> None:
        walk = Walk(HttpCaller(address).call)
        while not over.wait(pause):
            times.append(milliseconds(walk.advance))

    threads = [Thread(target=one, args=(addresses[n % len(addresses)],)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.put(times)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
