"""The real `interlock serve` as a process on a free port of loopback."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from support.paths import FIXTURES

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

    program: tuple[str, ...] = ("-m", "interlock")

    def __init__(
        self, data_dir: Path, *arguments: str, python: str = sys.executable, **environment: str
    ) -> None:
        require_serve()
        command = [python, *self.program, "serve", "--port", "0", "--data-dir", str(data_dir)]
        if not (data_dir / "keys" / "principals.json").exists() and "--oauth-issuer" not in arguments:
            command.append("--no-auth")
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

    def resident_megabytes(self) -> float:
        """Return how much memory the server uses."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the server to exit; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stderr is not None
        self.log += self.process.stderr.read()
        self.process.stderr.close()
        return self.process.wait(PATIENCE)


class ImpatientServer(HttpServer):
    """A server with less patience: with users, with slow connections, or with crowds of idle ones."""

    def __init__(self, whom: str, data_dir: Path, *arguments: str) -> None:
        self.program = (str(FIXTURES / "impatient_server.py"), whom)
        super().__init__(data_dir, *arguments, "--quiet")


MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern-caller", "version": "1"},
}


class UnexpectedStatus(Exception):
    """An answer that is not 200: the status and the body."""


class ModernCaller:
    """A quick client of the modern era on one kept connection: one POST, one JSON answer."""

    def __init__(self, address: str, token: str = "", timeout: float = PATIENCE * 5) -> None:
        self.address = address
        self._connection = http.client.HTTPConnection(address or "unused", timeout=timeout)
        self._token = bearer(token) if token else {}

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its structured answer."""
        return self.result(tool, **arguments)["structuredContent"]

    def result(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return all of its result."""
        self.send(tool, **arguments)
        return self.received()

    def received(self) -> Any:
        """Wait for the answer to the call that was sent."""
        response = self._connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise UnexpectedStatus(response.status, content)
        return modern_result(response.headers["Content-Type"], content)

    def send(self, tool: str, **arguments: Any) -> None:
        """Send a call without waiting for its answer."""
        body, headers = modern_request({"name": tool, "arguments": arguments})
        self._connection.request("POST", "/mcp", body, {**headers, **self._token})

    def close(self) -> None:
        self._connection.close()


def modern_request(
    params: Mapping[str, Any], capabilities: Mapping[str, Any] | None = None
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a tool call of the modern era."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities or {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": params["name"],
    }
    return msgspec.json.encode(message), headers


def modern_result(content_type: str, content: bytes) -> Any:
    """Return the result in an answer of the modern era."""
    if content_type.startswith("text/event-stream"):  # the call could wait
        content = content.rpartition(b"data: ")[2]
    return msgspec.json.decode(content)["result"]


def require_serve() -> None:
    """Skip where a package that only `interlock serve` uses is not installed; in CI that is an error."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        reason = f"{missing[0]} is not installed; run make"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def inbox_answer(asked: Mapping[str, Any], option: str, **more: str) -> dict[str, Any]:
    """Return the body that answers a question as the inbox lists it."""
    names = {"session": "sessionId", "run": "runId", "node": "node", "question": "id", "shown": "shown"}
    return {**{name: asked[listed] for name, listed in names.items()}, "option": option, **more}


@asynccontextmanager
async def connected(server: HttpServer, path: str, token: str, mode: str) -> AsyncIterator[Any]:
    """The official client with a bearer token."""
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=bearer(token), timeout=60) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


@contextmanager
def serving(data_dir: Path, *arguments: str, **environment: str) -> Iterator[HttpServer]:
    """Serve while the block runs."""
    server = HttpServer(data_dir, *arguments, **environment)
    try:
        yield server
    finally:
        server.stop()
