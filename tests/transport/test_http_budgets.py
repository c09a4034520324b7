"""What a caller can make the server hold: nothing before it is known, and a bounded number of bytes after."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from interlock.core.principals import Principal
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.transport.http.admission import bodies
from interlock.transport.http.admission.bodies import Bodies
from interlock.transport.http.console import routes
from interlock.transport.http.service import record_in
from support.http_server import bearer, serving

MEGABYTE = 2**20
STRANGERS = 60


def test_strangers_with_large_bodies_cost_no_memory(tmp_path: Path) -> None:
    AccessTokens(tmp_path).add("ada", "user", 1)
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {7 * MEGABYTE}\r\n\r\n".encode()
    with serving(tmp_path, "--quiet", "--rate-limit", "1000") as server, ExitStack() as open_sockets:
        server.request("GET", "/readyz")
        before = server.resident_megabytes()
        for _ in range(STRANGERS):
            stranger = open_sockets.enter_context(socket.create_connection((server.host, server.port), 60))
            stranger.sendall(head + b"x" * 30_000)
            assert b" 401 " in stranger.recv(4096)
        assert server.resident_megabytes() - before < 10


def test_paths_that_are_asked_for_are_not_kept(tmp_path: Path) -> None:
    AccessTokens(tmp_path).add("ada", "user", 1)
    before = len(routes.assets())
    for number in range(1000):
        assert routes.asset(f"{'x' * 1000}/{number}.js") is None
    assert len(routes.assets()) == before


def test_who_signs_in_sends_little(tmp_path: Path) -> None:
    AccessTokens(tmp_path).add("ada", "user", 1)
    body = msgspec.json.encode({"token": "x" * 20_000})
    with serving(tmp_path, "--quiet") as server:
        answer = server.request("POST", "/console/login", body, {"Content-Type": "application/json"})
    assert answer.status == 413


def test_a_principal_that_is_known_is_heard_whole(tmp_path: Path) -> None:
    token = AccessTokens(tmp_path).add("ada", "user", 1)
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * MEGABYTE}})
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with serving(tmp_path, "--quiet") as server:
        answer = server.request("POST", "/mcp", body, {**headers, **bearer(token)})
    assert "send initialize first" in answer.json["error"]["message"], answer.body


@pytest.mark.parametrize(("of_one", "of_all"), [(250, 1000), (1000, 250)])
def test_bytes_that_are_being_answered_count_until_they_are(
    monkeypatch: pytest.MonkeyPatch, of_one: int, of_all: int
) -> None:
    monkeypatch.setattr(bodies, "BYTES_OF_ONE", of_one)
    monkeypatch.setattr(bodies, "BYTES_OF_ALL", of_all)
    statuses: list[int] = []

    async def story() -> None:
        answered = anyio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await answered.wait()
            await send({"type": "http.response.start", "status": 200})

        async def receive() -> Any:
            return {"type": "http.request", "body": b"x" * 100}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def post() -> None:
            scope = {"type": "http", "method": "POST"}
            record_in(scope).principal = Principal("ada")
            await guarded(scope, receive, send)

        guarded = Bodies(app)
        async with anyio.create_task_group() as posts:
            for _ in range(3):
                posts.start_soon(post)
            await anyio.sleep(0.05)
            assert statuses == [429]
            answered.set()
        await post()

    anyio.run(story)
    assert statuses == [429, 200, 200, 200]
