"""The real `interlock mcp` as a process, driven over its pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class ServerGone(Exception):
    """The server ended before it answered."""


class Server:
    """One initialized server on a data directory, with a count of the bytes that go through its pipes."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        command = [sys.executable, *self.program(data_dir), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.requests = self.bytes_sent = self.bytes_received = self.last_received = 0
        self.request("initialize", INITIALIZE)

    def program(self, data_dir: Path) -> tuple[str, ...]:
        return "-m", "interlock", "mcp", "--data-dir", str(data_dir)

    def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests += 1
        message = {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}
        line = msgspec.json.encode(message) + b"\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except OSError as error:
            raise ServerGone from error
        answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise ServerGone
        self.bytes_sent += len(line)
        self.bytes_received += len(answer)
        self.last_received = len(answer)
        return msgspec.json.decode(answer)["result"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the result, whether it is an error or not."""
        result: dict[str, Any] = self.request("tools/call", {"name": tool, "arguments": arguments})
        return result

    def resident_megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def cpu_milliseconds(self) -> float:
        """Return the CPU time that the server has used: a busy machine does not change it much."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e6

    def bytes_written(self) -> int:
        """Return how many bytes the server has written to files, its answers left out."""
        counted = Path(f"/proc/{self.process.pid}/io").read_text().splitlines()
        written = next(int(line.split()[1]) for line in counted if line.startswith("wchar:"))
        return written - self.bytes_received

    def kill(self) -> None:
        """End the server at once, whatever it is doing."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Close the input and wait for the server to exit."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Floor(Server):
    """The least that a server does for a durable step (`bench/floor.py`)."""

    def program(self, data_dir: Path) -> tuple[str, ...]:
        return "-m", "bench.floor", str(data_dir / "floor.db")
