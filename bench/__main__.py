"""Measure a call and what it costs, in one table beside a bare SQLite FULL commit of the same moment.

    python -m bench [--steps 10000] [--sessions 2000,100000] [--dir FOLDER]

Takes about three minutes. No test asserts a time; compare within one run, on a quiet machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import execution_walk, guard_share, resume, search_load, session_walk, text_bytes, without_store
from bench.figures import HEAD, show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="how many steps the long run takes")
    parser.add_argument("--sessions", default="2000,100000", help="how many are stored when one is resumed")
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    print(HEAD)
    with TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        show(execution_walk.figures(folder / "execution", options.steps))
        show(without_store.figures(folder / "without-store"))
        show(guard_share.figures(folder / "guard"))
        show(session_walk.figures(folder / "session"))
        show(text_bytes.figures(folder / "texts"))
        for count in map(int, options.sessions.split(",")):
            show(resume.figures(folder / f"resume-{count}", count))
        show(search_load.on_sqlite(folder / "search", 1000, seconds=10))


if __name__ == "__main__":
    main()
