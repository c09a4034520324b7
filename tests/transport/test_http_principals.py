"""Who may call, what a role allows, and what the metrics and the log say about it."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from starlette.types import Message, Receive, Scope, Send

from interlock.core.principals import Principal
from interlock.ledger.log.chain import kind_of
from interlock.ledger.queries.log_lines import event_lines
from interlock.ledger.queries.status import find_session
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_markdown
from interlock.store.protocol import SessionRow
from interlock.transport.http.admission.principals import Identification
from support.cli_process import interlock
from support.console_client import ConsoleClient
from support.harness import Bench, gate, steps, workflow
from support.http_server import (
    META,
    MODERN,
    HttpServer,
    ModernCaller,
    UnexpectedStatus,
    bearer,
    connected,
    inbox_answer,
    serving,
)
from support.log import logged_events
from support.stdio_pipe import INITIALIZE

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PEOPLE = {"ada": "user", "bob": "user", "eve": "approver", "root": "admin", "prometheus": "metrics"}


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
    assert b"Traceback" not in running.log


def said(method: str, params: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


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


def test_an_approver_decides_and_is_named(server: HttpServer, tokens: dict[str, str], folder: Path) -> None:
    async def begun() -> Any:
        async with connected(server, "/mcp", tokens["ada"], "2026-07-28") as ada:
            return (await ada.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content

    async def gone_on(held: Any) -> Any:
        async with connected(server, "/mcp", tokens["ada"], "2026-07-28") as ada:
            return (await ada.call_tool("continue_workflow", held)).structured_content

    started = anyio.run(begun)
    session = started["session"]["sessionId"]
    listed = server.request("GET", "/inbox", headers=bearer(tokens["eve"])).json["questions"]
    asked = next(question for question in listed if question["sessionId"] == session)
    decision = inbox_answer(asked, "right", note="seen")
    for name, status in (("ada", 403), ("bob", 403)):
        answer = server.request("POST", "/inbox", msgspec.json.encode(decision), bearer(tokens[name]))
        assert answer.status == status
    unseen = msgspec.json.encode(decision | {"shown": "sha256:another"})
    refused = server.request("POST", "/inbox", unseen, bearer(tokens["eve"]))
    assert (refused.status, refused.json["error"]["code"]) == (409, "QUESTION_CHANGED")
    assert refused.json["question"] == {name: asked[name] for name in asked if name != "owner"}
    for status in (200, 409):
        answer = server.request("POST", "/inbox", msgspec.json.encode(decision), bearer(tokens["eve"]))
        assert answer.status == status
    assert session.encode() not in server.request("GET", "/inbox", headers=bearer(tokens["bob"])).body
    held = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
    assert anyio.run(gone_on, held)["pending"]["stepId"] == "last"
    ledger = Bench(folder).ledger(owner="ada")
    try:
        events = logged_events(ledger.store, session)
        kinds = {kind_of(event.event): event.principal for event in events}
        row = find_session(ledger, session)
        assert isinstance(row, SessionRow)
        transcript = as_markdown(export_session(ledger.store, row, ledger.pins, ledger.clock()))
        lines = event_lines(ledger, session, ["decision_recorded", "gate_resolved"], end=len(events))
    finally:
        ledger.store.close()
    assert kinds.pop("decision_recorded") == "eve"
    assert set(kinds.values()) == {"ada"}
    assert [line.summary("ada").partition(" ")[0] for line in lines] == ["eve:", "which:"]
    assert "which: right (by eve, channel inbox (user)" in transcript


def test_only_a_monitoring_system_and_an_admin_read_the_metrics(
    server: HttpServer, tokens: dict[str, str]
) -> None:
    for name in ("ada", "eve"):
        assert server.request("GET", "/metrics", headers=bearer(tokens[name])).status == 403
    for name in ("root", "prometheus"):
        text = server.request("GET", "/metrics", headers=bearer(tokens[name])).body.decode()
        assert "interlock_calls_total" in text
        assert not re.search(r"ilk_|sess_|pelican|ada", text)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lookup", "/session/mcp", "/inbox", "/metrics/x", "/nothing"])
def test_a_token_for_metrics_opens_nothing_else(
    server: HttpServer, tokens: dict[str, str], path: str
) -> None:
    headers = bearer(tokens["prometheus"])
    for method in ("GET", "POST", "DELETE"):
        refused = server.request(method, path, said("tools/list", {}), {**JSON, **headers})
        assert (refused.status, refused.json["error"]["code"]) == (403, "FORBIDDEN")
    assert [server.request("GET", path, headers=headers).status for path in ("/healthz", "/readyz")] == [
        200,
        200,
    ]


def test_a_token_for_metrics_does_not_open_the_console(server: HttpServer, tokens: dict[str, str]) -> None:
    body = msgspec.json.encode({"token": tokens["prometheus"]})
    refused = server.request("POST", "/console/login", body, {"Content-Type": "application/json"})
    assert refused.status == 401


def test_a_text_that_is_not_utf8_is_refused(server: HttpServer, tokens: dict[str, str]) -> None:
    decided = server.request("POST", "/inbox", b'{"session": "\xff"}', bearer(tokens["eve"]))
    assert (decided.status, decided.json["error"]["code"]) == (400, "BAD_BODY")
    signed_in = server.request("POST", "/console/login", b'{"token": "\xff"}', JSON)
    assert (signed_in.status, signed_in.json["error"]["code"]) == (401, "UNAUTHORIZED")
    console = ConsoleClient.signed_in(server, tokens["eve"])
    csrf = {"X-Interlock-Csrf": console.page("csrf.json").json["csrf"]}
    acted = server.request(
        "POST", "/console/do/decide", b'{"sessionId": "\xff"}', {**console.headers, **csrf}
    )
    assert (acted.status, acted.json["error"]["code"]) == (400, "VALIDATION_ERROR")


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


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_an_open_stream_ends_when_its_token_is_revoked(server: HttpServer, folder: Path, era: str) -> None:
    access, bench = AccessTokens(folder), Bench(folder)
    headers = {**JSON, **bearer(access.add("leaving", "user", 1))}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    if era == "modern":
        wanted = {"promptsListChanged": True}
        params = {"notifications": wanted, "_meta": META}
        headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
        connection.request("POST", "/mcp", said("subscriptions/listen", params), headers)
    else:
        opened = server.request("POST", "/mcp", said("initialize", INITIALIZE), headers)
        headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        server.request("POST", "/mcp", said("prompts/list", {}), headers)
        connection.request("GET", "/mcp", headers=headers)
    stream = connection.getresponse()
    bench.write(workflow(*steps("first"), id=f"test.heard_{era}"))
    while b"notifications/prompts/list_changed" not in (line := stream.readline()):
        assert line, "the stream has ended"
    assert access.revoke("leaving")
    bench.write(workflow(*steps("first"), id=f"test.unheard_{era}"))
    assert b"list_changed" not in stream.read(), "the end of the stream, and nothing before it"
    connection.close()
    assert server.request("POST", "/mcp", said("ping", {}), headers).status == 401


@pytest.mark.parametrize(
    ("seconds", "heard"), [(0.4, b"one, two, three"), (0.9, b"one, two, "), (1.0, b"one, ")]
)
def test_what_a_stream_sends_later_is_sent_only_with_a_valid_token(seconds: float, heard: bytes) -> None:
    sent: list[bytes] = []
    known: dict[str, Principal] = {"token": Principal("ada")}
    now = 0.0

    class Known:
        async def principal_of(self, token: str) -> Principal | None:
            return known.get(token)

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal now
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in (b"one, ", b"two, "):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            known.clear()
            now += seconds
        await anyio.lowlevel.checkpoint()
        await send({"type": "http.response.body", "body": b"three"})

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/mcp", "headers": [(b"authorization", b"Bearer token")]}
    anyio.run(Identification(stream, Known(), None, lambda: now), scope, receive, send)
    assert b"".join(sent) == heard


def test_a_call_that_waits_while_its_token_is_revoked_is_not_answered(tmp_path: Path) -> None:
    bench, access = Bench(tmp_path), AccessTokens(tmp_path)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    tokens = {name: access.add(name, role, 1) for name, role in (("ada", "user"), ("eve", "approver"))}
    with serving(tmp_path, "--workflows", str(bench.workflows), "--decisions", "user") as server:
        ada = ModernCaller(f"{server.host}:{server.port}", tokens["ada"])
        held = ada.call("start_workflow", workflowId="test.flow")
        at_gate = {name: held[name] for name in ("stateToken", "ackToken")}
        ada.send("continue_workflow", **at_gate, waitSeconds=30)
        time.sleep(1.5)
        assert access.revoke("ada")
        asked = server.request("GET", "/inbox", headers=bearer(tokens["eve"])).json["questions"][0]
        answer = msgspec.json.encode(inbox_answer(asked, "left"))
        assert server.request("POST", "/inbox", answer, bearer(tokens["eve"])).status == 200
        with pytest.raises(UnexpectedStatus) as refused:
            ada.received()
        assert refused.value.args[0] == 401
        ada.close()


def test_too_many_requests_are_told_when_to_come_again(folder: Path, tokens: dict[str, str]) -> None:
    """Principals have an allowance each, by token and by cookie; unknown callers have that of an address."""
    with serving(folder, "--rate-limit", "0.001") as limited:
        bob = ConsoleClient.signed_in(limited, tokens["bob"])  # uses up what unknown callers have
        assert limited.request("GET", "/mcp", headers=bearer("ilk_guessed")).status == 429
        assert limited.request("GET", "/readyz").status == 429
        assert limited.request("GET", "/healthz").status == 200
        answers = [limited.request("GET", "/inbox", headers=bearer(tokens["ada"])) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 429, 429]
        assert int(answers[1].headers["retry-after"]) >= 1
        assert [bob.page("runs.json").status for _ in range(2)] == [200, 429]
        assert limited.request("GET", "/inbox", headers=bearer(tokens["bob"])).status == 429
        assert limited.request("GET", "/inbox", headers=bearer(tokens["eve"])).status == 200


def test_too_many_requests_at_a_time_are_told_when_to_come_again(
    folder: Path, tokens: dict[str, str]
) -> None:
    with serving(folder, "--concurrency-limit", "1") as limited:
        streams = {"Accept": "text/event-stream", "Last-Event-ID": "0"}
        ada, bob = (ConsoleClient.signed_in(limited, tokens[name]) for name in ("ada", "bob"))
        connection = http.client.HTTPConnection(limited.host, limited.port, timeout=60)
        connection.request("GET", "/console/live", headers={**ada.headers, **streams})
        assert connection.getresponse().status == 200
        refused = ada.page("runs.json")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert limited.request("GET", "/inbox", headers=bearer(tokens["ada"])).status == 429
        assert bob.page("runs.json").status == 200
        connection.close()


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
    assert interlock(tmp_path, "auth", "list", "--json").json["principals"][0]["role"] == "approver"
    assert interlock(tmp_path, "auth", "add", "ada").code == 2
    assert interlock(tmp_path, "auth", "add", "local").code == 2
    assert interlock(tmp_path, "auth", "revoke", "ada").code == 0
    assert interlock(tmp_path, "auth", "revoke", "ada").code == 3


@pytest.mark.parametrize("more", [(), ("--allowed-hosts", "interlock.example")])
def test_a_server_off_loopback_refuses_to_start_without_tokens(tmp_path: Path, more: tuple[str, ...]) -> None:
    refused = interlock(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0", *more)
    assert refused.code == 2
    assert "interlock auth add" in refused.err
