"""What `make bench` has measured over time: a line of JSON a run, and a chart of it.

Runs of different machines are not compared: the chart shows those of the machine that measured last.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.figures import Figure
from bench.plot import chart

HISTORY = Path(__file__).parent / "history.jsonl"
CHART = Path(__file__).parent.parent / "docs" / "images" / "bench-history.svg"
MOST_LINES = 4  # figures on the chart: the first that are in milliseconds


class Measured(Struct, frozen=True):
    """The figures of one run by name, with the unit of each, and where and when they were measured."""

    at: str
    commit: str
    machine: str
    figures: dict[str, tuple[float, str]]


def measured(figures: Iterable[Figure]) -> Measured:
    """Return the figures of this moment on this machine."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Measured(at, told.stdout.strip(), machine, {it.name: (it.value, it.unit) for it in figures})


def append(run: Measured, history: Path = HISTORY) -> list[Measured]:
    """Add a run to the history, and return all of them."""
    with history.open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")
    return [msgspec.json.decode(line, type=Measured) for line in history.read_bytes().splitlines()]


def plot(runs: list[Measured], path: Path = CHART) -> None:
    """Draw how the figures in milliseconds have changed on the machine that measured last."""
    here = [run for run in runs if run.machine == runs[-1].machine]
    names = [name for name, (_, unit) in here[-1].figures.items() if unit == "ms"][:MOST_LINES]
    lines = {
        name: [(at, run.figures[name][0]) for at, run in enumerate(here, 1) if name in run.figures]
        for name in names
    }
    chart(path, f"make bench, up to {here[-1].at[:10]}", "runs", lines)
