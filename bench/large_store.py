"""Measure what the commands cost on a store with 100,000 sessions.

    python -m bench.large_store [--sessions 100000]

Prints the time, the peak memory and the output of each command, run as a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.seeded import seed
from interlock.store.sqlite.store import open_store

COMMANDS = (
    ("sessions",),
    ("sessions", "--json"),
    ("resume", "needle17 common"),
    ("resume", "common"),
    ("gc", "--dry-run"),
    ("doctor",),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--dir", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name) / "data"
        folder.mkdir(mode=0o700)
        started = perf_counter()
        store = open_store(folder)
        seed(store, options.sessions)
        store.close()
        size = (folder / "interlock.db").stat().st_size / 2**20
        print(f"{options.sessions} sessions, {size:.0f} MB, seeded in {perf_counter() - started:.0f} s")
        for command in COMMANDS:
            measure(folder, command)


def measure(folder: Path, command: tuple[str, ...]) -> None:
    """Run a command as a process and print what it used."""
    arguments = [sys.executable, "-m", "interlock", *command, "--data-dir", str(folder)]
    started = perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = len(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    seconds, memory = perf_counter() - started, used.ru_maxrss / 1024
    name = " ".join(command)
    print(f"  {name:<26} {seconds:7.2f} s {memory:6.0f} MB {printed:9} bytes, exit {process.returncode}")


if __name__ == "__main__":
    main()
