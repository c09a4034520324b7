"""What a client sends wrongly over HTTP is refused with what to do about it; nothing hangs or fails."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from support.harness import Bench, gate, steps, workflow
from support.http_server import (
    META,
    MODERN,
    PATIENCE,
    Answer,
    HttpServer,
    ImpatientServer,
    bearer,
    serving,
)

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
MODERN_LIST = {**LIST, "params": {"_meta": META}}
MODERN_HEADERS = {**JSON, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("messages"))
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def server(bench: Bench) -> Iterator[HttpServer]:
    running = HttpServer(bench.folder, "--workflows", str(bench.workflows))
    yield running
    assert running.stop() == 0
    assert b"Traceback" not in running.log
    assert b'"status":500' not in running.log


class Session:
    """A session of the handshake era, spoken by hand."""

    def __init__(
        self, server: HttpServer, token: Mapping[str, str] | None = None, version: str = "2025-11-25"
    ) -> None:
        self.server = server
        self.headers = {**JSON, **(token or {})}
        asked = message(1, "initialize", {**INITIALIZE, "protocolVersion": version})
        opened = server.request("POST", "/mcp", asked, self.headers)
        self.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, body: Any) -> Answer:
        """Send a message and read the whole answer."""
        return self.server.request("POST", "/mcp", msgspec.json.encode(body), self.headers)

    def ask(self, id: Any, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return the message that answers it."""
        answer = self.server.request("POST", "/mcp", message(id, method, params), self.headers)
        return msgspec.json.decode(answer.body.rpartition(b"data: ")[2])

    def started(self) -> dict[str, str]:
        """Start a run that waits at its gate at once; return its tokens."""
        params = {"name": "start_workflow", "arguments": {"workflowId": "test.flow"}}
        answer = self.ask("start", "tools/call", params)["result"]["structuredContent"]
        return {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}


