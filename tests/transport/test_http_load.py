"""Many clients at once, slow and idle ones among them, and an end under load that loses nothing."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from support.harness import Bench, decision, gate, steps, workflow
from support.http_server import META, MODERN, HttpServer, ModernCaller, require_serve, serving
from support.log import logged_events
from support.paths import FIXTURES

STEPS = [f"s{number}" for number in range(20)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps(*STEPS[:10]), gate("which", "left", "right"), *steps(*STEPS[10:])))
    return bench


Report = dict[str, Any]
Action = Callable[[HttpServer, list[str]], None]


def walk(server: HttpServer, done: list[str]) -> None:
    """Walk a whole run; `done` gets every step that was acknowledged."""
    caller = ModernCaller(f"{server.host}:{server.port}")
    try:
        answer = caller.call("start_workflow", workflowId="test.flow")
        while not answer["isComplete"]:
            tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
            step = answer["pending"]["stepId"]
            report = (
                {"artifacts": [decision("which", "left")]} if step == "which" else {"notesMarkdown": step}
            )
            answer = caller.call("continue_workflow", **tokens, output=report)
            assert answer["kind"] == "ok", answer
            done.append(step)
    finally:
        caller.close()


def together(action: Action, server: HttpServer, clients: int) -> list[list[str]]:
    """Let clients act at the same time; return what each has done."""
    done: list[list[str]] = [[] for _ in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        for future in [pool.submit(action, server, mine) for mine in done]:
            future.result()
    return done


@pytest.mark.slow
def test_two_hundred_clients_at_once_each_finish_their_run(bench: Bench) -> None:
    with serving(bench.folder, "--workflows", str(bench.workflows), "--quiet") as server:
        walked = together(walk, server, 200)
    assert all(done == [*STEPS[:10], "which", *STEPS[10:]] for done in walked)


def test_eight_simultaneous_first_calls_on_a_fresh_server(bench: Bench) -> None:
    def first(server: HttpServer, done: list[str]) -> None:
        caller = ModernCaller(f"{server.host}:{server.port}")
        done.append(caller.call("start_workflow", workflowId="test.flow")["kind"])
        caller.close()

    with serving(bench.folder, "--workflows", str(bench.workflows)) as server:
        assert together(first, server, 8) == [["ok"]] * 8


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
    """Open streams, a call that waits at a gate, busy clients: exit code 0, nothing acknowledged is lost."""
    bench.write(workflow(*steps(*STEPS), id="test.busy"))
    bench.write(workflow(gate("which", "left", "right"), *steps("last"), id="test.gate"))
    server = HttpServer(bench.folder, "--workflows", str(bench.workflows), "--quiet", "--decisions", "user")
    walked: list[list[tuple[str, str]]] = [[] for _ in range(4)]

    async def story() -> int:
        subscribed, opened, waits = anyio.Event(), anyio.Event(), anyio.Event()

        async def listen() -> None:
            params = {"notifications": {"toolsListChanged": True}, "_meta": META}
            body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
            headers = {
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "subscriptions/listen",
                "Accept": "application/json, text/event-stream",
            }
            async with (
                httpx2.AsyncClient(timeout=60) as http,
                http.stream("POST", f"{server.url}/mcp", json=body, headers=headers) as stream,
            ):
                async for _ in stream.aiter_lines():
                    subscribed.set()

        async def old_stream() -> None:
            import mcp

            async with mcp.Client(f"{server.url}/mcp", mode="legacy") as client:
                await client.list_tools()
                opened.set()
                await anyio.sleep_forever()

        async def wait_at_the_gate() -> None:
            import mcp

            async def progress(done: float, total: float | None, message: str | None) -> None:
                waits.set()

            async with mcp.Client(f"{server.url}/mcp", mode=MODERN) as client:
                begun = await client.call_tool("start_workflow", {"workflowId": "test.gate"})
                tokens = {name: begun.structured_content[name] for name in ("stateToken", "ackToken")}
                arguments = {**tokens, "waitSeconds": 55}
                await client.call_tool("continue_workflow", arguments, progress_callback=progress)

        async def until_cut(client: Callable[[], Awaitable[None]]) -> None:
            with suppress(Exception):  # however a client notices that the server has gone
                await client()

        async with anyio.create_task_group() as group:
            for client in (listen, old_stream, wait_at_the_gate):
                group.start_soon(until_cut, client)
            for done in walked:
                group.start_soon(anyio.to_thread.run_sync, keep_walking, server, done)
            for event in (subscribed, opened, waits):
                await event.wait()
            while not all(walked):
                await anyio.sleep(0.01)
            code = await anyio.to_thread.run_sync(server.stop, number)
            group.cancel_scope.cancel()
        return code

    assert anyio.run(story) == 0
    ledger = bench.ledger()
    try:
        for session, step in (done for each in walked for done in each):
            assert step in [row.event.key for row in logged_events(ledger.store, session, "step_completed")]
    finally:
        ledger.store.close()


def keep_walking(server: HttpServer, done: list[tuple[str, str]]) -> None:
    """Walk one run after another until the server is gone; `done` gets what was acknowledged."""
    caller = ModernCaller(f"{server.host}:{server.port}")
    with suppress(http.client.HTTPException, OSError):
        while True:
            answer = caller.call("start_workflow", workflowId="test.busy")
            session = answer["session"]["sessionId"]
            while not answer["isComplete"]:
                tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
                step = answer["pending"]["stepId"]
                answer = caller.call("continue_workflow", **tokens, output={"notesMarkdown": step})
                done.append((session, step))
    caller.close()


def test_a_call_that_cannot_be_cancelled_does_not_keep_the_server_from_exiting() -> None:
    require_serve()
    command = [sys.executable, str(FIXTURES / "stuck_server.py")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        host, _, port = process.stderr.readline().decode().strip().removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert process.stderr.readline() == b"stuck\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        process.kill()
        process.stderr.close()
