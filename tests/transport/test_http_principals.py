"""Each principal sees only its own sessions; what belongs to another one is not found, on every surface."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from support.cli_process import interlock
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, serving
from support.log import logged_events

MODES = ["legacy", "2026-07-28"]
PEOPLE = {"ada": "user", "bob": "user", "eve": "approver", "root": "admin"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("principals")
    bench = Bench(folder)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    return folder


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    access = AccessTokens(folder)
    return {name: access.add(name, role, 1) for name, role in PEOPLE.items()}  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(folder: Path, tokens: dict[str, str]) -> Iterator[HttpServer]:
    workflows = str(folder / "workflows-under-test")
    with serving(folder, "--workflows", workflows, "--decisions", "user") as running:
        yield running


@asynccontextmanager
async def connected(server: HttpServer, path: str, token: str, mode: str) -> AsyncIterator[Any]:
    """The official client with a bearer token."""
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=bearer(token), timeout=60) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with mcp.Client(transport, mode=mode) as client:
            yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lookup", "/metrics", "/inbox", "/nothing"])
@pytest.mark.parametrize("headers", [{}, bearer("ilk_wrong"), {"Authorization": "Basic YTpi"}, bearer("")])
def test_nothing_but_health_is_answered_without_a_valid_token(
    server: HttpServer, path: str, headers: dict[str, str]
) -> None:
    answer = server.request("GET", path, headers=headers)
    assert (answer.status, answer.json["error"]["code"]) == (401, "UNAUTHORIZED")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert server.request("GET", "/healthz", headers=headers).status == 200


STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "execution": ("start_workflow", {"workflowId": "test.flow", "context": {"goal": "a secret pelican"}}),
    "session": ("start_session", {"workflow_id": "test.flow", "agent_id": "a"}),
    "gated": ("start_session", {"workflow_id": "test.flow"}),
    "navigation": ("nav_start", {"workflow_id": "test.flow"}),
}
WORKFLOW = {"workflowId", "workflow_id"}
NOTES = {"notesMarkdown": "x"}
USES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "execution": [
        ("continue_workflow", {"stateToken": "{st}"}),
        ("continue_workflow", {"stateToken": "{st}", "ackToken": "{ack}"}),
        ("checkpoint_workflow", {"stateToken": "{st}", "checkpointToken": "{chk}", "output": NOTES}),
        ("resume_session", {"query": "pelican"}),
        ("resume_session", {"resumeRef": "{id}"}),
    ],
    "session": [
        ("get_workflow_status", {"session_token": "{ses}"}),
        ("get_workflow", {"session_token": "{ses}"}),
        ("next_activity", {"session_token": "{ses}", "activity_id": "main"}),
        ("get_trace", {"session_token": "{ses}"}),
        ("yield_checkpoint", {"session_token": "{ses}", "checkpoint_id": "which"}),
    ],
    "gated": [
        ("get_workflow", {"session_token": "{ses}"}),
        ("next_activity", {"session_token": "{ses}", "activity_id": "main"}),
        ("respond_checkpoint", {"session_token": "{ses}", "checkpoint_id": "which", "option_id": "left"}),
        ("get_trace", {"session_token": "{ses}"}),
    ],
    "navigation": [
        ("nav_situation", {"state": "{nav}"}),
        ("nav_action", {"state": "{nav}", "action": "complete_step", "step_id": "last"}),
        ("nav_start", {"workflow_id": "test.flow", "parent_state": "{nav}"}),
    ],
}  # fmt: skip
KINDS = {
    "st": r"\bst\.v1\.[A-Za-z0-9_-]+",
    "ack": r"\back\.v1\.[A-Za-z0-9_-]+",
    "chk": r"\bchk\.v1\.[A-Za-z0-9_-]+",
    "ses": r"\bses\.v1\.[A-Za-z0-9_-]+",
    "nav": r"v1\.gzB64\.[A-Za-z0-9+/=_-]+",
    "id": r"sess_[a-z0-9]+",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("surface", list(STARTS))
def test_tokens_of_another_principal_are_not_found(
    server: HttpServer, tokens: dict[str, str], surface: str, mode: str
) -> None:
    async def story() -> None:
        async with connected(server, f"/mcp/{surface}", tokens["ada"], mode) as ada:
            begun = (await ada.call_tool(*STARTS[surface])).model_dump_json()
            found = {kind: re.search(pattern, begun) for kind, pattern in KINDS.items()}
            held = {kind: match.group() for kind, match in found.items() if match}
            async with connected(server, f"/mcp/{surface}", tokens["bob"], mode) as bob:
                for tool, template in USES[surface]:
                    arguments = msgspec.json.decode(_filled(template, held))
                    answer = await bob.call_tool(tool, arguments)
                    text = answer.model_dump_json()
                    refused = "Nothing is stored" in text or '"success":false' in text
                    assert answer.is_error or refused, (tool, text)
                    assert not re.search("VALIDATION|unknown field|INVALID_ARG", text), (tool, text)
                    assert "pelican" not in text.replace("query", "")
                    assert not re.search(r"which\?|Do last", text)
            own = USES[surface][0]
            still = await ada.call_tool(own[0], msgspec.json.decode(_filled(own[1], held)))
            assert not still.is_error, still.model_dump_json()

    anyio.run(story)


def _filled(template: dict[str, Any], held: dict[str, str]) -> bytes:
    text = msgspec.json.encode(template).decode()
    for kind, token in held.items():
        text = text.replace(f"{{{kind}}}", token)
    return text.encode()


@pytest.mark.filterwarnings("ignore:resources/")
@pytest.mark.parametrize("mode", MODES)
def test_the_runs_of_another_principal_are_no_resources(
    server: HttpServer, tokens: dict[str, str], mode: str
) -> None:
    import mcp

    async def story() -> None:
        async with connected(server, "/mcp", tokens["ada"], mode) as ada:
            begun = (await ada.call_tool(*STARTS["execution"])).structured_content
            session = begun["session"]["sessionId"]
            for kind in ("brief", "transcript"):
                uri = f"interlock://runs/{session}/{kind}"
                assert (await ada.read_resource(uri)).contents
                async with connected(server, "/mcp", tokens["bob"], mode) as bob:
                    with pytest.raises(mcp.MCPError, match="not found"):
                        await bob.read_resource(uri)
                    subscribing = (
                        bob.subscribe_resource(uri)
                        if mode == "legacy"
                        else bob.listen(resource_subscriptions=[uri]).__aenter__()
                    )
                    with pytest.raises(mcp.MCPError, match="not found"):
                        await subscribing
                    assert "pelican" not in (await bob.get_prompt("resume")).model_dump_json()

    anyio.run(story)


def test_the_mcp_session_of_another_principal_is_not_found(
    server: HttpServer, tokens: dict[str, str]
) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    opened = server.request("POST", "/mcp", body, {**headers, **bearer(tokens["ada"])})
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ping = msgspec.json.encode({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert server.request("POST", "/mcp", ping, {**headers, **session, **bearer(tokens["ada"])}).status == 200
    assert server.request("POST", "/mcp", ping, {**headers, **session, **bearer(tokens["bob"])}).status == 404
    assert server.request("DELETE", "/mcp", headers={**session, **bearer(tokens["bob"])}).status == 404


def test_an_approver_decides_for_others_and_is_named(
    server: HttpServer, tokens: dict[str, str], folder: Path
) -> None:
    async def begun() -> Any:
        async with connected(server, "/mcp", tokens["ada"], "2026-07-28") as ada:
            return (await ada.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content

    async def gone_on(held: Any) -> Any:
        async with connected(server, "/mcp", tokens["ada"], "2026-07-28") as ada:
            return (await ada.call_tool("continue_workflow", held)).structured_content

    started = anyio.run(begun)
    session = started["session"]["sessionId"]
    listed = server.request("GET", "/inbox", headers=bearer(tokens["eve"])).json["questions"]
    shown = next(question["shown"] for question in listed if question["sessionId"] == session)
    decision = {"session": session, "question": "which", "shown": shown, "option": "right", "note": "seen"}
    for name, status in (("ada", 403), ("bob", 403)):
        answer = server.request("POST", "/inbox", msgspec.json.encode(decision), bearer(tokens[name]))
        assert answer.status == status
    unseen = msgspec.json.encode(decision | {"shown": "sha256:another"})
    refused = server.request("POST", "/inbox", unseen, bearer(tokens["eve"]))
    assert (refused.status, "shown" in refused.json["error"]["message"]) == (409, True)
    for status in (200, 409):
        answer = server.request("POST", "/inbox", msgspec.json.encode(decision), bearer(tokens["eve"]))
        assert answer.status == status
    assert session.encode() not in server.request("GET", "/inbox", headers=bearer(tokens["bob"])).body
    held = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
    assert anyio.run(gone_on, held)["pending"]["stepId"] == "last"
    ledger = Bench(folder).ledger(owner="ada")
    try:
        (decided,) = logged_events(ledger.store, session, "decision_recorded")
    finally:
        ledger.store.close()
    assert msgspec.to_builtins(decided.event) | {"channel": "console", "by": "eve", "note": "seen"} == (
        msgspec.to_builtins(decided.event)
    )


def test_only_an_admin_reads_the_metrics(server: HttpServer, tokens: dict[str, str]) -> None:
    assert server.request("GET", "/metrics", headers=bearer(tokens["ada"])).status == 403
    text = server.request("GET", "/metrics", headers=bearer(tokens["root"])).body.decode()
    assert "interlock_calls_total" in text
    assert not re.search(r"ilk_|sess_|pelican|ada", text)


@pytest.mark.parametrize("surface", list(STARTS))
def test_calls_that_the_store_failed_are_counted(tmp_path: Path, surface: str) -> None:
    (tmp_path / "interlock.db").write_bytes(b"This is not a database. " * 500)

    async def story(server: HttpServer) -> None:
        async with connected(server, f"/mcp/{surface}", "anyone", "2026-07-28") as client:
            tool, arguments = STARTS[surface]
            await client.call_tool(
                tool, {**arguments, **dict.fromkeys(arguments.keys() & WORKFLOW, "wr.small_task")}
            )

    with serving(tmp_path) as server:
        anyio.run(story, server)
        text = server.request("GET", "/metrics").body.decode()
    assert f'surface="{surface}",tool="{STARTS[surface][0]}",outcome="store_failed"}} 1' in text


def test_a_revoked_token_is_refused_at_once(server: HttpServer, folder: Path) -> None:
    access = AccessTokens(folder)
    token = access.add("gone", "user", 1)
    assert server.request("GET", "/inbox", headers=bearer(token)).status == 200
    assert access.revoke("gone")
    assert server.request("GET", "/inbox", headers=bearer(token)).status == 401


def test_too_many_requests_are_told_when_to_come_again(folder: Path, tokens: dict[str, str]) -> None:
    with serving(folder, "--rate-limit", "0.001") as limited:
        answers = [limited.request("GET", "/inbox", headers=bearer(tokens["ada"])) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 429, 429]
        assert int(answers[1].headers["retry-after"]) >= 1
        assert limited.request("GET", "/inbox", headers=bearer(tokens["bob"])).status == 200


def test_the_access_log_names_the_principal_and_holds_no_token(folder: Path, tokens: dict[str, str]) -> None:
    running = HttpServer(folder)
    running.request("GET", "/inbox?token=secret", headers=bearer(tokens["ada"]))
    running.request("GET", "/made/up/by/a/client", headers=bearer(tokens["ada"]))
    assert running.stop() == 0
    lines = [msgspec.json.decode(line) for line in running.log.splitlines() if line.startswith(b"{")]
    assert [(line["principal"], line["route"], line["status"]) for line in lines] == [
        ("ada", "/inbox", 200), ("ada", "other", 404),
    ]  # fmt: skip
    assert b"ilk_" not in running.log
    assert b"secret" not in running.log


def test_the_command_line_gives_lists_and_revokes_tokens(tmp_path: Path) -> None:
    token = interlock(tmp_path, "auth", "add", "ada", "--role", "approver").out.strip()
    assert token.startswith("ilk_")
    assert token not in (tmp_path / "keys" / "principals.json").read_text()
    assert interlock(tmp_path, "auth", "list", "--json").json[0]["role"] == "approver"
    assert interlock(tmp_path, "auth", "add", "ada").code == 2
    assert interlock(tmp_path, "auth", "add", "local").code == 2
    assert interlock(tmp_path, "auth", "revoke", "ada").code == 0
    assert interlock(tmp_path, "auth", "revoke", "ada").code == 3


@pytest.mark.parametrize("more", [(), ("--allowed-hosts", "interlock.example")])
def test_a_server_off_loopback_refuses_to_start_without_tokens(tmp_path: Path, more: tuple[str, ...]) -> None:
    refused = interlock(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0", *more)
    assert refused.code == 2
    assert "interlock auth add" in refused.err
