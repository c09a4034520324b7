"""The strict profile of the lookup document, over a real pipe."""

from __future__ import annotations

import pytest

from support.stdio_pipe import PATIENCE, Pipe, call, notification, request

INITIALIZE = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}


@pytest.fixture
def pipe() -> Pipe:
    with Pipe("lookup") as pipe:
        yield pipe


@pytest.fixture
def ready(pipe: Pipe) -> Pipe:
    pipe.ask(request(1, "initialize", INITIALIZE))
    pipe.send(notification("notifications/initialized"))
    return pipe


def test_initialize_is_answered_as_documented(pipe: Pipe) -> None:
    assert pipe.ask(request(1, "initialize", INITIALIZE))["result"] == {
        "protocolVersion": "2024-11-05",
        "capabilities": {
            "tools": {"listChanged": False, "notifyProgress": False},
            "resources": {"listChanged": False},
        },
        "serverInfo": {
            "name": "workflowlookup",
            "version": "1.0.0",
            "description": "Workflow Orchestration System MCP Server",
        },
    }


def test_another_version_is_refused(pipe: Pipe) -> None:
    assert pipe.ask(request(1, "initialize", {**INITIALIZE, "protocolVersion": "2025-11-25"}))["error"] == {
        "code": -32000,
        "message": "Unsupported protocol version",
        "data": {"supportedVersions": ["2024-11-05"], "requestedVersion": "2025-11-25"},
    }
    assert pipe.ask(request(2, "tools/list"))["error"]["code"] == -32000


def test_what_initialize_requires(pipe: Pipe) -> None:
    version = {"protocolVersion": "2024-11-05"}
    refused: list[tuple[dict[str, object], str]] = [
        ({"capabilities": {}}, "protocolVersion is required"),
        ({**version}, "capabilities is required"),
        ({**version, "capabilities": "x"}, "capabilities must be an object"),
        ({**version, "capabilities": []}, "capabilities must be an object"),
        ({**version, "capabilities": None}, "capabilities must be an object"),
    ]
    for params, details in refused:
        error = {"code": -32602, "message": "Invalid params", "data": {"details": details}}
        assert pipe.ask(request(1, "initialize", params))["error"] == error
    assert pipe.ask(request(2, "tools/list"))["error"]["code"] == -32000


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "echo", "nothing"])
def test_nothing_is_served_before_initialize(pipe: Pipe, method: str) -> None:
    assert pipe.ask(request(1, method))["error"]["code"] == -32000


def test_a_tool_is_a_method_too(ready: Pipe) -> None:
    assert ready.ask(request(2, "echo", {"text": "a"}))["result"] == {"text": "a", "extra": None}
    assert ready.ask(call(3, "echo", text="a"))["result"]["content"] == [{"type": "text", "text": "a"}]


def test_tools_are_listed_with_their_examples(ready: Pipe) -> None:
    echo, whoami, *_ = ready.ask(request(2, "tools/list"))["result"]["tools"]
    assert echo["examples"] == {"request": {"method": "echo"}}
    assert "annotations" not in echo
    assert whoami["inputSchema"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert whoami["outputSchema"] == {"type": "object"}


@pytest.mark.parametrize("line", [request(2, "refused"), call(2, "refused")])
def test_an_error_of_the_document_goes_out_verbatim(ready: Pipe, line: bytes) -> None:
    assert ready.ask(line) == {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -32001, "message": "Workflow not found", "data": {"workflowId": "none"}},
    }


def test_an_unknown_method_is_named(ready: Pipe) -> None:
    assert ready.ask(request(3, "non_existent_tool"))["error"] == {
        "code": -32601,
        "message": "Method not found",
        "data": {"method": "non_existent_tool"},
    }
    assert ready.ask(request(4, "server/discover"))["error"]["code"] == -32601


def test_a_line_that_is_no_json_is_a_parse_error_with_a_null_id(ready: Pipe) -> None:
    answer = ready.ask(b"{nope\n")
    assert (answer["id"], answer["error"]["code"], answer["error"]["message"]) == (
        None,
        -32700,
        "Parse error",
    )
    assert answer["error"]["data"]["details"]
    assert ready.ask(request(2, "ping"))["result"] == {}


def test_a_value_that_cannot_be_read_is_a_parse_error_of_its_own_request(ready: Pipe) -> None:
    for value in (b'"\\ud800"', b"1e400"):
        answer = ready.ask(b'{"jsonrpc":"2.0","id":2,"method":"echo","params":{"text":' + value + b"}}\n")
        assert (answer["id"], answer["error"]["code"]) == (2, -32700)
    assert ready.ask(request(2, "ping"))["result"] == {}


def test_batches_are_refused(ready: Pipe) -> None:
    assert ready.ask(b"[" + request(2, "ping").rstrip() + b"]\n")["error"]["code"] == -32600


def test_requests_are_answered_in_order(ready: Pipe) -> None:
    ready.send(*(request(number, "echo", {"text": "a"}) for number in range(50)))
    assert [ready.read()["id"] for _ in range(50)] == list(range(50))


def test_shutdown_is_answered_with_null_and_then_we_leave(ready: Pipe) -> None:
    ready.send(
        request(98, "echo", {"text": "a"}), request(99, "shutdown"), request(100, "echo", {"text": "b"})
    )
    assert ready.read()["id"] == 98
    assert ready.read() == {"jsonrpc": "2.0", "id": 99, "result": None}
    assert ready.process.wait(PATIENCE) == 0
    assert ready.rest() == b""