class OpenCall:
    """A call whose stream is read message by message."""

    def __init__(self, session: Session, id: Any, tool: str, arguments: Mapping[str, Any]) -> None:
        self.connection = http.client.HTTPConnection(
            session.server.host, session.server.port, timeout=PATIENCE
        )
        body = message(id, "tools/call", {"name": tool, "arguments": arguments})
        self.connection.request("POST", "/mcp", body, session.headers)
        self.response = self.connection.getresponse()

    def read(self) -> Any:
        while not (line := self.response.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
        return msgspec.json.decode(line.removeprefix(b"data: "))

    def close(self) -> None:
        self.connection.close()


def message(id: Any, method: str, params: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def without(headers: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}


REFUSED: dict[str, tuple[Any, Mapping[str, str], int, int, str]] = {
    "no type": (LIST, without(JSON, "Content-Type"), 415, -32600, "Content-Type: application/json"),
    "text": (LIST, {**JSON, "Content-Type": "text/plain"}, 415, -32600, "Content-Type: application/json"),
    "a type that begins alike": (
        MODERN_LIST,
        {**MODERN_HEADERS, "Content-Type": "application/json-rpc"},
        415,
        -32600,
        "Content-Type: application/json",
    ),
    "accepts nothing": (MODERN_LIST, without(MODERN_HEADERS, "Accept"), 406, -32600, "Accept: application/"),
    "accepts no stream": (
        {**LIST, "method": "initialize", "params": INITIALIZE},
        {**JSON, "Accept": "application/json"},
        406,
        -32600,
        "Accept: application/json, text/event-stream",
    ),
    "listens without a stream": (
        {**MODERN_LIST, "method": "subscriptions/listen"},
        {**MODERN_HEADERS, "Accept": "application/json", "Mcp-Method": "subscriptions/listen"},
        406,
        -32600,
        "text/event-stream",
    ),
    "a batch": ([LIST, LIST], JSON, 400, -32600, "only version 2025-03-26 of the protocol has batches"),
    "a batch that initializes": (
        [{**LIST, "method": "initialize"}],
        JSON,
        400,
        -32600,
        "initialize is not part of a batch",
    ),
    "an empty batch": ([], JSON, 400, -32600, "a message is an object"),
    "no message": ({"jsonrpc": "2.0", "id": 7}, JSON, 400, -32600, "a message has a method"),
    "another JSON-RPC": ({**LIST, "jsonrpc": "1.0"}, JSON, 400, -32600, 'jsonrpc must be "2.0"'),
    "a list of params": ({**LIST, "params": []}, JSON, 400, -32600, "params must be an object"),
    "a null id": ({**MODERN_LIST, "id": None}, MODERN_HEADERS, 400, -32600, "a string or an integer"),
    "a broken id": ({**MODERN_LIST, "id": 1.5}, MODERN_HEADERS, 400, -32600, "a string or an integer"),
    "the id of the SDK's own stream": (
        {**LIST, "id": "_GET_stream"},
        {**JSON, "Mcp-Session-Id": "x"},
        400,
        -32600,
        "use another id",
    ),
    "a proxy took the version": (MODERN_LIST, JSON, 400, -32020, "a proxy may have removed it"),
    "two versions": (
        MODERN_LIST,
        {**JSON, "MCP-Protocol-Version": "2025-06-18"},
        400,
        -32020,
        "must name the version in _meta",
    ),
    "an unknown version": (
        LIST,
        {**JSON, "MCP-Protocol-Version": "2099-01-01"},
        400,
        -32022,
        '"supported":["2024-11-05"',
    ),
    "no session": (LIST, JSON, 400, -32600, "send initialize first"),
    "an unknown session": (LIST, {**JSON, "Mcp-Session-Id": "gone"}, 404, -32600, "send initialize without"),
    "an unknown method that asks for progress": (
        {**LIST, "method": "nope", "params": {"_meta": {**META, "progressToken": 1}}},
        {**MODERN_HEADERS, "Mcp-Method": "nope"},
        404,
        -32601,
        "Method not found",
    ),
    "a made-up cursor": (
        {**LIST, "params": {"_meta": META, "cursor": "made-up"}},
        MODERN_HEADERS,
        400,
        -32602,
        "call again without cursor",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_may_not_be_sent_is_refused_with_what_to_do(server: HttpServer, kind: str) -> None:
    body, headers, status, code, words = REFUSED[kind]
    answer = server.request("POST", "/mcp", msgspec.json.encode(body), headers)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert words.encode() in answer.body.replace(b'\\"', b'"')
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"MCP-Protocol-Version": MODERN}, 405, b"POST subscriptions/listen"),
        ({}, 400, b"send initialize first"),
        ({"Mcp-Session-Id": "gone"}, 404, b"send initialize without Mcp-Session-Id"),
    ],
    ids=["modern", "no session", "an unknown session"],
)
def test_a_stream_without_a_session_is_refused_with_what_to_do(
    server: HttpServer, method: str, headers: dict[str, str], status: int, words: bytes
) -> None:
    answer = server.request(method, "/mcp", None, {**JSON, **headers})
    assert answer.status == status
    assert words in answer.body


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "Application/JSON; charset=utf-8"},
        {"Accept": "*/*"},
        {"Accept": "TEXT/*, application/json;q=0.1"},
    ],
)
def test_other_spellings_of_a_header_are_understood(server: HttpServer, headers: dict[str, str]) -> None:
    assert server.request("POST", "/mcp", message(1, "initialize", INITIALIZE), JSON | headers).status == 200


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tools/call", {"name": "list_workflows", "arguments": '{"a": 1}'}, "arguments: must be an object"),
        ("tools/call", {"arguments": {}}, "name: Field required"),
        ("tools/list", {"cursor": "made-up"}, "call again without cursor"),
        ("prompts/list", {"cursor": "made-up"}, "call again without cursor"),
        ("resources/list", {"cursor": "made-up"}, "call again without cursor"),
        ("resources/read", {"uri": 5}, "uri: Input should be a valid string"),
    ],
)
def test_wrong_parameters_are_named(server: HttpServer, method: str, params: Any, words: str) -> None:
    error = Session(server).ask(2, method, params)["error"]
    assert error["code"] == -32602
    assert words in error["message"]


