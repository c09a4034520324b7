"""The session surface: who may answer a checkpoint, by mode, policy and client."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.surfaces.call import Call, Client, Elicit, FormAnswer, Reply
from interlock.surfaces.tool import call_tool
from support.harness import Bench, gate, workflow
from support.harness import steps as plain_steps
from support.log import event_kinds
from support.session_agents import (
    gated,
    join_session,
    session,
    session_id_of,
    start_flow,
    write_flow,
)


def test_never_stop_decides_by_itself_and_records_a_gap(bench: Bench) -> None:
    """Rule 27."""
    write_flow(bench)
    agent = session(bench, mode="never-stop")
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    assert not agent.go("build").error
    kinds = event_kinds(agent.ledger.store, session_id_of(agent))
    assert "gap_recorded" in kinds


def test_never_stop_takes_the_default_option_of_a_gate_that_nobody_answered(bench: Bench) -> None:
    """Rule 27."""
    bench.write(workflow(*plain_steps("one"), gate("where", "left", "right", defaultOption="right")))
    agent = session(bench, mode="never-stop")
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    answer = agent.go("__terminal__")
    gap = "Gap 1 (critical, for the user to resolve): 'where?' was decided without the user: right."
    assert gap in answer.warnings


def test_advisory_enforcement_turns_the_unopened_gate_into_a_warning(bench: Bench) -> None:
    """Rule 23: an open gate always holds."""
    agent = start_flow(bench, Terms(enforcement="advisory", min_response_ms=0))
    agent.tell("yield_checkpoint", checkpoint_id="scope")
    assert agent.go("build").code == "DECISION_PENDING"
    agent.tell("respond_checkpoint", option_id="redo")
    agent.go("gather")
    answer = agent.go("build")
    assert any("scope" in warning for warning in answer.warnings)


def test_under_policy_user_an_agent_s_answer_does_not_count(bench: Bench) -> None:
    """Rule 27."""
    agent = start_flow(bench, Terms(decisions="user", min_response_ms=0))
    agent.tell("yield_checkpoint", checkpoint_id="scope")
    assert agent.tell("respond_checkpoint", option_id="yes").code == "USER_MUST_DECIDE"


def test_a_client_that_can_ask_is_asked_and_the_user_s_answer_counts(bench: Bench) -> None:
    """Rule 27: the agent's own choice of an option is not what is recorded."""
    agent = start_flow(bench)
    agent.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    client = Client("asking", can_elicit=True)
    arguments = {"session_token": agent.token, "option_id": "yes"}
    ask = call_tool(agent.surface, "respond_checkpoint", arguments, Call(client))
    assert isinstance(ask, Elicit)
    assert ask.questions["scope"].message == "Is «bread» the goal?"
    answers = {"scope": FormAnswer("accept", {"choice": "skip"})}
    reply = call_tool(agent.surface, "respond_checkpoint", arguments, Call(client, answers, ask.state))
    assert isinstance(reply, Reply)
    assert json.loads(reply.text)["resolved_option"] == "skip"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_declines_is_not_answered_for_by_the_agent(
    bench: Bench, action: Literal["decline", "cancel"]
) -> None:
    """Rule 27."""
    write_flow(bench)
    for agent, more in ((session(bench), {}), (gated(bench), {"checkpoint_id": "scope"})):
        agent.call("start_session", agent_id="a", workflow_id="flow")
        agent.go("gather")
        if not more:
            agent.tell("yield_checkpoint", checkpoint_id="scope")
        client = Client("asking", can_elicit=True)
        arguments = {"session_token": agent.token, "option_id": "yes", **more}
        ask = call_tool(agent.surface, "respond_checkpoint", arguments, Call(client))
        assert isinstance(ask, Elicit)
        declined = Call(client, {"scope": FormAnswer(action)}, ask.state)
        reply = call_tool(agent.surface, "respond_checkpoint", arguments, declined)
        assert isinstance(reply, Reply)
        assert isinstance(reply.structured, dict)
        assert reply.structured["code"] == "USER_MUST_DECIDE"


def test_the_user_s_answer_in_the_inbox_lets_the_worker_resume(bench: Bench) -> None:
    """Rules 26 and 27."""
    agent = start_flow(bench, Terms(decisions="user", min_response_ms=0))
    worker = join_session(agent)
    worker.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    (question,) = inbox(agent.ledger)
    assert question.message == "Is «bread» the goal?"
    assert answer_question(agent.ledger, question, "skip")
    assert worker.tell("resume_checkpoint").body["resolved_option"] == "skip"
    assert agent.go("finish").body["activity_id"] == "finish"


def test_what_only_the_user_can_give_is_asked_for_by_name(bench: Bench) -> None:
    """Rule 28."""
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow(*plain_steps("paint", userInput=[need])))
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    answer = agent.go("__terminal__")
    assert (answer.code, answer.fields["variables"]) == ("INPUT_REQUIRED", ["colour"])
    assert "Which colour?" in answer.text
    assert agent.go("__terminal__", variables={"colour": "red"}).body["status"] == "completed"
