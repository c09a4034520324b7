"""Measures the execution surface, over real stdio beside a bare SQLite FULL commit in the same run.

    python -m bench.heart [--steps 10000]

Prints start-up, memory, a durable advance and its growth with the run, rehydrate, replay, bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import apsw
import msgspec

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
PROMPT = "Look at the code that the task touches and write down what you find. " * 8
STARTS = 15


class Server:
    """`interlock mcp` as a process."""

    def __init__(self, data: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "interlock",
            "mcp",
            "--data-dir",
            str(data),
            "--workflows",
            str(data / "w"),
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._id = 0
        self.request("initialize", INITIALIZE)

    def request(self, method: str, params: Any) -> Any:
        self._id += 1
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return msgspec.json.decode(self.process.stdout.readline())["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.request("tools/call", {"name": tool, "arguments": arguments})
        return {**answer["structuredContent"], "_text": answer["content"][0]["text"]}

    def advance(self, at: dict[str, Any], notes: str) -> dict[str, Any]:
        tokens = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
        return self.call("continue_workflow", **tokens, output={"notesMarkdown": notes})

    def resident(self) -> float:
        """Resident memory in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    with TemporaryDirectory() as folder:
        data = Path(folder)
        write_workflow(data)
        fill_cache(data)
        show("spawn → tools/list answered", start_up(data), "ms")
        run(data, steps)


def write_workflow(data: Path) -> None:
    """Twelve loops of a thousand steps each: long enough for any measurement."""
    (data / "w").mkdir()
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
    (data / "w" / "long.json").write_bytes(msgspec.json.encode({**head, "steps": loops}))


def fill_cache(data: Path) -> None:
    """Compile once, as the first chat on a machine does."""
    server = Server(data)
    server.call("start_workflow", workflowId="bench.long")
    server.close()


def start_up(data: Path) -> float:
    def once() -> None:
        server = Server(data)
        server.request("tools/list", {})
        server.close()

    once()
    return median(timed(once) for _ in range(STARTS))


def timed(action: Callable[[], object]) -> float:
    began = perf_counter()
    action()
    return (perf_counter() - began) * 1000


def run(data: Path, steps: int) -> None:
    server, bare = Server(data), BareCommit(data)
    tools = server.request("tools/list", {})["tools"]
    named = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    show("tools/list (names, descriptions, input schemas)", len(msgspec.json.encode(named)), "bytes")
    show("resident memory, idle", server.resident(), "MB")
    here = server.call("start_workflow", workflowId="bench.long", context={"goal": "measure"})
    advances, commits, first = list[float](), list[float](), here
    for number in range(steps):
        began = perf_counter()
        here = server.advance(here, f"Step {number}: found what was to be found and wrote it down.")
        advances.append((perf_counter() - began) * 1000)
        commits.append(bare.once())
        if number + 1 == 1000:
            show("resident memory after 1,000 calls", server.resident(), "MB")
    show(
        "bytes added to the author's prompt",
        len(here["_text"].encode()) - len(here["pending"]["prompt"]),
        "bytes",
    )
    show("bare SQLite FULL commit, p50", median(commits), "ms")
    show("durable advance over stdio, p50", median(advances), "ms")
    show("the same, first ten", median(advances[:10]), "ms")
    for mark in (500, 1000, steps):
        show(f"the same, after {mark:,} steps", median(advances[mark - 100 : mark]), "ms")
    show(
        "rehydrate, p50",
        median(
            timed(lambda: server.call("continue_workflow", stateToken=here["stateToken"])) for _ in range(200)
        ),
        "ms",
    )
    notes = "Step 0: found what was to be found and wrote it down."
    show("replay, p50", median(timed(lambda: server.advance(first, notes)) for _ in range(200)), "ms")
    server.close()


class BareCommit:
    """One insert in its own FULL transaction, between the advances, so that both see the same disk."""

    def __init__(self, data: Path) -> None:
        self.connection = apsw.Connection(str(data / "bare.db"))
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE TABLE events (body BLOB)")

    def once(self) -> float:
        body = os.urandom(1024)
        return timed(lambda: self.connection.execute("INSERT INTO events VALUES (?)", (body,)))


def show(name: str, value: float, unit: str) -> None:
    print(f"{name:<52} {value:>10,.2f} {unit}" if unit != "bytes" else f"{name:<52} {value:>10,.0f} bytes")


if __name__ == "__main__":
    main()
