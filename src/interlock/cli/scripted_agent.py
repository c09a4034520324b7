"""An agent that follows a script: it starts the real stdio server, speaks MCP to it, and can kill it."""

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
    """A chat with one server process. The agent knows only the last answer."""

    def __init__(self, data_dir: Path, *options: str) -> None:
        command = [sys.executable, "-m", "interlock", "mcp", "--data-dir", str(data_dir), *options]
        # The user's own settings must not change what the script shows.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
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

    def acknowledge(self, notes: str, artifact: Answer | None = None, **context: Json) -> Answer:
        """Acknowledge the pending step."""
        output: Answer = {"notesMarkdown": notes, "artifacts": [artifact] if artifact else []}
        tokens = {name: self.last[name] for name in ("stateToken", "ackToken")}
        return self.call("continue_workflow", **tokens, output=output, context=context)

    def rehydrate(self, state_token: Json) -> Answer:
        """Show the position that a token leads to; nothing is changed."""
        return self.call("continue_workflow", stateToken=state_token)

    def kill(self) -> None:
        """Kill the server, as kill -9 does."""
        self.process.kill()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the server then ends."""
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
