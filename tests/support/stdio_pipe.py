"""A raw pipe to a server, by default to the echo server; the test chooses the bytes that go over it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from support.paths import FIXTURES

ECHO = FIXTURES / "echo_server.py"
PATIENCE = 180.0

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


def request(id: Any, method: str, params: Any = None) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})


def modern(id: Any, method: str, **params: Any) -> bytes:
    return request(id, method, {**params, "_meta": ENVELOPE})


def notification(method: str, params: Any = None) -> bytes:
    return encoded({"jsonrpc": "2.0", "method": method, "params": params or {}})


def response(id: Any, result: Any) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "result": result})


def call(id: Any, tool: str, **arguments: Any) -> bytes:
    return request(id, "tools/call", {"name": tool, "arguments": arguments})


def encoded(message: Any) -> bytes:
    return msgspec.json.encode(message) + b"\n"


def hear_signals() -> None:
    """Let a child hear signals even where the test run itself was told to ignore them."""
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, signal.SIG_DFL)


def readable(fd: int, seconds: float) -> bool:
    """Wait until there is something to read; unlike `select`, at any number of open files."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


class Pipe:
    """The server as a process; what it writes is read line by line."""

    def __init__(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        script: Path = ECHO,
        module: str | None = None,
        cwd: Path | None = None,
    ) -> None:
        program = ["-m", module] if module else [str(script)]
        command = [sys.executable, *program, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            bufsize=0,
            preexec_fn=hear_signals,  # noqa: PLW1509 (no threads here)
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        self._unread = b""

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def send(self, *lines: bytes) -> None:
        for line in lines:
            rest = memoryview(line)
            while rest:
                rest = rest[self.stdin.write(rest) or 0 :]

    def read(self) -> Any:
        while b"\n" not in self._unread:
            chunk = self._chunk()
            assert chunk, f"the server ended: {self.stderr.read().decode()}"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return msgspec.json.decode(line)

    def ask(self, line: bytes) -> Any:
        self.send(line)
        return self.read()

    def initialize(self, **params: Any) -> Any:
        return self.ask(request("init", "initialize", {**INITIALIZE, **params}))

    def rest(self) -> bytes:
        while chunk := self._chunk():
            self._unread += chunk
        return self._unread

    def end(self, sent: signal.Signals | None = None) -> int:
        if sent is None:
            self.stdin.close()
        else:
            self.process.send_signal(sent)
        return self.process.wait(PATIENCE)

    def _chunk(self) -> bytes:
        ready = readable(self.stdout, PATIENCE)
        assert ready, "the server is silent"
        return os.read(self.stdout.fileno(), 65536)


@contextmanager
def opened(*arguments: str, **params: Any) -> Iterator[Pipe]:
    with Pipe(*arguments) as pipe:
        pipe.initialize(**params)
        yield pipe
