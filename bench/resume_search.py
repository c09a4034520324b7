"""Measure how long `resume_session` takes to find work, with 2,000 and with 100,000 sessions stored.

python -m bench.resume_search [--sessions 2000 100000]
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.seeded import seed
from bench.timing import milliseconds
from interlock.authoring.library import Library
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[2000, 100_000])
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    for count in options.sessions:
        with TemporaryDirectory(dir=options.dir) as folder:
            measure(Path(folder), count)


def measure(folder: Path, count: int) -> None:
    started = perf_counter()
    store = open_store(folder)
    seed(store, count)
    ledger = Ledger(store, Keys(folder), Library([]), Settings())
    size = sum(path.stat().st_size for path in folder.glob("interlock.db*")) / 2**20
    print(f"{count} sessions, {size:.0f} MB, seeded in {perf_counter() - started:.0f} s; ms p50 / worst")
    for name, query in QUERIES.items():
        search = partial(find, ledger, query, CHECKOUT)
        times = [milliseconds(search) for _ in range(ROUNDS)]
        matches = find(ledger, query)
        why = matches[0].why if matches else "nothing"
        print(f"  {name:<28} {median(times):7.2f} / {max(times):7.2f}   {len(matches)} by {why}")
    store.close()


if __name__ == "__main__":
    main()
