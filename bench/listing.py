"""What many workflows cost: listing them cold and warm, and starting a server beside them.

Prints the time of a first listing, of a listing from the compile cache, of a listing in a process that has
made one before, and from spawning a server to its answer to tools/list, with few and with many workflows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from interlock.authoring.library import BUNDLED, Library, Source

ROUNDS = 9
LINES = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    given = parser.parse_args()
    with TemporaryDirectory() as target:
        folder = Path(target)
        for form in ("small.json", "small.yaml", "large.json", "large.yaml"):
            write_workflows(folder / form, given.count, form)
            report_listing(folder, form, given.count)
        report_start_up(folder, given.count)


def write_workflows(folder: Path, count: int, form: str) -> None:
    """Many of one kind under other names: large ones are the bundled feature workflow."""
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
    cold = timed(lambda: Library([source], cache).listing())
    warm = median(timed(lambda: Library([source], cache).listing()) for _ in range(ROUNDS))
    one = Library([source], cache)
    one.listing()
    again = median(timed(one.listing) for _ in range(ROUNDS))
    print(f"{count} in {form}: cold {cold:.0f} ms, from the cache {warm:.1f} ms, again {again:.1f} ms")


def report_start_up(folder: Path, count: int) -> None:
    few = started(folder / "few")
    many = started(folder / "many", "--workflows", str(folder / "large.yaml"))
    print(f"spawn to tools/list: {few:.0f} ms with none of them, {many:.0f} ms with {count}")


def started(data: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(data), *arguments]
    return median(answered(command) for _ in range(ROUNDS))


def answered(command: list[str]) -> float:
    """Milliseconds from spawning the server to its list of tools."""
    start = perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LINES)
        process.stdin.flush()
        while '"id":2' not in process.stdout.readline():
            pass
        return (perf_counter() - start) * 1000


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
