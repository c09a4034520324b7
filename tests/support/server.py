"""The real `interlock mcp` as a process, and an agent that talks to it over its pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from interlock.surfaces.call import Era
from support.stdio_pipe import ENVELOPE

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test-client", "version": "1"},
}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


class ServerGone(Exception):
    """The process ended before it answered."""


class Server:
    """One stdio server on a data directory. `call` gives the structured answer of a tool."""

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        era: Era = "handshake",
        can_elicit: bool = False,
        module: str = "interlock",
    ) -> None:
        command = [sys.executable, "-m", module, "mcp", "--data-dir", str(data_dir), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.era = era
        self._capabilities = FORMS if can_elicit else {}
        self._id = 0
        if era == "handshake":
            self.request("initialize", {**INITIALIZE, "capabilities": self._capabilities})

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.kill()

    def send(self, method: str, params: Any) -> None:
        self._id += 1
        if self.era == "modern":
            capable = {"io.modelcontextprotocol/clientCapabilities": self._capabilities}
            params = {**params, "_meta": {**ENVELOPE, **capable}}
        self._write({"id": self._id, "method": method, "params": params})

    def answer_form(self, form: Any, answer: Any) -> None:
        """Answer a form that the server has sent."""
        self._write({"id": form["id"], "result": answer})

    def _write(self, message: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
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
        text = result["content"][0]["text"]
        if "structuredContent" not in result and text.startswith("{"):
            result["structuredContent"] = msgspec.json.decode(text)
        beside = {"_text": result["content"][0]["text"], "_meta": result.get("_meta", {})}
        return {**(result.get("structuredContent") or {}), **beside, "_error": result.get("isError", False)}

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
            with suppress(BrokenPipeError):  # of a line that was not written yet
                stream.close()
