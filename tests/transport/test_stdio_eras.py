"""The messages of both eras of MCP."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.echo_server import Echo
from interlock.transport.results import FORM_SECONDS, ServerInfo
from interlock.transport.rpc import Request, Response
from interlock.transport.stdio.connection import Connection
from interlock.transport.stdio.handshake import Handshake
from interlock.transport.stdio.waiting import WaitingTurns
from support.stdio_pipe import ENVELOPE, INITIALIZE, call, encoded, modern, notification, request, response

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STAMP = {"io.modelcontextprotocol/serverInfo": {"name": "echo", "version": "9.9"}}


class Talk:
    """A conversation without a pipe: a line in, the decoded lines out."""

    def __init__(self) -> None:
        self._connection = Connection(Echo("mcp"), ServerInfo("echo", "9.9"))

    def say(self, line: bytes) -> list[Any]:
        return [msgspec.json.decode(answer) for answer in self._connection.receive(line)]

    def ask(self, line: bytes) -> Any:
        (answer,) = self.say(line)
        return answer

    def result(self, line: bytes) -> Any:
        return self.ask(line)["result"]

    def code(self, line: bytes) -> int:
        return int(self.ask(line)["error"]["code"])

    def initialize(self, version: str = "2025-11-25", **params: Any) -> Any:
        return self.result(request(0, "initialize", {**INITIALIZE, "protocolVersion": version, **params}))


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.fixture
def old(talk: Talk) -> Talk:
    talk.initialize()
    assert talk.say(notification("notifications/initialized")) == []
    return talk


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_known_version_is_confirmed(talk: Talk, version: str) -> None:
    assert talk.initialize(version) == {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "echo", "version": "9.9"},
        "instructions": "Echo what you like.",
    }


@pytest.mark.parametrize("version", ["2023-01-01", "2026-07-28", "2099-01-01"])
def test_an_unknown_version_is_answered_with_our_newest(talk: Talk, version: str) -> None:
    assert talk.initialize(version)["protocolVersion"] == "2025-11-25"


def test_initialize_needs_a_version(talk: Talk) -> None:
    assert talk.code(request(1, "initialize", {"capabilities": {}})) == -32602
    assert talk.initialize()["protocolVersion"] == "2025-11-25"


def test_tools_wait_for_initialize_and_ping_does_not(talk: Talk) -> None:
    assert talk.code(request(1, "tools/list")) == -32600
    assert talk.code(call(2, "echo", text="a")) == -32600
    assert talk.result(request(3, "ping")) == {}
    assert talk.initialize()["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("version", HANDSHAKE)
def test_what_a_version_does_not_know_is_left_out(talk: Talk, version: str) -> None:
    talk.initialize(version)
    tools = {tool["name"]: tool for tool in talk.result(request(1, "tools/list"))["tools"]}
    assert ("annotations" in tools["echo"]) == (version >= "2025-03-26")
    assert ("outputSchema" in tools["whoami"]) == (version >= "2025-06-18")
    assert ("structuredContent" in talk.result(call(2, "echo", text="a"))) == (version >= "2025-06-18")
    assert talk.result(call(3, "whoami"))["content"] == [{"type": "text", "text": "raw"}]


def test_tools_are_listed_with_all_that_is_known_of_them(old: Talk) -> None:
    tools = old.result(request(1, "tools/list", {"_meta": {"progressToken": 1}}))["tools"]
    assert tools[:2] == [
        {
            "name": "echo",
            "title": "Echo",
            "description": "Echo a text",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "extra": {"type": "object"}},
                "required": ["text"],
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
        },
        {
            "name": "whoami",
            "title": "Whoami",
            "description": "Tell who calls",
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
            "outputSchema": {"type": "object"},
            "annotations": {"idempotentHint": True, "destructiveHint": False, "openWorldHint": False},
        },
    ]


def test_a_reply_is_text_structure_and_meta(old: Talk) -> None:
    assert old.result(call(1, "echo", text="abc")) == {
        "content": [{"type": "text", "text": "abc"}],
        "structuredContent": {"text": "abc", "extra": None},
        "_meta": {"echo/length": 3},
    }


def test_recorded_json_goes_out_as_it_is_but_on_one_line() -> None:
    connection = Connection(Echo("mcp"), ServerInfo("echo", "9.9"))
    connection.receive(request(0, "initialize", INITIALIZE))
    (line,) = connection.receive(call(1, "recorded"))
    assert b'"structuredContent":{"b":1,  "a":1.50}' in line
    assert line.index(b"\n") == len(line) - 1


def test_what_an_agent_can_fix_is_a_result(old: Talk) -> None:
    for line in (call(1, "echo", text=7), call(1, "echo", text="a", other=1)):
        assert old.result(line)["isError"] is True
    assert old.result(request(1, "tools/call", {"name": "echo", "arguments": [1]}))["isError"] is True
    assert old.code(request(1, "tools/call", {"arguments": {}})) == -32602
    assert old.code(call(1, "nothing")) == -32602  # a tool that does not exist is an error of the protocol


UNREADABLE = {
    "a lone surrogate": b'"\\ud800"',
    "a number out of range": b"1e400",
    "not a number": b"NaN",
    "bytes that are not UTF-8": b'"\xff"',
    "a control character": b'"\x01"',
}


def unreadable(message: bytes, kind: str) -> bytes:
    """Put a value that we do not accept into the parameters of a message."""
    line = message.replace(b'"params":{', b'"params":{"bad":' + UNREADABLE[kind] + b",")
    assert line != message
    return line


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("id", [7, "seven"])
def test_a_request_with_an_unacceptable_value_is_refused_by_its_id(talk: Talk, kind: str, id: object) -> None:
    for message in (modern(id, "tools/list"), request(id, "initialize", INITIALIZE), call(id, "whoami")):
        answer = talk.ask(unreadable(message, kind))
        assert (answer["id"], answer["error"]["code"]) == (id, -32700)
        assert answer["error"]["data"]["details"]
    talk.initialize()
    assert talk.ask(unreadable(call(id, "whoami"), kind))["id"] == id
    assert talk.result(call(8, "whoami"))["content"][0]["text"] == "raw"


def test_every_request_of_an_unreadable_batch_is_refused_by_its_id(talk: Talk) -> None:
    talk.initialize("2025-03-26")
    batch = [call(1, "whoami"), unreadable(call(2, "whoami"), "a number out of range"), b"7"]
    answers = talk.ask(b"[" + b",".join(batch) + b"]")
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (1, -32700),
        (2, -32700),
        (None, -32700),
    ]


def test_an_id_is_looked_for_at_the_top_only(talk: Talk) -> None:
    line = b'{"jsonrpc":"2.0","method":"ping","params":{"id":3,"x":1e400},"note":"\\"id\\":4"}'
    assert talk.ask(line)["id"] is None


def test_other_methods(old: Talk) -> None:
    assert old.result(request(1, "logging/setLevel", {"level": "info"})) == {}
    assert old.code(request(2, "resources/list")) == -32601
    assert old.code(request(3, "server/discover")) == -32601
    assert old.say(notification("notifications/progress", {"progressToken": 1})) == []


def test_only_one_version_takes_batches(talk: Talk) -> None:
    batch = b"[" + b",".join([request(1, "ping"), notification("x"), b"7", call(2, "echo", text="a")]) + b"]"
    assert talk.code(batch) == -32600
    talk.initialize("2025-03-26")
    answers = talk.ask(batch)
    assert [answer["id"] for answer in answers] == [1, None, 2]
    assert talk.say(encoded([{"jsonrpc": "2.0", "method": "x"}])) == []
    talk.initialize("2025-11-25")
    assert talk.code(batch) == -32600


def forms(talk: Talk, id: int = 1) -> list[str]:
    asked = talk.say(call(id, "confirm"))
    assert [message["method"] for message in asked] == ["elicitation/create"] * 2
    assert [message["params"]["message"] for message in asked] == ["Proceed?", "Really?"]
    assert asked[0]["params"]["requestedSchema"]["required"] == ["choice"]
    return [message["id"] for message in asked]


def accepted(choice: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"choice": choice}}


def test_a_call_waits_for_all_its_forms_while_others_are_served(old: Talk) -> None:
    first, second = forms(old)
    assert old.result(call(2, "echo", text="meanwhile"))["content"][0]["text"] == "meanwhile"
    assert old.say(response(second, {"action": "decline"})) == []
    answer = old.ask(response(first, accepted("yes")))
    assert answer["id"] == 1
    assert answer["result"]["structuredContent"] == {
        "asked": "opaque-state",
        "answers": {"first": accepted("yes"), "second": {"action": "decline", "content": {}}},
    }


def test_an_id_that_is_not_answered_yet_is_refused(old: Talk) -> None:
    first, second = forms(old)
    refused = old.ask(call(1, "echo", text="meanwhile"))
    assert (refused["id"], refused["error"]["code"]) == (1, -32600)
    assert "use another id" in refused["error"]["message"]
    assert old.say(response(first, accepted("yes"))) == []
    assert old.ask(response(second, accepted("yes")))["id"] == 1
    assert old.result(call(1, "echo", text="again"))["content"][0]["text"] == "again"


def test_forms_that_nobody_answers_are_withdrawn_and_the_call_goes_on_without() -> None:
    now = 0.0
    turns = WaitingTurns(lambda: now)
    handshake = Handshake(Echo("mcp"), ServerInfo("echo", "9.9"), turns)
    handshake.answer(Request(0, "initialize", INITIALIZE))
    asked = handshake.answer(Request(1, "tools/call", {"name": "confirm"}))
    first, second = (msgspec.json.decode(line)["id"] for line in asked)
    assert handshake.handle_response(Response(first, accepted("yes"))) == []
    lines: list[bytes] = []
    while turns.patience() is not None:
        assert lines == []
        now += 1.0
        lines = turns.look()
    withdrawn, answer = map(msgspec.json.decode, lines)
    assert now == FORM_SECONDS
    assert withdrawn["params"] == {"requestId": second}
    assert answer["id"] == 1
    assert answer["result"]["structuredContent"]["answers"] == {
        "first": accepted("yes"),
        "second": {"action": "cancel", "content": {}},
    }
    assert handshake.handle_response(Response(second, accepted("yes"))) == [], "it comes too late"


@pytest.mark.parametrize("cursor", ["made-up", "", 5])
def test_a_made_up_cursor_is_refused(talk: Talk, cursor: object) -> None:
    refused = talk.ask(modern(1, "tools/list", cursor=cursor))
    assert refused["error"]["code"] == -32602
    assert "call again without cursor" in refused["error"]["message"]
    handshake = Talk()
    handshake.initialize()
    assert handshake.ask(request(1, "tools/list", {"cursor": cursor})) == refused


@given(st.permutations(range(6)))
def test_answers_find_their_calls_in_any_order(order: list[int]) -> None:
    talk = Talk()
    talk.initialize()
    sent = [(id, form) for id in (1, 2, 3) for form in forms(talk, id)]
    answered: list[int] = []
    waiting = [id for id, _ in sent]
    for index in order:
        id, form = sent[index]
        waiting.remove(id)
        answers = talk.say(response(form, accepted(f"{id}")))
        answered += [answer["id"] for answer in answers]
        assert (id in answered) == (id not in waiting)
        for answer in answers:
            choices = [
                form["content"]["choice"]
                for form in answer["result"]["structuredContent"]["answers"].values()
            ]
            assert choices == [f"{answer['id']}"] * 2
    assert sorted(answered) == [1, 2, 3]


@pytest.mark.parametrize("result", [{"action": "cancel"}, {"action": "perhaps"}, {}, None, "yes"])
def test_what_is_no_answer_counts_as_none(old: Talk, result: object) -> None:
    first, second = forms(old)
    old.say(response(first, accepted("yes")))
    answers = old.result(response(second, result))["structuredContent"]["answers"]
    assert answers["second"] == {"action": "cancel", "content": {}}


def test_an_answer_that_cannot_be_read_counts_as_none(old: Talk) -> None:
    first, second = forms(old)
    line = response(first, accepted("X")).replace(b'"X"', b'"\\ud800"')
    assert old.say(line) == []
    answers = old.result(response(second, accepted("no")))["structuredContent"]["answers"]
    assert [answer["action"] for answer in answers.values()] == ["cancel", "accept"]


def test_an_error_of_the_client_counts_as_no_answer(old: Talk) -> None:
    first, second = forms(old)
    old.say(encoded({"jsonrpc": "2.0", "id": first, "error": {"code": -1, "message": "no"}}))
    answers = old.result(response(second, accepted("no")))["structuredContent"]["answers"]
    assert [answer["action"] for answer in answers.values()] == ["cancel", "accept"]


def test_a_cancelled_call_takes_its_forms_back_and_is_not_answered(old: Talk) -> None:
    first, second = forms(old, 7)
    taken_back = old.say(notification("notifications/cancelled", {"requestId": 7}))
    assert [message["method"] for message in taken_back] == ["notifications/cancelled"] * 2
    assert [message["params"]["requestId"] for message in taken_back] == [first, second]
    assert old.say(response(first, accepted("yes"))) == []
    assert old.say(response(second, accepted("yes"))) == []


def test_cancelling_what_is_not_waiting_does_nothing(old: Talk) -> None:
    forms(old, 7)
    assert old.say(notification("notifications/cancelled", {"requestId": 8})) == []
    assert old.say(notification("notifications/cancelled")) == []
    assert old.say(response("form-99", accepted("yes"))) == []


def test_a_fault_after_the_forms_is_an_answer_too(talk: Talk) -> None:
    talk.initialize()
    first, second = forms(talk)
    talk.say(response(first, accepted("unsendable")))
    answer = talk.ask(response(second, accepted("yes")))
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    assert talk.result(request(2, "ping")) == {}


def test_a_nul_in_an_answer_is_refused(old: Talk) -> None:
    first, second = forms(old)
    old.say(response(first, accepted("a\0")))
    assert old.result(response(second, accepted("yes")))["isError"] is True


@pytest.mark.parametrize(
    ("version", "capabilities", "can"),
    [
        ("2025-11-25", {"elicitation": {}}, True),
        ("2025-11-25", {"elicitation": {"form": {}, "url": {}}}, True),
        ("2025-11-25", {"elicitation": {"url": {}}}, False),
        ("2025-11-25", {"roots": {}}, False),
        ("2025-06-18", {"elicitation": {}}, True),
        ("2025-03-26", {"elicitation": {}}, False),
    ],
)
def test_who_can_be_asked(talk: Talk, version: str, capabilities: dict[str, Any], can: bool) -> None:
    talk.initialize(version, capabilities=capabilities)
    assert (talk.say(call(1, "confirm"))[0].get("method") == "elicitation/create") == can


def test_a_client_is_known_by_a_name_without_nul(talk: Talk) -> None:
    talk.initialize(clientInfo={"name": "a\0b", "version": 7})
    client = talk.result(call(1, "whoami"))["structuredContent"]
    assert (client["name"], client["version"]) == ("ab", "")


def test_discover_says_what_is_served(talk: Talk) -> None:
    assert talk.result(modern(1, "server/discover")) == {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": "Echo what you like.",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": STAMP,
    }


def test_a_modern_result_is_typed_and_stamped(talk: Talk) -> None:
    assert talk.result(modern(1, "tools/call", name="echo", arguments={"text": "a"})) == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"text": "a", "extra": None},
        "_meta": {"echo/length": 1, **STAMP},
    }
    listing = talk.result(modern(2, "tools/list"))
    assert (listing["resultType"], listing["ttlMs"], listing["cacheScope"]) == ("complete", 0, "private")
    assert listing["tools"][1]["outputSchema"] == {"type": "object"}


def test_each_modern_request_says_who_calls(talk: Talk) -> None:
    client = talk.result(modern(1, "tools/call", name="whoami"))["structuredContent"]
    known = {"name": "raw", "version": "1", "era": "modern", "can_elicit": True, "opens_addresses": False}
    assert client == known
    bare = {key: value for key, value in ENVELOPE.items() if "Info" not in key}
    bare["io.modelcontextprotocol/clientCapabilities"] = {}
    client = talk.result(request(2, "tools/call", {"name": "whoami", "_meta": bare}))["structuredContent"]
    assert client == {**known, "name": "unknown", "version": "", "can_elicit": False}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": "2027-01-01"}, -32022),
        ({"io.modelcontextprotocol/protocolVersion": 7}, -32602),
        ({"io.modelcontextprotocol/clientCapabilities": None}, -32602),
    ],
)
def test_an_envelope_is_checked(talk: Talk, change: dict[str, Any], code: int) -> None:
    meta = {key: value for key, value in {**ENVELOPE, **change}.items() if value is not None}
    assert talk.code(request(1, "server/discover", {"_meta": meta})) == code


def test_an_unsupported_modern_version_names_the_supported_one(talk: Talk) -> None:
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    error = talk.ask(request(1, "tools/list", {"_meta": meta}))["error"]
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


def test_a_modern_tool_asks_by_its_result(talk: Talk) -> None:
    asked = talk.result(modern(1, "tools/call", name="confirm"))
    assert asked["resultType"] == "input_required"
    assert asked["requestState"] == "opaque-state"
    assert {key: form["method"] for key, form in asked["inputRequests"].items()} == {
        "first": "elicitation/create",
        "second": "elicitation/create",
    }
    again = {"inputResponses": {"first": accepted("yes"), "second": {"action": "decline"}}}
    line = modern(2, "tools/call", name="confirm", requestState=asked["requestState"], **again)
    assert talk.result(line)["structuredContent"] == {
        "asked": "opaque-state",
        "answers": {"first": accepted("yes"), "second": {"action": "decline", "content": {}}},
    }


@pytest.mark.parametrize(
    "params",
    [{"requestState": 7}, {"inputResponses": []}, {"inputResponses": {"first": {"action": "maybe"}}}],
)
def test_answers_that_cannot_be_read_are_refused(talk: Talk, params: dict[str, Any]) -> None:
    assert talk.code(modern(1, "tools/call", name="confirm", **params)) == -32602


def test_a_listener_is_acknowledged_and_hears_nothing(talk: Talk) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": True}
    assert talk.say(modern("listen-1", "subscriptions/listen", notifications=wanted)) == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "notifications": {},
                "_meta": {"io.modelcontextprotocol/subscriptionId": "listen-1"},
            },
        }
    ]
    assert talk.say(notification("notifications/cancelled", {"requestId": "listen-1"})) == []


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/list"])
def test_what_the_modern_era_has_not_is_not_found(talk: Talk, method: str) -> None:
    assert talk.code(modern(1, method)) == -32601


def test_a_probe_does_not_settle_the_era(talk: Talk) -> None:
    assert "supportedVersions" in talk.result(modern(1, "server/discover"))
    assert talk.initialize()["protocolVersion"] == "2025-11-25"
    assert talk.result(call(2, "echo", text="a"))["content"][0]["text"] == "a"


def test_a_modern_connection_refuses_the_handshake(talk: Talk) -> None:
    talk.result(modern(1, "tools/list"))
    error = talk.ask(request(2, "initialize", INITIALIZE))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
    assert talk.code(request(3, "tools/list")) == -32602
    assert talk.result(modern(4, "tools/list"))["resultType"] == "complete"


def test_an_initialized_connection_refuses_the_envelope(old: Talk) -> None:
    assert old.code(modern(1, "tools/list")) == -32600
    assert old.code(modern(2, "server/discover")) == -32600
    assert "resultType" not in old.result(request(3, "tools/list"))


def test_a_refused_request_settles_nothing(talk: Talk) -> None:
    assert talk.code(request(1, "tools/list")) == -32600
    assert talk.result(modern(2, "tools/list"))["resultType"] == "complete"