def test_nothing_is_served_to_a_session_whose_initialize_was_refused(server: HttpServer) -> None:
    opened = server.request("POST", "/mcp", message(1, "initialize", {"protocolVersion": "2025-11-25"}), JSON)
    headers = {**JSON, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    assert b"params.capabilities: Field required" in opened.body
    answer = server.request("POST", "/mcp", message(2, "tools/list", {}), headers)
    assert b"initialize must come first" in answer.body


def test_a_stream_that_cannot_be_resumed_is_opened_anew(server: HttpServer) -> None:
    session = Session(server)
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)) as connection:
        connection.request("GET", "/mcp", headers={**session.headers, "Last-Event-ID": "made-up"})
        assert connection.getresponse().status == 200


@pytest.mark.parametrize("second", [5, "5"])
def test_an_id_that_is_not_answered_yet_is_refused_and_the_first_call_is_answered(
    server: HttpServer, second: Any
) -> None:
    session = Session(server)
    with closing(OpenCall(session, 5, "continue_workflow", session.started())) as call:
        form = call.read()
        refused = session.post({"jsonrpc": "2.0", "id": second, "method": "ping"})
        assert (refused.status, b"use another id" in refused.body) == (400, True)
        content = {"action": "accept", "content": {"choice": "left"}}
        session.post({"jsonrpc": "2.0", "id": form["id"], "result": content})
        assert call.read()["result"]["structuredContent"]["pending"]["stepId"] == "last"


def test_an_id_can_be_used_again_once_it_is_answered(server: HttpServer) -> None:
    session = Session(server)
    for _ in range(20):
        assert session.ask(5, "ping", {}) == {"jsonrpc": "2.0", "id": 5, "result": {}}


