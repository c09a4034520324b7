"""What only the user can give is asked for as often as it is needed (rules 26 and 28)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.surfaces.navigation import NavigationSurface
from support.attacker import CLAIMING, EVERY, USER, Attacker, activity, on, step, write_activities
from support.harness import Bench, decision, steps, workflow
from support.navigation_client import NavigationClient
from support.session_agents import gated, session

APPROVAL = {"reason": "needs_user_approval", "key": "signed", "question": "Delete {{currentItem}}?"}
COLOUR = {
    "reason": "needs_user_choice",
    "key": "colour",
    "question": "Which colour?",
    "nonAssumable": "scope_boundary",
}

SIGNED = step("sign", userInput=[{**APPROVAL, "question": "Sign it?"}])


def asking(step: str, **need: Any) -> dict[str, Any]:
    return {"id": step, "title": step.title(), "prompt": "Do it.", "userInput": [need]}


def each_part(*body: dict[str, Any]) -> dict[str, Any]:
    loop = {"type": "forEach", "items": "parts", "maxIterations": 5}
    return {"type": "loop", "id": "each", "title": "Each", "loop": loop, "body": list(body)}


def test_an_approval_serves_one_round(bench: Bench) -> None:
    bench.write(workflow(each_part(asking("delete", **APPROVAL)), *steps("last")))
    agent = bench.agent()
    agent.start("test.flow", parts=["a", "b"])
    assert agent.ack(signed="approve")["kind"] == "ok"
    assert agent.ack()["kind"] == "blocked"
    assert "Delete «b»?" in agent.text
    assert agent.ack(signed="reject")["kind"] == "blocked"
    assert agent.ack(signed="approve")["pending"]["stepId"] == "last"


def test_an_approval_serves_one_round_where_the_agent_advances_the_loop(bench: Bench) -> None:
    bench.write(workflow(each_part(asking("delete", **APPROVAL))))
    agent = NavigationClient(NavigationSurface(bench.ledger()))
    agent.start("test.flow", parts=["a", "b"])
    agent.act("advance_loop", loop_id="each")
    assert agent.act("complete_step", step_id="delete", variables={"signed": "approve"})["success"]
    agent.act("advance_loop", loop_id="each")
    assert not agent.act("complete_step", step_id="delete")["success"]
    assert agent.act("complete_step", step_id="delete", variables={"signed": "approve"})["success"]


def test_an_approval_of_one_step_is_not_the_approval_of_another(bench: Bench) -> None:
    plan, deploy = {**APPROVAL, "question": "Is it the plan?"}, {**APPROVAL, "question": "Deploy it?"}
    bench.write(workflow(asking("plan", **plan), asking("deploy", **deploy), *steps("last")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack(signed=True)
    assert agent.ack()["kind"] == "blocked"
    assert "Deploy it?" in agent.text
    assert agent.ack(artifacts=[decision("signed", "approve")])["pending"]["stepId"] == "last"


def test_under_policy_user_each_round_waits_in_the_inbox(bench: Bench) -> None:
    bench.write(workflow(each_part(asking("delete", **APPROVAL))))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow", parts=["a", "b"])
    for part, kind in (("a", "ok"), ("b", "ok")):
        assert agent.ack(signed="approve")["kind"] == "blocked"
        (question,) = inbox(agent.ledger)
        assert question.message == f"Delete «{part}»?"
        assert answer_question(agent.ledger, question, "approve")
        assert agent.ack()["kind"] == kind
    assert agent.last["isComplete"]


@pytest.mark.parametrize(
    ("question", "asks_again"), [("Which colour?", False), ("Which colour for {{currentItem}}?", True)]
)
def test_an_answer_serves_another_round_if_the_question_is_the_same(
    bench: Bench, question: str, asks_again: bool
) -> None:
    bench.write(
        workflow(
            each_part(asking("paint", **{**COLOUR, "question": question})),
            {**steps("last")[0], "prompt": "colour: {{colour}}"},
        )
    )
    agent = bench.agent()
    agent.start("test.flow", parts=["a", "b"])
    agent.ack(colour="red")
    assert (agent.ack()["kind"] == "blocked") is asks_again
    if asks_again:
        agent.ack(artifacts=[decision("colour", "blue")])
    assert agent.pending == "last"
    assert f"colour: {'blue' if asks_again else 'red'}" in agent.look()["pending"]["prompt"]


def test_a_question_may_show_the_value_that_its_answer_replaces(bench: Bench) -> None:
    paint = {**COLOUR, "question": "Is {{colour}} right, or which?"}
    last = {**steps("last")[0], "prompt": "colour: {{colour}}"}
    bench.write(workflow(asking("paint", **paint), last))
    agent = bench.agent()
    agent.start("test.flow", colour="red")
    assert "colour: blue" in agent.ack(colour="blue")["pending"]["prompt"]


def test_an_answer_serves_the_next_step_that_names_the_same_key(bench: Bench) -> None:
    paint = {**COLOUR, "question": "Which colour for {{part}}?"}
    bench.write(workflow(asking("paint", **paint), asking("coat", **paint), *steps("last")))
    agent = bench.agent()
    agent.start("test.flow", part="the door")
    agent.ack(colour="red")
    assert agent.ack()["pending"]["stepId"] == "last"


@pytest.mark.parametrize("make", [session, gated])
def test_an_approval_that_comes_with_a_claim_serves_its_first_round_only(bench: Bench, make: Any) -> None:
    bench.write(workflow(each_part(asking("delete", **APPROVAL))))
    agent = make(bench)
    agent.call("start_session", agent_id="agent", workflow_id="test.flow")
    agent.go("main", variables={"parts": ["a", "b"]})
    claims = [{"step_id": "delete", "output": "deleted"}] * 2
    refused = agent.go("__terminal__", step_manifest=claims, variables={"signed": "approve"})
    assert refused.text.startswith("Step 'delete' cannot be claimed: Delete «b»? Recorded as done: delete.")
    answer = agent.go("__terminal__", step_manifest=claims, variables={"signed": "approve"})
    assert answer.body["status"] == "completed"


@pytest.mark.parametrize("make", [session, gated])
def test_an_answer_in_the_inbox_serves_one_round_although_the_next_asks_the_same(
    bench: Bench, make: Any
) -> None:
    bench.write(workflow(each_part(asking("delete", **{**APPROVAL, "question": "Delete it?"}))))
    agent = make(bench, terms=Terms(decisions="user"))
    agent.call("start_session", agent_id="agent", workflow_id="test.flow")
    agent.go("main", variables={"parts": ["a", "b"]})
    for _ in range(2):
        assert agent.go("__terminal__").code == "USER_MUST_DECIDE"
        (question,) = inbox(agent.ledger)
        assert answer_question(agent.ledger, question, "approve")
    assert agent.go("__terminal__").body["status"] == "completed"


@on(*EVERY)
def test_a_steps_question_is_put_when_the_step_is_reached(bench: Bench, surface: str) -> None:
    """Rule 23: it waits in the inbox at once, and the answer serves the first call that brings the work."""
    write_activities(bench, activity("plan", step("prepare"), SIGNED, step("send")))
    agent = Attacker(bench, surface, USER)
    agent.start()
    agent.do("prepare")
    if surface in CLAIMING:
        agent.go("__terminal__")
    assert agent.user_decides("signed", "approve") == "Sign it?"
    before = len(agent.events("validation_performed"))
    agent.walk("sign", "send", ">__terminal__")
    assert agent.has_done("send")
    assert len(agent.events("validation_performed")) == before, "no attempt was blocked"


def test_a_steps_question_that_lacks_a_name_is_put_with_the_report_that_brings_it(bench: Bench) -> None:
    bench.write(workflow(asking("delete", **{**APPROVAL, "question": "Delete {{target}}?"}), *steps("last")))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow")
    assert inbox(agent.ledger) == (), "nobody knows yet what is to be deleted"
    assert agent.ack(target="a")["kind"] == "blocked"
    (question,) = inbox(agent.ledger)
    assert question.message == "Delete «a»?"
    answer_question(agent.ledger, question, "approve")
    assert agent.ack(target="PRODUCTION")["kind"] == "blocked", "that is another question"
    assert [asked.message for asked in inbox(agent.ledger)] == ["Delete «PRODUCTION»?"]


def test_a_steps_question_owns_what_it_shows_as_soon_as_the_step_is_reached(bench: Bench) -> None:
    bench.write(workflow(asking("delete", **{**APPROVAL, "question": "Delete {{target}}?"}), *steps("last")))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow", target="a")
    (question,) = inbox(agent.ledger)
    answer_question(agent.ledger, question, "approve")
    assert agent.ack(target="PRODUCTION")["pending"]["stepId"] == "last"
    assert agent.ledger.position(question.session_id).state.variables["target"] == "a"
