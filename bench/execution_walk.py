"""A long run on the execution surface, over real stdio, beside a bare SQLite FULL commit.

Start-up, memory, a durable advance and its growth with the run, rehydrate, replay, bytes, and the CPU time of
each, which can be compared on a busy machine too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import apsw
import msgspec

from bench.figures import Figure
from bench.server import Floor, Server
from bench.timing import milliseconds

PROMPT = "Look at the code that the task touches and write down what you find. " * 8
STARTS = 15
REPEATS = 200
WARM_UP = 20

Answer = dict[str, Any]


def figures(data: Path, steps: int) -> Iterator[Figure]:
    """Yield what a server costs at its start and along one run."""
    data.mkdir()
    write_workflow(data / "workflows")
    fill_cache(data)
    elapsed, cpu = zip(*(start_up(data) for _ in range(STARTS)), strict=True)
    yield Figure("spawn → tools/list answered, p50", median(elapsed), most=120)
    yield Figure("the same, CPU, best", min(cpu))
    yield from figures_of_run(data, steps)


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


def figures_of_run(data: Path, steps: int) -> Iterator[Figure]:
    """Advance one run step by step, with a bare commit after each advance."""
    file = data / "interlock.db"
    size, server, bare = file.stat().st_size, start_server(data), open_bare_file(data / "bare.db")
    tools = server.request("tools/list", {})["tools"]
    described = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    bytes_of_tools = len(msgspec.json.encode(described))
    yield Figure("tools/list (names, descriptions, input schemas)", bytes_of_tools, "bytes", 4000)
    yield Figure("resident memory, idle", server.resident_megabytes(), "MB", 25)
    first = position = call(server, "start_workflow", workflowId="bench.long", context={"goal": "measure"})
    for number in range(WARM_UP):
        position = advance(server, position, notes_of(number))
    floor, asked = start_floor(data, server), {"output": {"notesMarkdown": notes_of(0)}, "tokens": "t" * 94}
    advances, commits, floors = list[float](), list[float](), list[float]()
    cpu, written = server.cpu_milliseconds(), server.bytes_written()
    for number in range(steps):
        started = perf_counter()
        position = advance(server, position, notes_of(number))
        advances.append((perf_counter() - started) * 1000)
        body = os.urandom(1024)
        commits.append(milliseconds(partial(bare.execute, "INSERT INTO events VALUES (?)", (body,))))
        floors.append(milliseconds(partial(floor.call, "continue_workflow", **asked)))
    floor.close()
    cpu, written = server.cpu_milliseconds() - cpu, server.bytes_written() - written
    yield Figure(f"resident memory after {steps:,} calls", server.resident_megabytes(), "MB", 40)
    added = len(position["_text"].encode()) - len(position["pending"]["prompt"])
    yield Figure("bytes added to the author's prompt", added, "bytes", 300)
    yield Figure("bare SQLite FULL commit of 1 KiB, p50", median(commits))
    yield Figure("durable advance over stdio, p50", median(advances))
    yield Figure("the same, above the bare commit", median(advances) - median(commits), most=0.7)
    yield Figure("the floor: parse, one commit of the same rows, answer, p50", median(floors))
    yield Figure("durable advance as a multiple of the floor", median(advances) / median(floors), "×", 2)
    yield Figure("durable advance, CPU", cpu / steps)
    grown = median(advances[-100:]) / median(advances[:100])
    yield Figure(f"the last 100 of {steps:,} advances, as a multiple of the first 100", grown, "×", 1.25)
    token = position["stateToken"]
    yield from figures_of("rehydrate", server, lambda: call(server, "continue_workflow", stateToken=token), 1)
    yield from figures_of("replay", server, lambda: advance(server, first, notes_of(0)), 0.4)
    yield Figure("written per advance, log and checkpoints", written / steps / 1000, "kB", 30)
    server.close()
    yield Figure("kept per advance", (file.stat().st_size - size) / steps / 1000, "kB", 3)


def start_floor(data: Path, server: Server) -> Floor:
    """Start the floor with the sizes of the rows and of the answer that the server's last advance had."""
    connection = apsw.Connection(str(data / "interlock.db"))
    sizes = (
        "SELECT length(body) FROM commits ORDER BY rowid DESC LIMIT 1",
        ("SELECT length(state) + length(response) + length(outputs) FROM nodes ORDER BY rowid DESC LIMIT 1"),
    )
    rows = [next(connection.execute(size))[0] for size in sizes]
    connection.close()
    return Floor(data, *map(str, (*rows, server.last_received)))


def figures_of(name: str, server: Server, action: Callable[[], object], most: float) -> Iterator[Figure]:
    """Yield the time and the CPU time of a call that changes nothing."""
    before = server.cpu_milliseconds()
    elapsed = [milliseconds(action) for _ in range(REPEATS)]
    yield Figure(f"{name}, p50", median(elapsed), most=most)
    yield Figure("the same, CPU", (server.cpu_milliseconds() - before) / REPEATS)


def notes_of(number: int) -> str:
    return f"Step {number}: found what was to be found and wrote it down."


def open_bare_file(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE events (body BLOB)")
    return connection
