"""What an operator sees: probes that tell the truth, and metrics and a log that hold nobody's secrets."""

from __future__ import annotations

import re
import socket
import sys
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.lock import FileLock
from support.console_client import ConsoleClient
from support.harness import Bench, gate, rotate, steps, workflow
from support.http_server import Answer, HttpServer, ModernCaller, bearer, connected, serving

SECRET = "pelican"


def codes(server: HttpServer) -> tuple[int, int]:
    """How the server answers whether it is alive and whether it is ready."""
    alive, ready = (server.request("GET", path) for path in ("/healthz", "/readyz"))
    return alive.status, ready.status


@pytest.mark.parametrize("how", ["gone", "replaced"])
def test_a_server_that_has_lost_its_database_is_alive_and_not_ready(tmp_path: Path, how: str) -> None:
    database = tmp_path / "interlock.db"
    with serving(tmp_path) as server:
        assert codes(server) == (200, 200)
        database.rename(tmp_path / "away.db")
        if how == "replaced":
            copyfile(tmp_path / "away.db", database)
        assert codes(server) == (200, 503)
        assert server.request("GET", "/readyz").json["error"]["message"] == "STORE_UNAVAILABLE"
        assert b"\ninterlock_ready 0\n" in server.request("GET", "/metrics").body


def test_a_server_on_a_damaged_database_is_alive_and_not_ready(tmp_path: Path) -> None:
    (tmp_path / "interlock.db").write_bytes(b"This is not a database. " * 1000)
    with serving(tmp_path) as server:
        assert codes(server) == (200, 503)
        assert server.request("GET", "/readyz").json["error"]["message"] == "STORE_CORRUPT"


