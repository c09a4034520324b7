"""What durability costs on this disk, and what the store adds to it.

Prints p50 and p99 of a bare SQLite FULL commit and of a transaction shaped like an advance, interleaved so
that both see the same disk.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import apsw
from msgspec.structs import replace

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
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.dir) as folder:
        bare, advance = measured(Path(folder), given.count)
    show("bare commit", bare)
    show("advance", advance)
    print(f"added    p50 {(at(advance, 0.5) - at(bare, 0.5)) * 1000:6.2f} ms")


def measured(folder: Path, count: int) -> tuple[list[float], list[float]]:
    store, plain = open_store(folder / "store"), bare_file(folder / "bare.db")
    begin(store)
    advances = [transaction(store, step) for step in range(count)]
    pairs = [
        (timed(lambda: plain.execute("INSERT INTO t VALUES (?)", (BODY,))), timed(one)) for one in advances
    ]
    store.close()
    plain.close()
    return [bare for bare, _ in pairs], [advance for _, advance in pairs]


def bare_file(path: Path) -> apsw.Connection:
    path.touch()
    plain = connect(path)
    plain.pragma("journal_mode", "wal")
    plain.pragma("wal_autocheckpoint", 1000)
    plain.execute("CREATE TABLE t (x)")
    return plain


def begin(store: SqliteStore) -> None:
    with store.writing() as writer:
        writer.add_session(SessionRow("sess_a", "me", "t", 1, 1, -1, DIGEST, 0, 0, 0))
        writer.add_run(RunRow("sess_a", 0, "run_a", "wr.fix", "sha256:1", "running", 0, 1, 1))


def transaction(store: SqliteStore, step: int) -> Callable[[], None]:
    """Prepare one advance: session, run, node, attempt, output, five events and the search row."""
    notes = " ".join(random.choices(WORDS, k=60))
    node = NodeRow("sess_a", step, 0, step - 1, "step", step, step, BODY, DIGEST, step * 5, step)
    attempt = AttemptRow("sess_a", step, 0, "advanced", DIGEST, BODY, DIGEST, step + 1)
    output = OutputRow("sess_a", step, 0, 0, "notes", "step", notes, step + 1, step)
    events = [EventRow("sess_a", step * 5 + n, "noted", BODY[:300], DIGEST, step, 0, step) for n in range(4)]
    events.append(replace(events[0], index=step * 5 + 4, dedupe_key=f"advance:{step}"))
    search = SearchRow("sess_a", "Fix the login", notes, "wr.fix bug")

    def run() -> None:
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

    return run


def timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def at(times: Sequence[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def show(name: str, times: Sequence[float]) -> None:
    print(f"{name:12} p50 {at(times, 0.5) * 1000:6.2f} ms   p99 {at(times, 0.99) * 1000:6.2f} ms")


if __name__ == "__main__":
    main()
