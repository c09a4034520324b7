"""A scripted agent at the real stdio server: it starts the process, speaks MCP, and can lose everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock import __version__
from interlock.core.values import Json

Answer = dict[str, Json]


class ScriptedAgent:
    """A chat with one server process. What the agent knows is the last answer, and nothing else."""

    def __init__(self, data_dir: Path) -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(data_dir)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
        )
        self.last: Answer = {}
        client: Answer = {"name": "interlock-demo", "version": __version__}
        self._request(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def call(self, tool: str, **arguments: Json) -> Answer:
        """Call a tool and remember the tokens of its answer."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        body = result["structuredContent"]
        assert isinstance(body, dict)
        if "stateToken" in body:
            self.last = body
        return body

    def done(self, notes: str, artifact: Answer | None = None, **context: Json) -> Answer:
        """Say that the pending step is done."""
        output: Answer = {"notesMarkdown": notes, "artifacts": [artifact] if artifact else []}
        tokens = {name: self.last[name] for name in ("stateToken", "ackToken")}
        return self.call("continue_workflow", **tokens, output=output, context=context)

    def look(self, state_token: Json) -> Answer:
        """Ask where a token stands; nothing is changed."""
        return self.call("continue_workflow", stateToken=state_token)

    def kill(self) -> None:
        """End the server the hard way."""
        self.process.kill()
        self._close()

    def leave(self) -> None:
        self._close()

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait()

    def _request(self, method: str, params: Mapping[str, Json]) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(msgspec.json.encode(request) + b"\n")
        self.process.stdin.flush()
        answer = msgspec.json.decode(self.process.stdout.readline(), type=dict[str, Answer | str | int])
        result = answer["result"]
        assert isinstance(result, dict)
        return result


def _environment() -> dict[str, str]:
    """The user's own settings must not steer a demonstration."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
