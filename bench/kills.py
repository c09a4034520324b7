"""Pull the plug a thousand times in the middle of a stream of advances, and count what was lost or doubled.

Each round starts the real stdio server, kills it at a random moment, and sends the call in flight again to
the next one. Prints kills, acknowledged steps, lost and doubled ones; the last two must be 0.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from time import perf_counter
from typing import Any

import msgspec

from interlock.store.sqlite.store import open_store

Answer = dict[str, Any]
PER_RUN = 900
WARM = 0.9  # of the servers advance once before the clock runs; the others may die while they start
FLOW = {
    "id": "bench.stream",
    "name": "Stream",
    "description": "One step, again and again.",
    "version": "1.0.0",
    "steps": [
        {
            "id": "again",
            "type": "loop",
            "title": "Again",
            "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            "body": [{"id": "once", "title": "Once", "prompt": "Do it."}],
        }
    ],
}


class Gone(Exception):
    """The server ended before it answered."""


class Server:
    """One stdio server; a killed one raises Gone."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(folder)]
        command += ["--workflows", str(folder / "flows")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client = {"clientInfo": {"name": "kills", "version": "1"}, "capabilities": {}}
        self.request("initialize", {"protocolVersion": "2025-11-25", **client})

    def request(self, method: str, params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Gone from error
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise Gone
        return msgspec.json.decode(line)

    def call(self, tool: str, **arguments: Any) -> Answer:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})["result"]
        answer: Answer = result["structuredContent"]
        if result.get("isError"):
            raise SystemExit(f"refused: {answer}")
        return answer

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Stream:
    """A stream of advances that survives its servers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.acknowledged: list[str] = []
        self.number = 0
        self.runs = 0
        self.here: Answer = {}

    def round(self, longest: float) -> None:
        """Advance until the plug is pulled; what was in flight is sent again next time."""
        server = Server(self.folder)
        if self.chance.random() < WARM:
            self._advance(server)
        plug = Timer(self.chance.uniform(0, longest), server.kill)
        plug.start()
        try:
            while True:
                self._advance(server)
        except Gone:
            plug.join()
            server.kill()

    def settle(self) -> None:
        """Send what is still in flight to a server that lives."""
        server = Server(self.folder)
        self._advance(server)
        server.kill()

    def _advance(self, server: Server) -> None:
        if self.number // PER_RUN == self.runs:
            self.here = server.call("start_workflow", workflowId="bench.stream")
            self.runs += 1
        tokens = {name: self.here[name] for name in ("stateToken", "ackToken")}
        note = f"step {self.number}"
        self.here = server.call("continue_workflow", **tokens, output={"notesMarkdown": note})
        self.acknowledged.append(note)
        self.number += 1


def recorded(folder: Path) -> Counter[str]:
    """Every note in the log, by how often it is there."""
    store = open_store(folder)
    with store.reading() as reader:
        found = Counter(
            msgspec.json.decode(row.payload)["notes"]
            for session_id in reader.session_ids("", 10_000)
            for row in reader.events(session_id, kinds=("node_output_appended",))
        )
    store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.03, help="seconds that a server lives at most")
    parser.add_argument("--dir", type=Path, help="a folder on the disk to use")
    given = parser.parse_args()
    began = perf_counter()
    with TemporaryDirectory(dir=given.dir) as name:
        folder = Path(name)
        (folder / "flows").mkdir()
        (folder / "flows" / "bench.stream.json").write_bytes(msgspec.json.encode(FLOW))
        stream = Stream(folder, given.seed)
        for _ in range(given.kills):
            stream.round(given.longest)
        stream.settle()
        found = recorded(folder)
    lost = [note for note in stream.acknowledged if note not in found]
    doubled = [note for note, times in found.items() if times > 1]
    print(f"kills        {given.kills:6}   in {perf_counter() - began:.0f} s")
    print(f"acknowledged {len(stream.acknowledged):6}")
    print(f"lost         {len(lost):6}")
    print(f"doubled      {len(doubled):6}")
    sys.exit(bool(lost or doubled))


if __name__ == "__main__":
    main()
