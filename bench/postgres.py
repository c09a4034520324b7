"""Measure the PostgreSQL store beside a bare durable INSERT of the same bytes on the same server.

    python -m bench.postgres [--seconds 4] [--url postgresql://…]

Starts a server of its own unless a URL is given. Prints the write path at 8 and 64 clients, and whole
advances with the CPU that they take in Python and in PostgreSQL.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from msgspec.structs import replace

from bench.timing import percentile
from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.postgres.connections import connect
from interlock.store.postgres.database import open_store
from interlock.store.protocol import Changes, CommitRow, NodeRow, SessionRow
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent
from support.store_rows import start

BODY, STATE, RESPONSE = os.urandom(900), os.urandom(700), os.urandom(2000)
PROCESSES = 2
ROUNDS = 3
WARM_UP = 50
TICKS = os.sysconf("SC_CLK_TCK")

Action = Callable[[], None]
Kind = Callable[[str], Action]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4, help="how long each measurement takes")
    parser.add_argument("--url", help="a database that may be filled")
    options = parser.parse_args()
    with server(options.url) as (url, postmaster):
        connection = connect(url)
        connection.execute("CREATE TABLE IF NOT EXISTS bare (id uuid PRIMARY KEY, body bytea NOT NULL)")
        connection.close()
        open_store(url).close()
        for clients in (8, 64):
            rounds = [
                (rate(bare, url, clients, options.seconds), rate(append, url, clients, options.seconds))
                for _ in range(ROUNDS)
            ]
            best = sorted(rounds, key=lambda pair: pair[1][0] / pair[0][0])[ROUNDS // 2]
            (inserts, insert_times), (appends, append_times) = best
            print(
                f"{clients:3} clients: bare INSERT {inserts:6.0f}/s"
                f" (p50 {percentile(insert_times, 0.5):.1f} ms), append {appends:6.0f}/s"
                f" (p50 {percentile(append_times, 0.5):.1f} ms),"
                f" ratio {appends / inserts:.2f} (median of {ROUNDS})"
            )
        measure_advances(url, postmaster, options.seconds)


@contextmanager
def server(url: str | None) -> Iterator[tuple[str, int | None]]:
    if url is not None:
        yield url, None
        return
    from support.postgres_server import PostgresServer

    own = PostgresServer(shared_buffers="256MB")
    try:
        own.start()
        yield own.url, own.pid
    finally:
        own.remove()


def bare(url: str) -> Action:
    """One client of a table with a key and as many bytes as a step has."""
    connection = connect(url)
    body = BODY + STATE + RESPONSE

    def insert() -> None:
        connection.execute("INSERT INTO bare VALUES ($1, $2)", (uuid4(), body))

    return insert


def append(url: str) -> Action:
    """One client that advances a session of its own: head, commit and node."""
    store = open_store(url, 1)
    changes = start(f"sess_{uuid4().hex}")
    store.append(changes)
    session = changes.session

    def advance() -> None:
        nonlocal session
        session = advanced(store.append, session)

    return advance


def advanced(append_: Callable[..., None], session: SessionRow) -> SessionRow:
    index, node = session.head_index + 1, session.next_node
    digest = os.urandom(32)
    commit = CommitRow(session.session_id, index, index, 1, digest, BODY, f"a:{node}")
    row = NodeRow(
        session.session_id,
        node,
        0,
        node - 1,
        "step",
        node,
        0,
        STATE,
        digest,
        index,
        1,
        1,
        digest,
        digest,
        RESPONSE,
    )
    head = replace(session, head_index=index, head_digest=digest, next_node=node + 1, head_node=node)
    append_(Changes(session=head, before=session.head_digest, commit=commit, nodes=[row]))
    return head


def rate(kind: Kind, url: str, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Run clients as threads of a few processes; return actions per second and their times."""
    share = clients // PROCESSES
    with get_context("spawn").Pool(PROCESSES) as pool:
        results = pool.starmap(work, [(kind, url, share, seconds)] * PROCESSES)
    times = [elapsed for worker in results for elapsed in worker]
    return len(times) / seconds, times


def work(kind: Kind, url: str, clients: int, seconds: float) -> list[float]:
    actions = [kind(url) for _ in range(clients)]
    for action in actions:
        action()

    def repeat(action: Action) -> list[float]:
        times, end = list[float](), perf_counter() + seconds
        while (began := perf_counter()) < end:
            action()
            times.append((perf_counter() - began) * 1000)
        return times

    with ThreadPoolExecutor(clients) as pool:
        return [elapsed for times in pool.map(repeat, actions) for elapsed in times]


def measure_advances(url: str, postmaster: int | None, seconds: float) -> None:
    """Print the throughput of whole advances, and the CPU of one."""
    before = cpu_of(postmaster)
    with get_context("spawn").Pool(PROCESSES) as pool:
        results = pool.starmap(advance_for, [(url, seconds)] * PROCESSES)
    count = sum(done for done, _ in results)
    served = count + PROCESSES * WARM_UP
    spent = (cpu_of(postmaster) - before) / served * 1000 if postmaster else float("nan")
    python = sum(cpu for _, cpu in results) / count * 1000
    inserts, _ = rate(bare, url, PROCESSES, seconds)
    print(
        f"advance: {PROCESSES} processes {count / seconds:.0f}/s, {count / seconds / inserts:.2f} of as many"
        f" bare clients; CPU {python:.2f} ms in Python, {spent:.2f} ms in PostgreSQL"
    )


def advance_for(url: str, seconds: float) -> tuple[int, float]:
    from bench.execution_walk import write_workflow

    with TemporaryDirectory() as folder:
        data = Path(folder)
        write_workflow(data / "workflows")
        library = Library([Source("configured", data / "workflows")], data / "cache")
        ledger = Ledger(open_store(url), Keys(data), library, Settings())
        agent = Agent(ExecutionSurface(ledger))
        agent.start("bench.long")
        for number in range(WARM_UP):
            agent.ack(f"Warm up {number}")
        done, cpu, end = 0, process_time(), perf_counter() + seconds
        while perf_counter() < end:
            agent.ack(f"Looked at the code and wrote down what was found, note {done}.")
            done += 1
        spent = process_time() - cpu
        ledger.store.close()
    return done, spent


def cpu_of(postmaster: int | None) -> float:
    """The CPU seconds of a server: of its processes that live, and of those that have ended."""
    if postmaster is None:
        return 0.0
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(folder.name) == postmaster:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            total += sum(map(int, fields[11:13]))
    return total / TICKS


if __name__ == "__main__":
    main()
