"""Many clients at once, slow and idle ones among them, and an end under load that loses nothing."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
import pytest

from support.harness import Bench, decision, gate, steps, workflow
from support.http_server import HttpServer, serving

MODERN = {"MCP-Protocol-Version": "2026-07-28", "Accept": "application/json, text/event-stream"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
}
STEPS = [f"s{number}" for number in range(20)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps(*STEPS[:10]), gate("which", "left", "right"), *steps(*STEPS[10:])))
    return bench


class ModernClient:
    """A client of the modern era on one connection: one POST, one JSON answer."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url
        self._id = 0

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its structured answer."""
        self._id += 1
        params = {"name": tool, "arguments": arguments, "_meta": META}
        body = {"jsonrpc": "2.0", "id": self._id, "method": "tools/call", "params": params}
        headers = {**MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool, "Content-Type": "application/json"}
        answer = await self._http.post(self._url, content=msgspec.json.encode(body), headers=headers)
        assert answer.status_code == 200, answer.text
        return msgspec.json.decode(answer.content)["result"]["structuredContent"]


@asynccontextmanager
async def modern_client(server: HttpServer) -> AsyncIterator[ModernClient]:
    async with httpx2.AsyncClient(timeout=120) as http:
        yield ModernClient(http, f"{server.url}/mcp")


async def walk(client: ModernClient, done: list[str]) -> None:
    """Walk a whole run; `done` gets every step that was acknowledged."""
    answer = await client.call("start_workflow", workflowId="test.flow")
    while not answer["isComplete"]:
        tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
        step = answer["pending"]["stepId"]
        output = {"artifacts": [decision("which", "left")]} if step == "which" else {"notesMarkdown": step}
        answer = await client.call("continue_workflow", **tokens, output=output)
        assert answer["kind"] == "ok", answer
        done.append(step)


@pytest.mark.slow
def test_two_hundred_clients_at_once_each_finish_their_run(bench: Bench) -> None:
    walked: list[list[str]] = [[] for _ in range(200)]

    async def everybody(server: HttpServer) -> None:
        async def one(done: list[str]) -> None:
            async with modern_client(server) as client:
                await walk(client, done)

        async with anyio.create_task_group() as group:
            for done in walked:
                group.start_soon(one, done)

    with serving(bench.folder, "--workflows", str(bench.workflows), "--quiet") as server:
        anyio.run(everybody, server)
    assert all(done == [*STEPS[:10], "which", *STEPS[10:]] for done in walked)


def test_eight_simultaneous_first_calls_on_a_fresh_server(bench: Bench) -> None:
    async def together(server: HttpServer) -> None:
        async def first(done: list[str]) -> None:
            async with modern_client(server) as client:
                done.append((await client.call("start_workflow", workflowId="test.flow"))["kind"])

        answers: list[str] = []
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(first, answers)
        assert answers == ["ok"] * 8

    with serving(bench.folder, "--workflows", str(bench.workflows)) as server:
        anyio.run(together, server)


def test_a_thousand_idle_connections_do_not_lock_others_out(tmp_path: Path) -> None:
    with serving(tmp_path, "--quiet") as server, ExitStack() as connections:
        for _ in range(1000):
            connections.enter_context(socket.create_connection((server.host, server.port), timeout=60))
        assert server.request("GET", "/healthz").status == 200


def test_heads_that_never_end_do_not_keep_others_waiting(tmp_path: Path) -> None:
    with serving(tmp_path, "--quiet") as server, ExitStack() as connections:
        for _ in range(100):
            slow = connections.enter_context(socket.create_connection((server.host, server.port), timeout=60))
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        for _ in range(100):
            slow = connections.enter_context(socket.create_connection((server.host, server.port), timeout=60))
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        assert server.request("GET", "/healthz").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load_ends_the_server_in_order(bench: Bench, number: signal.Signals) -> None:
    """Open subscriptions, a waiting gate and busy clients: exit code 0, and nothing acknowledged is lost."""
    arguments = ("--workflows", str(bench.workflows), "--quiet")
    server = HttpServer(bench.folder, *arguments)
    walked: list[list[str]] = [[] for _ in range(4)]
    sessions: list[str] = []

    async def story() -> int:
        async with anyio.create_task_group() as group:
            subscribed, waits = anyio.Event(), anyio.Event()

            async def listen() -> None:
                params = {"notifications": {"toolsListChanged": True}, "_meta": META}
                body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
                headers = {**MODERN, "Mcp-Method": "subscriptions/listen"}
                async with (
                    httpx2.AsyncClient(timeout=60) as http,
                    http.stream("POST", f"{server.url}/mcp", json=body, headers=headers) as stream,
                ):
                    async for _ in stream.aiter_lines():
                        subscribed.set()

            async def old_stream() -> None:
                import mcp

                async with mcp.Client(f"{server.url}/mcp", mode="legacy") as client:
                    started = await client.call_tool("start_workflow", {"workflowId": "test.flow"})
                    sessions.append(started.structured_content["session"]["sessionId"])
                    waits.set()
                    await anyio.sleep_forever()

            async def busy(done: list[str]) -> None:
                async with modern_client(server) as client:
                    try:
                        await walk(client, done)
                    except httpx2.HTTPError:
                        return

            group.start_soon(listen)
            group.start_soon(old_stream)
            for done in walked:
                group.start_soon(busy, done)
            await subscribed.wait()
            await waits.wait()
            while not all(walked):
                await anyio.sleep(0.01)
            code = await anyio.to_thread.run_sync(server.stop, number)
            group.cancel_scope.cancel()
        return code

    assert anyio.run(story) == 0
    ledger = bench.ledger()
    try:
        from interlock.ledger.queries.status import session_lines
        from interlock.store.protocol import SessionFilter

        stored = session_lines(ledger, SessionFilter("local"))
        assert len(stored) == 5
        recorded = sum(_completed(ledger, line.session_id) for line in stored)
    finally:
        ledger.store.close()
    assert recorded >= sum(len(done) for done in walked)


def _completed(ledger: Any, session_id: str) -> int:
    from support.log import logged_events

    kinds = ("step_completed", "gate_resolved")
    return len(logged_events(ledger.store, session_id, *kinds))
