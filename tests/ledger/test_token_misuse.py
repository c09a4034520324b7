"""Tokens used where they do not belong: each its own error, a suggestion, and nothing written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.surfaces.call import Call, Reply, RpcError
from interlock.surfaces.tool import call_tool
from support.harness import STATEFUL, Agent, Bench, FormAnswer, rotate, steps, workflow

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(workflow(*steps("first", "second", "third")))
    return bench.agent()


def other_letter(token: str, target: int) -> str:
    target %= len(token)
    letter = next(letter for letter in LETTERS if letter != token[target])
    return token[:target] + letter + token[target + 1 :]


Damage = Callable[[FormAnswer, FormAnswer, FormAnswer], tuple[str, str]]

CASES: dict[str, tuple[Damage, str]] = {
    "ack of another run": (lambda a, b, c: (a["stateToken"], b["ackToken"]), "TOKEN_SCOPE_MISMATCH"),
    "ack of another node": (lambda a, b, c: (a["stateToken"], c["ackToken"]), "TOKEN_SCOPE_MISMATCH"),
    "state as ack": (lambda a, b, c: (a["stateToken"], a["stateToken"]), "TOKEN_SCOPE_MISMATCH"),
    "ack as state": (lambda a, b, c: (a["ackToken"], a["ackToken"]), "TOKEN_SCOPE_MISMATCH"),
    "checkpoint as ack": (lambda a, b, c: (a["stateToken"], a["checkpointToken"]), "TOKEN_SCOPE_MISMATCH"),
    "one changed character": (
        lambda a, b, c: (other_letter(a["stateToken"], 20), a["ackToken"]),
        "TOKEN_BAD_SIGNATURE",
    ),
    "one changed character of the ack": (
        lambda a, b, c: (a["stateToken"], other_letter(a["ackToken"], -1)),
        "TOKEN_BAD_SIGNATURE",
    ),
    "an old version": (
        lambda a, b, c: (a["stateToken"].replace(".v1.", ".v0."), a["ackToken"]),
        "TOKEN_UNSUPPORTED_VERSION",
    ),
    "no token at all": (lambda a, b, c: ("please", a["ackToken"]), "TOKEN_INVALID_FORMAT"),
    "a cut token": (lambda a, b, c: (a["stateToken"][:-3], a["ackToken"]), "TOKEN_INVALID_FORMAT"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_misused_token_is_named_and_changes_nothing(agent: Agent, name: str) -> None:
    damage, code = CASES[name]
    mine = agent.start("test.flow")
    other = agent.start("test.flow")
    later = agent.ack(at=mine)
    state, ack = damage(mine, other, later)
    before = changes(agent)
    answer = agent.call("continue_workflow", stateToken=state, ackToken=ack, output={"notesMarkdown": "x"})
    assert answer["_error"] is True
    assert {*answer} == {"code", "message", "retry", "details", "_meta", "_error"}
    assert answer["code"] == code
    assert answer["details"]["suggestion"]
    assert answer["retry"] == {"kind": "not_retryable"}
    assert changes(agent) == before


NOTE_CASES: dict[str, tuple[Damage, str]] = {
    "of another run": (lambda a, b, c: (a["stateToken"], b["checkpointToken"]), "TOKEN_SCOPE_MISMATCH"),
    "of another node": (lambda a, b, c: (c["stateToken"], a["checkpointToken"]), "TOKEN_SCOPE_MISMATCH"),
    "an ack": (lambda a, b, c: (a["stateToken"], a["ackToken"]), "TOKEN_SCOPE_MISMATCH"),
    "one changed character": (
        lambda a, b, c: (a["stateToken"], other_letter(a["checkpointToken"], 20)),
        "TOKEN_BAD_SIGNATURE",
    ),
}


@pytest.mark.parametrize("name", NOTE_CASES)
def test_a_checkpoint_token_is_for_one_node_of_one_run(agent: Agent, name: str) -> None:
    damage, code = NOTE_CASES[name]
    mine, other = agent.start("test.flow"), agent.start("test.flow")
    state, checkpoint = damage(mine, other, agent.ack(at=mine))
    before = changes(agent)
    note = {"output": {"notesMarkdown": "x"}}
    refused = agent.call("checkpoint_workflow", stateToken=state, checkpointToken=checkpoint, **note)
    assert (refused["code"], refused["_error"]) == (code, True)
    assert "chk token" not in agent.text
    for lone in ({"stateToken": state}, {"checkpointToken": checkpoint}, {}):
        assert agent.call("checkpoint_workflow", **lone, **note)["code"] == "VALIDATION_ERROR"
    assert changes(agent) == before


def test_a_genuine_token_of_a_session_that_is_gone(agent: Agent) -> None:
    started = agent.start("test.flow")
    with agent.ledger.store.writing() as tx:
        tx.remove_session(started["session"]["sessionId"], 0)
    assert agent.look(started)["code"] == "TOKEN_UNKNOWN_NODE"


def test_a_token_survives_one_key_rotation_and_not_two(agent: Agent) -> None:
    started = agent.start("test.flow")
    rotate(agent.ledger.keys)
    assert agent.look(started)["pending"]["stepId"] == "first"
    rotate(agent.ledger.keys)
    assert agent.look(started)["code"] == "TOKEN_KEY_RETIRED"


def changes(agent: Agent) -> int:
    return int(agent.ledger.store._connection.total_changes())  # type: ignore[attr-defined]


def test_context_over_its_budget_is_measured_and_refused(agent: Agent) -> None:
    started = agent.start("test.flow")
    before = changes(agent)
    answer = agent.ack(at=started, big="x" * 300_000)
    details = answer["details"]
    assert answer["code"] == "VALIDATION_ERROR"
    assert details["measuredBytes"] > details["maxBytes"] == 262_144
    assert details["method"] == "jcs_utf8_bytes"
    assert changes(agent) == before


@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype"])
def test_forbidden_context_keys_are_refused(agent: Agent, key: str) -> None:
    answer = agent.call("start_workflow", workflowId="test.flow", context={key: 1})
    assert answer["code"] == "VALIDATION_ERROR"
    assert key in answer["message"]


def test_context_that_is_too_deep_is_refused(agent: Agent) -> None:
    deep: object = 1
    for _ in range(70):
        deep = [deep]
    assert agent.start("test.flow", deep=deep)["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("output", "path"),
    [
        ({"notes": "wrong name"}, "output.notes"),
        ({"notesMarkdown": 7}, "output.notesMarkdown"),
        ({"artifacts": "none"}, "output.artifacts"),
        ({"artifacts": [{"no": "kind"}]}, "output.artifacts[0].kind"),
    ],
)
def test_output_of_the_wrong_shape_is_refused_at_its_place(agent: Agent, output: object, path: str) -> None:
    started = agent.start("test.flow")
    tokens = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
    answer = agent.call("continue_workflow", **tokens, output=output)
    assert answer["code"] == "VALIDATION_ERROR"
    assert answer["details"]["validationErrors"][0]["path"] == path


def test_an_unknown_argument_is_refused_with_a_template_of_the_call(agent: Agent) -> None:
    answer = agent.call("start_workflow", workflowId="test.flow", workflow="test.flow")
    assert answer["code"] == "VALIDATION_ERROR"
    assert answer["details"]["validationErrors"][0]["path"] == "workflow"
    missing = agent.call("start_workflow")
    assert missing["details"]["validationErrors"][0]["path"] == "workflowId"
    assert missing["message"] == "start_workflow: 'workflowId' is missing."
    answer = agent.call("start_workflow", workflowId="test.flow", workflow="test.flow")
    assert "workflowId" in answer["details"]["correctTemplate"]


def test_an_unknown_tool_is_an_error_of_the_protocol_that_names_the_tools_there_are(agent: Agent) -> None:
    answer = call_tool(agent.surface, "advance_workflow", {}, Call())
    assert isinstance(answer, RpcError)
    assert answer.code == -32602
    assert "Unknown tool: advance_workflow" in answer.message
    assert "continue_workflow" in answer.message


@pytest.mark.parametrize("copied", ['"{}"', "'{}'", "`{}`", "{}\n", "  {} ", '"{}"\n'])
def test_what_is_copied_around_a_token_is_not_part_of_it(bench: Bench, agent: Agent, copied: str) -> None:
    started = agent.start("test.flow")
    shown = agent.call("continue_workflow", stateToken=copied.format(started["stateToken"]))
    assert shown["pending"] == started["pending"]
    tokens = {name: copied.format(started[name]) for name in ("stateToken", "ackToken")}
    assert agent.call("continue_workflow", **tokens)["kind"] == "ok"
    situation = bench.call(
        "navigation",
        agent.ledger,
        "nav_situation",
        {"state": copied.format(started["stateToken"])},
        Call(),
    )
    assert isinstance(situation, Reply)
    assert not situation.is_error
    for surface in ("session", "gated"):
        sent = {"workflow_id": "test.flow", "agent_id": "a"}
        sent["session_token"] = copied.format(started["stateToken"])
        joined = bench.call(surface, agent.ledger, "start_session", sent, Call())
        assert isinstance(joined, Reply)
        assert '"inherited":true' in joined.text


@pytest.mark.parametrize(
    ("surface", "tool", "sent", "fix"),
    [
        ("session", "get_activity", {"token": "x"}, "Its parameters: session_token, full."),
        ("gated", "get_skills", {"token": "x"}, "Its parameters: session_token, full."),
        ("navigation", "get_activity", {"id": "x"}, "Its parameters: activity_id."),
        ("navigation", "get_activity", {}, "Send activity_id too."),
        (
            "navigation",
            "nav_action",
            {"state": "x", "action": "fly"},
            "Send one of these as action: abandon, advance_loop, complete_step, respond_to_checkpoint, "
            "transition.",
        ),
        ("navigation", "nav_action", {"state": 5, "action": "abandon"}, "Correct state and call again."),
    ],
)
def test_what_to_correct_in_a_call_is_said(
    agent: Agent, surface: str, tool: str, sent: FormAnswer, fix: str
) -> None:
    answer = call_tool(STATEFUL[surface](agent.ledger), tool, sent, Call())
    assert isinstance(answer, Reply)
    assert answer.is_error
    assert fix in answer.text


NEEDED = {
    "activity_id": "main",
    "checkpoint_id": "first",
    "resource_id": "00",
    "resource_index": "00",
    "agent_id": "a",
    "workflow_id": "test.flow",
}
STARTED = ("agent_id", "workflow_id")  # what starts a session, required or not
TOKENS = {"session_token", "checkpoint_handle", "parent_session_token"}


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_every_tool_verifies_every_token(agent: Agent, surface: str) -> None:
    """And needs one. Only start_session of `session` goes on with a forged one: it starts afresh (rule 6)."""
    started = agent.start("test.flow")
    forged = other_letter(started["stateToken"].replace("st.", "ses."), 20)
    served, verifying = STATEFUL[surface](agent.ledger), set[str]()
    for tool in served.tools.values():
        schema = tool.argument_schema()
        needed = {name: NEEDED[name] for name in NEEDED if name in {*schema.get("required", ()), *STARTED}}
        for name in TOKENS & set(schema["properties"]):
            sent = {key: value for key, value in needed.items() if key in schema["properties"]}
            answer = call_tool(served, tool.name, {**sent, name: forged}, Call())
            assert isinstance(answer, Reply)
            recovers = (surface, tool.name, name) == ("session", "start_session", "session_token")
            assert answer.is_error is not recovers, (tool.name, answer.text)
            assert ("recovered" if recovers else "signature") in answer.text, (tool.name, answer.text)
            verifying.add(tool.name)
            answer = call_tool(served, tool.name, sent, Call())
            assert isinstance(answer, Reply)
            assert answer.is_error is (tool.name != "start_session"), (tool.name, answer.text)
    without_token = {"discover", "list_workflows", "health_check"}
    assert verifying == {*served.tools} - without_token