NO_ANSWERS: dict[str, dict[str, Any]] = {
    "an unknown action": {"result": {"action": "perhaps"}},
    "no action": {"result": {}},
    "a list": {"result": []},
    "nothing": {"result": None},
    "a text as content": {"result": {"action": "accept", "content": "left"}},
    "deep content": {"result": {"action": "accept", "content": {"choice": {"a": [1]}}}},
    "an unknown option": {"result": {"action": "accept", "content": {"choice": "up"}}},
    "an error": {"error": {"code": -32601, "message": "Method not found"}},
    "half an error": {"error": {}},
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_what_is_no_answer_to_a_form_counts_as_none(server: HttpServer, kind: str) -> None:
    session = Session(server)
    with closing(OpenCall(session, 5, "continue_workflow", session.started())) as call:
        sent = session.post({"jsonrpc": "2.0", "id": call.read()["id"], **NO_ANSWERS[kind]})
        assert sent.status == 202
        assert call.read()["result"]["structuredContent"]["kind"] == "blocked"


def test_a_second_answer_to_a_form_changes_nothing(server: HttpServer) -> None:
    session = Session(server)
    tokens = session.started()
    with closing(OpenCall(session, 5, "continue_workflow", tokens)) as call:
        form = call.read()["id"]
        for choice in ("left", "right"):
            content = {"action": "accept", "content": {"choice": choice}}
            assert session.post({"jsonrpc": "2.0", "id": form, "result": content}).status == 202
        first = call.read()["result"]
    again = session.ask(6, "tools/call", {"name": "continue_workflow", "arguments": tokens})["result"]
    assert again["structuredContent"] == first["structuredContent"]


def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_no_traceback(bench: Bench) -> None:
    with serving(bench.folder) as server:
        head = f"POST /mcp HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Length: 100\r\n\r\n{{"
        with socket.create_connection((server.host, server.port), timeout=PATIENCE) as connection:
            connection.sendall(head.encode())
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert b"Traceback" not in server.log
    assert b'"status":499' in server.log


def test_of_too_many_sessions_of_a_principal_the_one_unused_for_longest_ends(tmp_path: Path) -> None:
    access = AccessTokens(tmp_path)
    ada, bob = (bearer(access.add(name, "user", 1)) for name in ("ada", "bob"))
    crowded = ImpatientServer("crowds", tmp_path)
    try:
        others = Session(crowded, bob)
        listening, used, unused = (Session(crowded, ada) for _ in range(3))
        with closing(http.client.HTTPConnection(crowded.host, crowded.port, timeout=PATIENCE)) as connection:
            connection.request("GET", "/mcp", headers=listening.headers)
            assert connection.getresponse().status == 200
            used.ask(2, "ping", {})
            Session(crowded, ada)
            ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
            statuses = [session.post(ping).status for session in (others, listening, used, unused)]
        assert statuses == [200, 200, 200, 404]
    finally:
        crowded.stop()


@pytest.mark.parametrize("surface", ["execution", "session", "gated", "navigation", "lookup"])
def test_every_surface_has_an_address_that_ends_with_mcp(server: HttpServer, surface: str) -> None:
    """Some clients cut an address after /mcp, and would be served another surface."""
    opened = [
        server.request("POST", path, message(1, "initialize", INITIALIZE), JSON)
        for path in (f"/mcp/{surface}", f"/{surface}/mcp")
    ]
    first, second = (answer.body.rpartition(b"data: ")[2] for answer in opened)
    assert [answer.status for answer in opened] == [200, 200]
    assert first == second


CALL = {"name": "start_workflow", "arguments": {"workflowId": "test.flow"}}
BATCH = [
    {**LIST, "method": "ping"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    {**LIST, "id": "call", "method": "tools/call", "params": CALL},
    {**LIST, "id": 8, "method": "nope"},
]


def test_one_version_takes_batches_and_each_message_is_answered(server: HttpServer) -> None:
    session = Session(server, version="2025-03-26")
    answer = session.post(BATCH)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    pinged, called, unknown = msgspec.json.decode(answer.body)
    assert pinged == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert called["id"] == "call"
    assert "stateToken" in called["result"]["content"][0]["text"]
    assert (unknown["id"], unknown["error"]["code"]) == (8, -32601)


def test_a_batch_of_notifications_has_no_answer(server: HttpServer) -> None:
    answer = Session(server, version="2025-03-26").post(BATCH[1:2])
    assert (answer.status, answer.body) == (202, b"")


def test_a_message_of_a_batch_that_is_none_is_refused_alone(server: HttpServer) -> None:
    answer = Session(server, version="2025-03-26").post([7, {**LIST, "method": "ping"}])
    refused, pinged = msgspec.json.decode(answer.body)
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert pinged["result"] == {}


def test_a_batch_that_cannot_be_read_is_refused_by_its_ids(server: HttpServer) -> None:
    session = Session(server, version="2025-03-26")
    body = b'[{"jsonrpc":"2.0","id":1,"method":"pi\nng"},{"id":2,"method":"ping"}]'
    answer = server.request("POST", "/mcp", body, session.headers)
    assert answer.status == 400
    assert [refused["id"] for refused in msgspec.json.decode(answer.body)] == [1, 2]


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_later_versions_say_that_they_take_no_batches(server: HttpServer, version: str) -> None:
    answer = Session(server, version=version).post(BATCH)
    assert answer.status == 400
    assert b"only version 2025-03-26 of the protocol has batches" in answer.body


def test_a_batch_has_only_so_many_messages(server: HttpServer) -> None:
    answer = Session(server, version="2025-03-26").post([LIST] * 101)
    assert answer.status == 400
    assert b"at most 100 messages" in answer.body


def test_a_batch_of_an_ended_session_says_so(server: HttpServer) -> None:
    session = Session(server, version="2025-03-26")
    server.request("DELETE", "/mcp", b"", session.headers)
    answer = session.post(BATCH)
    assert answer.status == 404
    assert b"send initialize without Mcp-Session-Id" in answer.body
