"""Measure what many workflows cost: listing them cold and warm, and starting a server that serves them.

    python -m bench.listing [--count 500]

Prints the time of a first listing, of a listing from the compile cache, of a second listing in the same
process, and from spawning a server to its answer to tools/list, with few and with many workflows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.server import Server
from bench.timing import milliseconds
from interlock.authoring.library import BUNDLED, Library, Source

ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    count = parser.parse_args().count
    with TemporaryDirectory() as name:
        folder = Path(name)
        for form in ("small.json", "small.yaml", "large.json", "large.yaml"):
            write_workflows(folder / form, count, form)
            report_listing(folder, form, count)
        report_start_up(folder, count)


def write_workflows(folder: Path, count: int, form: str) -> None:
    """Write copies of the bundled feature workflow under other names; small ones have two steps."""
    import yaml

    folder.mkdir()
    size, _, ending = form.partition(".")
    whole = yaml.safe_load((BUNDLED.path / "feature.yaml").read_text(encoding="utf-8"))
    value = whole if size == "large" else {**whole, "steps": whole["steps"][:2]}
    text = json.dumps(value, indent=2) if ending == "json" else yaml.safe_dump(value, sort_keys=False)
    for number in range(count):
        named = text.replace("wr.feature", f"bench.feature-{number}")
        (folder / f"feature-{number}.{ending}").write_text(named, encoding="utf-8")


def report_listing(folder: Path, form: str, count: int) -> None:
    cache, source = folder / f"cache-{form}", Source("configured", folder / form)
    cold = milliseconds(lambda: Library([source], cache).listing())
    warm = median(milliseconds(lambda: Library([source], cache).listing()) for _ in range(ROUNDS))
    library = Library([source], cache)
    library.listing()
    again = median(milliseconds(library.listing) for _ in range(ROUNDS))
    print(f"{count} in {form}: cold {cold:.0f} ms, from the cache {warm:.1f} ms, again {again:.1f} ms")


def report_start_up(folder: Path, count: int) -> None:
    few = start_up(folder / "few")
    many = start_up(folder / "many", "--workflows", str(folder / "large.yaml"))
    print(f"spawn to tools/list: {few:.0f} ms with none of them, {many:.0f} ms with {count}")


def start_up(data_dir: Path, *arguments: str) -> float:
    """Return the median time from spawning a server to its list of tools."""
    times = []
    for _ in range(ROUNDS):
        started = perf_counter()
        server = Server(data_dir, *arguments)
        server.request("tools/list", {})
        times.append((perf_counter() - started) * 1000)
        server.close()
    return median(times)


if __name__ == "__main__":
    main()
