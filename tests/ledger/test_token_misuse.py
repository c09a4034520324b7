"""Tokens used where they do not belong: each its own error, a suggestion, and nothing written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.surfaces.call import Call, Reply, RpcError
from interlock.surfaces.tool import call_tool
from support.harness import Agent, Bench, FormAnswer, rotate, steps, workflow

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
    assert answer["code"] == code
    assert answer["details"]["suggestion"]
    assert answer["retry"] == {"kind": "not_retryable"}
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
