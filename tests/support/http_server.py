"""The real `interlock serve` as a process on a free port of loopback."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

PACKAGES = ("httptools", "uvloop")
PATIENCE = 60


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class HttpServer:
    """One server on a data directory. Its access log is `log` once it has stopped."""

    def __init__(self, data_dir: Path, *arguments: str, **environment: str) -> None:
        require_serve()
        command = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--data-dir", str(data_dir)]
        self.process = subprocess.Popen(
            [*command, *arguments], stderr=subprocess.PIPE, env={**os.environ, **environment}
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline().decode()
        assert "listening on http://" in first, first + self.process.stderr.read().decode()
        self.url = first.split()[-1].removesuffix("/mcp")
        self.host, _, port = self.url.removeprefix("http://").rpartition(":")
        self.port = int(port)
        self.entrance = self.process.stderr.readline().decode().split()[-1]
        self.log = b""

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the server to exit; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stderr is not None
        self.log += self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(PATIENCE)


def require_serve() -> None:
    """Skip where the packages of `interlock[serve]` are not installed; in CI that is an error."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        reason = f"{missing[0]} of interlock[serve] is not installed; run make"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def serving(data_dir: Path, *arguments: str, **environment: str) -> Iterator[HttpServer]:
    """Serve while the block runs."""
    server = HttpServer(data_dir, *arguments, **environment)
    try:
        yield server
    finally:
        server.stop()
