"""Measure a call and what it costs, in one table beside a bare SQLite FULL commit of the same moment.

    python -m bench [--steps 10000] [--sessions 2000,100000] [--dir FOLDER] [--no-history]

Takes about three minutes. What was measured is added to `bench/history.jsonl` and drawn in
`docs/images/bench-history.svg`. No test asserts a time; compare within one run, on a quiet machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import (
    execution_walk,
    guard_share,
    history,
    resume,
    search_load,
    session_walk,
    text_bytes,
    without_store,
)
from bench.figures import HEAD, Figure, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="how many steps the long run takes")
    parser.add_argument("--sessions", default="2000,100000", help="how many are stored when one is resumed")
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--no-history", action="store_true", help="do not add this run to the history")
    options = parser.parse_args()
    print(HEAD)
    shown: list[Figure] = []
    with TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        shown += show(execution_walk.figures(folder / "execution", options.steps))
        shown += show(without_store.figures(folder / "without-store"))
        shown += show(guard_share.figures(folder / "guard"))
        shown += show(session_walk.figures(folder / "session"))
        shown += show(text_bytes.figures(folder / "texts"))
        for count in map(int, options.sessions.split(",")):
            shown += show(resume.figures(folder / f"resume-{count}", count))
        shown += show(search_load.on_sqlite(folder / "search", 1000, seconds=10))
    if not options.no_history:
        history.plot(history.append(history.measured(shown)))


if __name__ == "__main__":
    main()
