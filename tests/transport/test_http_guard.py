"""Hostile and broken requests are refused, and the server goes on answering others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from interlock.transport.http.admission.bodies import BODY_BYTES
from support.http_server import HttpServer, ImpatientServer, serving
from support.stdio_pipe import Pipe

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PATHS = ["/mcp", "/mcp/session", "/healthz", "/readyz", "/metrics", "/inbox", "/console/", "/nothing"]
UNREADABLE = {
    "NaN": '{"title": NaN}',
    "out of range": '{"title": 1e400}',
    "lone surrogate": '{"title": "\\ud800"}',
    "depth": "[" * 100_000 + "]" * 100_000,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(autouse=True)
def _others_are_answered(server: HttpServer) -> Iterator[None]:
    yield
    assert server.request("GET", "/healthz").status == 200
    assert server.process.poll() is None


@pytest.mark.parametrize("path", PATHS)
def test_another_host_is_refused_on_every_route(server: HttpServer, path: str) -> None:
    answer = server.request("GET", path, headers={"Host": "evil.example:80"})
    assert (answer.status, answer.json["error"]["code"]) == (421, "HOST_NOT_ALLOWED")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "file://"])
def test_a_page_of_another_origin_is_refused_on_every_route(
    server: HttpServer, path: str, origin: str
) -> None:
    answer = server.request("GET", path, headers={"Origin": origin})
    assert (answer.status, answer.json["error"]["code"]) == (403, "ORIGIN_NOT_ALLOWED")


def test_the_servers_own_origin_is_accepted(server: HttpServer) -> None:
    assert server.request("GET", "/healthz", headers={"Origin": server.url}).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lookup", "/healthz"])
def test_a_body_over_the_limit_is_refused_unread(server: HttpServer, path: str) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Length: {50 * 2**20}\r\n\r\n"
    )
    assert _raw(server, head.encode()).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_over_the_limit_is_refused(server: HttpServer) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    assert _raw(server, head.encode() + chunk * (BODY_BYTES // 0x100000 + 1)).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "lines",
    [
        "Host: 127.0.0.1:{port}\r\nHost: evil.example",
        "Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Type: text/plain",
        "Host: 127.0.0.1:{port}\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b",
        "Host: 127.0.0.1:{port}\r\nContent-Length: 1\r\nContent-Length: 2",
        "Host: 127.0.0.1:{port}\r\nContent-Length: -1",
        "Host: 127.0.0.1:{port}\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
        "Host: 127.0.0.1:{port}\r\nBad Name: x",
        "Host: 127.0.0.1:{port}\r\n: x",
        "Host:",
        "X: no host",
    ],
)
def test_malformed_heads_are_refused(server: HttpServer, lines: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\n{lines.format(port=server.port)}\r\n\r\n"
    status = _raw(server, head.encode()).split(b" ", 2)[1]
    assert status in (b"400", b"421")


def test_a_head_without_end_is_cut_off(server: HttpServer) -> None:
    assert _raw(server, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 200_000) in (b"", b"HTTP/1.1 400")


def test_methods_that_nothing_needs_are_refused(server: HttpServer) -> None:
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE"):
        assert server.request(method, "/mcp").status == 405


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/sse", 404, "MCP is at /mcp and at /mcp/execution"),
        ("POST", "/mcp/nothing", 404, "MCP is at /mcp and at /mcp/execution"),
        ("POST", "/healthz", 405, "Use GET"),
        ("DELETE", "/inbox", 405, "Use "),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    server: HttpServer, method: str, path: str, status: int, words: str
) -> None:
    answer = server.request(method, path)
    assert answer.status == status
    assert words in answer.json["error"]["message"]


def test_what_cannot_be_read_is_refused_as_stdio_refuses_it(server: HttpServer) -> None:
    bodies = [
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call",'
        f' "params": {{"name": "start_session", "arguments": {arguments}}}}}'.encode()
        for arguments in UNREADABLE.values()
    ]
    bodies += [b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', b"{", b""]
    with Pipe() as pipe:
        for body in bodies:
            answer = server.request("POST", "/mcp", body, JSON)
            assert (answer.status, answer.json["error"]["code"]) == (400, -32700)
            if body:  # an empty line is no message to stdio
                assert answer.json == pipe.ask(body + b"\n")


def test_a_nul_is_refused_by_the_surface(server: HttpServer) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "start_session", "arguments": {"title": "a\0b"}, "_meta": meta}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "start_session"}
    result = server.request("POST", "/mcp", body, {**JSON, **modern}).json["result"]
    assert result["isError"] is True
    assert "NUL" in result["content"][0]["text"]


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    running = ImpatientServer("connections", tmp_path_factory.mktemp("impatient"))
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("slow", "end"),
    [
        (b"", b""),
        (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", b""),
        (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_who_is_too_slow_is_cut_off(impatient: HttpServer, slow: bytes, end: bytes) -> None:
    assert _raw(impatient, slow) == end
    assert impatient.request("GET", "/healthz").status == 200


def test_of_too_many_connections_the_idlest_makes_room(tmp_path: Path) -> None:
    crowded = ImpatientServer("crowds", tmp_path)
    with ExitStack() as connections:
        idle = [
            connections.enter_context(socket.create_connection((crowded.host, crowded.port), timeout=60))
            for _ in range(30)
        ]
        assert idle[0].recv(1) == b""
        assert crowded.request("GET", "/healthz").status == 200
    crowded.stop()


def _raw(server: HttpServer, request: bytes) -> bytes:
    """Send bytes and return the first bytes of the answer."""
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        with suppress(ConnectionError):
            connection.sendall(request)
        try:
            return connection.recv(12)
        except ConnectionError:
            return b""