def test_a_server_without_its_keys_is_not_ready(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert codes(server) == (200, 200)
        (tmp_path / "keys" / "keyring.json").write_text("{")
        assert codes(server) == (200, 503)


def test_the_console_says_that_the_keys_cannot_be_read_and_works_again_with_them(tmp_path: Path) -> None:
    token = AccessTokens(tmp_path).add("root", "admin", 1)
    keyring = tmp_path / "keys" / "keyring.json"
    with serving(tmp_path) as server:
        console = ConsoleClient.signed_in(server, token)
        whole = keyring.read_bytes()
        for damage in (b"{", whole.replace(b"key_", b"\xffey_")):
            keyring.write_bytes(damage)
            assert console.page("").status == 200  # the page itself holds no data
            for answer in (console.page("inbox.json"), console.act("decide", {}), sign_in(server, token)):
                assert (answer.status, answer.json["error"]["code"]) == (503, "STORE_UNAVAILABLE")
                assert "cannot be read" in answer.json["error"]["message"]
        keyring.write_bytes(whole)
        assert console.page("inbox.json").status == 200
    assert b"Traceback" not in server.log


def sign_in(server: HttpServer, token: str) -> Answer:
    body, headers = msgspec.json.encode({"token": token}), {"Content-Type": "application/json"}
    return server.request("POST", "/console/login", body, headers)


def test_a_server_whose_database_is_busy_is_ready(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert codes(server) == (200, 200)
        lock = FileLock(tmp_path / "interlock.lock")
        with lock:
            assert codes(server) == (200, 200)
        lock.close()


def test_metrics_and_log_hold_no_token_no_id_and_no_text(tmp_path: Path) -> None:
    """Everything that a client can write is tried: arguments, names of tools, addresses, headers."""
    bench = Bench(tmp_path)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    access = AccessTokens(tmp_path)
    agent, admin = access.add("ada", "user", 1), access.add("root", "admin", 1)
    held = list[str]()

    async def calls(server: HttpServer, mode: str) -> None:
        async with connected(server, "/mcp", agent, mode) as client:
            named = {"workflowId": "test.flow", "context": {"goal": SECRET}, "requestId": SECRET}
            begun = (await client.call_tool("start_workflow", named)).structured_content
            held.extend([begun["stateToken"], begun["ackToken"], begun["session"]["sessionId"]])
            tokens = {"stateToken": begun["stateToken"], "ackToken": begun["ackToken"]}
            await client.call_tool("continue_workflow", {**tokens, "output": {"notesMarkdown": SECRET}})
            await client.call_tool("continue_workflow", {"stateToken": f'{SECRET}"STORE_'})
            await client.read_resource(f"interlock://runs/{begun['session']['sessionId']}/brief")

    async def refused(server: HttpServer, mode: str) -> None:
        import mcp

        async with connected(server, "/mcp", agent, mode) as client:
            for call in (
                client.call_tool(f'{SECRET}"}} 1\ninterlock_forged 1', {}),
                client.get_prompt(SECRET),
                client.read_resource(f"interlock://{SECRET}"),
            ):
                with suppress(mcp.MCPError):
                    await call

    with serving(tmp_path, "--workflows", str(bench.workflows)) as server:
        for mode in ("legacy", "2026-07-28"):
            anyio.run(calls, server, mode)
            anyio.run(refused, server, mode)
        headers = {**bearer(agent), "User-Agent": SECRET, "Referer": SECRET, "X-Request-Id": SECRET}
        server.request("GET", f"/{SECRET}?{SECRET}={SECRET}", headers=headers)
        server.request("GET", "/inbox", headers=bearer(SECRET))
        server.request("POST", "/mcp", SECRET.encode(), headers)
        server.request("POST", "/console/login", msgspec.json.encode({"token": SECRET}), {"Host": SECRET})
        with socket.create_connection((server.host, server.port), timeout=60) as raw:
            raw.sendall(f"{SECRET} /{SECRET} HTTP/1.1\r\nHost: {SECRET}\r\n\r\n".encode())
            raw.recv(4096)
        metrics = server.request("GET", "/metrics", headers=bearer(admin)).body.decode()
    log = server.log.decode()
    for text in (metrics, log):
        assert "continue_workflow" in text
        assert not [word for word in (SECRET, agent, admin, "forged", *held) if word in text]
    assert not re.search(r"ada|root|sess_|run_[a-z2-7]{26}", metrics)
    assert 'outcome="store_failed"' not in metrics
    assert 'tool="unknown",outcome=' in metrics
    assert all(line.startswith("{") for line in log.splitlines()[2:]), log


def test_a_gate_that_waits_and_a_refusal_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))

    async def story(server: HttpServer) -> None:
        async with connected(server, "/mcp", "anyone", "2026-07-28") as client:
            await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            await client.call_tool("start_workflow", {"workflowId": "test.nothing"})

    with serving(tmp_path, "--workflows", str(bench.workflows)) as server:
        anyio.run(story, server)
        shown: Answer = server.request("GET", "/metrics")
    values: dict[str, Any] = dict(
        line.rsplit(" ", 1) for line in shown.body.decode().splitlines() if not line.startswith("#")
    )
    of_call = 'surface="execution",tool="start_workflow"'
    assert values["interlock_gates_waiting"] == "1"
    assert values["interlock_calls_waiting"] == "0"
    assert (values["interlock_messages_waiting"], values["interlock_messages_dead"]) == ("0", "0")
    assert values[f'interlock_calls_total{{{of_call},outcome="ok"}}'] == "1"
    assert values[f'interlock_calls_total{{{of_call},outcome="refused"}}'] == "1"
    assert values[f"interlock_call_seconds_count{{{of_call}}}"] == "2"
    assert values[f'interlock_call_seconds_bucket{{{of_call},le="+Inf"}}'] == "2"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_key_that_is_rotated_while_the_user_answers_a_form_spoils_nothing(
    tmp_path: Path, mode: str
) -> None:
    import mcp
    from mcp.types import ElicitResult

    bench = Bench(tmp_path)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))

    async def answer(_context: Any, params: Any) -> Any:
        await anyio.to_thread.run_sync(rotate, Keys(tmp_path))
        return ElicitResult(action="accept", content={"choice": "right"})

    async def story(server: HttpServer) -> Any:
        async with mcp.Client(f"{server.url}/mcp", mode=mode, elicitation_callback=answer) as client:
            begun = (await client.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content
            tokens = {"stateToken": begun["stateToken"], "ackToken": begun["ackToken"]}
            return (await client.call_tool("continue_workflow", tokens)).structured_content

    with serving(tmp_path, "--workflows", str(bench.workflows)) as server:
        assert anyio.run(story, server)["pending"]["stepId"] == "last"


@pytest.mark.skipif(sys.platform != "linux", reason="no other system limits the files of a running process")
def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(tmp_path: Path) -> None:
    import resource

    bench = Bench(tmp_path)
    bench.write(workflow(*steps("first", "second")))
    with serving(tmp_path, "--workflows", str(bench.workflows), "--quiet") as server:
        caller = ModernCaller(f"{server.host}:{server.port}")
        begun = caller.call("start_workflow", workflowId="test.flow")
        step = {
            "stateToken": begun["stateToken"],
            "ackToken": begun["ackToken"],
            "output": {"notesMarkdown": "x"},
        }
        before = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        refused = caller.call("continue_workflow", **step)
        assert refused["code"] == "STORE_UNAVAILABLE", refused
        assert refused["retry"]["kind"] == "retryable_after_ms"
        assert caller.call("resume_session")["candidates"]
        assert (
            caller.call("continue_workflow", stateToken=begun["stateToken"])["pending"]["stepId"] == "first"
        )
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, before)
        assert caller.call("continue_workflow", **step)["pending"]["stepId"] == "second"
        caller.close()
        assert codes(server) == (200, 200)
