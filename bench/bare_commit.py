"""Measure what durability costs on this disk, and what the store adds to it.

    python -m bench.bare_commit [--count 2000]

Prints p50 and p99 of a bare SQLite FULL commit and of a transaction shaped like an advance, interleaved so
that both meet the same disk.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
from msgspec.structs import replace

from bench.timing import milliseconds, percentile
from interlock.store.protocol import (
    AttemptRow,
    EventRow,
    NodeRow,
    OutputRow,
    RunRow,
    SearchRow,
    SessionRow,
)
from interlock.store.sqlite.store import SqliteStore, connect, open_store

DIGEST = bytes(32)
BODY = random.Random(1).randbytes(1500)
WORDS = [f"word{number}" for number in range(3000)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.dir) as folder:
        bare, advance = measure(Path(folder), options.count)
    for name, times in (("bare commit", bare), ("advance", advance)):
        print(f"{name:12} p50 {percentile(times, 0.5):6.2f} ms   p99 {percentile(times, 0.99):6.2f} ms")
    print(f"{'added':12} p50 {percentile(advance, 0.5) - percentile(bare, 0.5):6.2f} ms")


def measure(folder: Path, count: int) -> tuple[list[float], list[float]]:
    """Return the times of bare commits and of advances, made in turns."""
    store, bare = open_store(folder / "store"), open_bare_file(folder / "bare.db")
    start_run(store)
    commits, advances = list[float](), list[float]()
    for advance in [prepared_advance(store, step) for step in range(count)]:
        commits.append(milliseconds(lambda: bare.execute("INSERT INTO t VALUES (?)", (BODY,))))
        advances.append(milliseconds(advance))
    store.close()
    bare.close()
    return commits, advances


def open_bare_file(path: Path) -> apsw.Connection:
    path.touch()
    connection = connect(path)
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 1000)
    connection.execute("CREATE TABLE t (x)")
    return connection


def start_run(store: SqliteStore) -> None:
    with store.writing() as writer:
        writer.add_session(SessionRow("sess_a", "me", "t", 1, 1, -1, DIGEST, 0, 0, 0))
        writer.add_run(RunRow("sess_a", 0, "run_a", "wr.fix", "sha256:1", "running", 0, 1, 1))


def prepared_advance(store: SqliteStore, step: int) -> Callable[[], None]:
    """Prepare one advance: session, run, node, attempt, output, five events and the search row."""
    notes = " ".join(random.choices(WORDS, k=60))
    node = NodeRow("sess_a", step, 0, step - 1, "step", step, step, BODY, DIGEST, step * 5, step)
    attempt = AttemptRow("sess_a", step, 0, "advanced", DIGEST, BODY, DIGEST, step + 1)
    output = OutputRow("sess_a", step, 0, 0, "notes", "step", notes, step + 1, step)
    events = [EventRow("sess_a", step * 5 + n, "noted", BODY[:300], DIGEST, step, 0, step) for n in range(4)]
    events.append(replace(events[0], index=step * 5 + 4, dedupe_key=f"advance:{step}"))
    search = SearchRow("sess_a", "me", "Fix the login", notes, "wr.fix bug")

    def advance() -> None:
        with store.writing() as writer:
            session, current = writer.session("sess_a"), writer.run("sess_a", 0)
            assert session is not None
            assert current is not None
            writer.add_node(node)
            writer.add_attempt(attempt)
            writer.add_outputs([output])
            writer.add_events(events)
            writer.set_run(replace(current, tip=step, updated_at=step))
            writer.set_session(replace(session, head_index=step * 5 + 4, next_node=step, updated_at=step))
            writer.set_search(search)

    return advance


if __name__ == "__main__":
    main()
