"""The real `interlock mcp` as a process, and an agent that talks to it over its pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test-client", "version": "1"},
}


class ServerGone(Exception):
    """The process ended before it answered."""


class Server:
    """One stdio server on a data directory. `call` gives the structured answer of a tool."""

    def __init__(self, data_dir: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(data_dir), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._id = 0
        self.request("initialize", INITIALIZE)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.kill()

    def send(self, method: str, params: Any) -> None:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise ServerGone from error

    def receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ServerGone
        return msgspec.json.decode(line)

    def request(self, method: str, params: Any) -> Any:
        self.send(method, params)
        return self.receive()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        result = answer["result"]
        return {**(result.get("structuredContent") or {}), "_text": result["content"][0]["text"]}

    def ack(self, at: dict[str, Any], notes: str = "", **more: Any) -> dict[str, Any]:
        output = {"output": {"notesMarkdown": notes}} if notes else {}
        tokens = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
        return self.call("continue_workflow", **tokens, **output, **more)

    def kill(self) -> None:
        """Pull the plug."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
