"""Measure a long run on the execution surface, over real stdio, beside a bare SQLite FULL commit.

    python -m bench.execution_walk [--steps 10000]

Prints start-up, memory, a durable advance and its growth with the run, rehydrate, replay, bytes, and the CPU
time of each, which can be compared on a busy machine too.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import apsw
import msgspec

from bench.server import Server
from bench.timing import milliseconds

PROMPT = "Look at the code that the task touches and write down what you find. " * 8
STARTS = 15
MEMORY_AFTER = 1000
REPEATS = 200

Answer = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    with TemporaryDirectory() as folder:
        data = Path(folder)
        write_workflow(data / "workflows")
        fill_cache(data)
        elapsed, cpu = zip(*(start_up(data) for _ in range(STARTS)), strict=True)
        show("spawn → tools/list answered", median(elapsed), "ms")
        show("the same, CPU", min(cpu), "ms")
        measure_run(data, steps)


def write_workflow(folder: Path) -> None:
    """Write twelve loops of a thousand steps each: long enough for any measurement."""
    folder.mkdir()
    loops = [
        {
            "id": f"loop-{number}",
            "type": "loop",
            "title": "Loop",
            "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            "body": [{"id": f"step-{number}", "title": "Step", "prompt": PROMPT}],
        }
        for number in range(12)
    ]
    head = {"id": "bench.long", "name": "Long", "description": "For measuring.", "version": "1.0.0"}
    (folder / "long.json").write_bytes(msgspec.json.encode({**head, "steps": loops}))


def fill_cache(data: Path) -> None:
    """Compile once, as the first chat on a machine does."""
    server = start_server(data)
    call(server, "start_workflow", workflowId="bench.long")
    server.close()


def start_server(data: Path) -> Server:
    return Server(data, "--workflows", str(data / "workflows"))


def call(server: Server, tool: str, **arguments: Any) -> Answer:
    """Call a tool and return its structured answer, with the text beside it."""
    result = server.call(tool, **arguments)
    return {**result["structuredContent"], "_text": result["content"][0]["text"]}


def advance(server: Server, position: Answer, notes: str) -> Answer:
    tokens = {"stateToken": position["stateToken"], "ackToken": position["ackToken"]}
    return call(server, "continue_workflow", **tokens, output={"notesMarkdown": notes})


def start_up(data: Path) -> tuple[float, float]:
    """Return the milliseconds from spawning a server to its list of tools, and those of CPU."""
    started = perf_counter()
    server = start_server(data)
    server.request("tools/list", {})
    elapsed, cpu = (perf_counter() - started) * 1000, server.cpu_milliseconds()
    server.kill()
    return elapsed, cpu


def measure_run(data: Path, steps: int) -> None:
    """Advance one run step by step, with a bare commit after each advance, and print the figures."""
    server, bare = start_server(data), open_bare_file(data / "bare.db")
    tools = server.request("tools/list", {})["tools"]
    described = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    show("tools/list (names, descriptions, input schemas)", len(msgspec.json.encode(described)), "bytes")
    show("resident memory, idle", server.resident_megabytes(), "MB")
    first = position = call(server, "start_workflow", workflowId="bench.long", context={"goal": "measure"})
    advances, commits, before = list[float](), list[float](), server.cpu_milliseconds()
    for number in range(steps):
        started = perf_counter()
        position = advance(server, position, notes_of(number))
        advances.append((perf_counter() - started) * 1000)
        body = os.urandom(1024)
        commits.append(milliseconds(partial(bare.execute, "INSERT INTO events VALUES (?)", (body,))))
        if number + 1 == MEMORY_AFTER:
            show(f"resident memory after {MEMORY_AFTER:,} calls", server.resident_megabytes(), "MB")
    cpu = server.cpu_milliseconds() - before
    added = len(position["_text"].encode()) - len(position["pending"]["prompt"])
    show("bytes added to the author's prompt", added, "bytes")
    show("bare SQLite FULL commit, p50", median(commits), "ms")
    show("durable advance over stdio, p50", median(advances), "ms")
    show("the same, CPU", cpu / steps, "ms")
    show("the same, first ten", median(advances[:10]), "ms")
    for mark in sorted({mark for mark in (500, 1000, steps) if mark <= steps}):
        show(f"the same, after {mark:,} steps", median(advances[max(mark - 100, 0) : mark]), "ms")
    token = position["stateToken"]
    show_repeated("rehydrate", server, lambda: call(server, "continue_workflow", stateToken=token))
    show_repeated("replay", server, lambda: advance(server, first, notes_of(0)))
    server.close()


def show_repeated(name: str, server: Server, action: Callable[[], object]) -> None:
    """Print the time and the CPU time of a call that changes nothing."""
    before = server.cpu_milliseconds()
    elapsed = [milliseconds(action) for _ in range(REPEATS)]
    show(f"{name}, p50", median(elapsed), "ms")
    show("the same, CPU", (server.cpu_milliseconds() - before) / REPEATS, "ms")


def notes_of(number: int) -> str:
    return f"Step {number}: found what was to be found and wrote it down."


def open_bare_file(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE events (body BLOB)")
    return connection


def show(name: str, value: float, unit: str) -> None:
    number = f"{value:>10,.0f}" if unit == "bytes" else f"{value:>10,.2f}"
    print(f"{name:<52} {number} {unit}")


if __name__ == "__main__":
    main()
