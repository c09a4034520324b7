"""Which questions wait for the user, whatever else happens in their session."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.cli.commands.sessions.inbox_ import show_question
from interlock.cli.screen import clock
from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import inbox
from interlock.ledger.decisions.substance import substance_of
from interlock.ledger.queries.run_lines import RunsWanted, run_lines
from interlock.ledger.retention import collect
from support.attacker import EVERY, USER, Attacker, Reaction, declines, on
from support.harness import Bench, steps, workflow

CLIENT = Terms(decisions="client", min_response_ms=0)
CHANNEL = {
    "reason": "needs_user_choice",
    "key": "channel",
    "question": "Which channel?",
    "nonAssumable": "external_side_effect",
}


def test_a_question_waits_although_another_run_of_the_session_was_advanced_last(bench: Bench) -> None:
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow(*steps("ask", userInput=[need])))
    bench.write(workflow(*steps("one", "two", "three"), id="test.other"))
    agent = bench.agent()
    token = agent.call("start_session", title="Two runs")["sessionToken"]
    asking = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    agent.ack("one done")
    assert agent.ack("no colour yet", at=asking)["kind"] == "blocked"
    assert [question.id for question in inbox(agent.ledger)] == ["colour"]
    other = agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    agent.ack("went on", at=other)
    assert [question.id for question in inbox(agent.ledger)] == ["colour"]


def publishing(bench: Bench, surface: str, terms: Terms, *steps_: str, **variables: Any) -> Attacker:
    """Begin a run whose steps ask for one and the same key."""
    bench.write(workflow(*steps(*steps_, userInput=[CHANNEL]), *steps("last")))
    agent = Attacker(bench, surface, terms)
    agent.start("test.flow", "main", **variables)
    return agent


def complete(agent: Attacker, step: str, reacts: Reaction = declines) -> None:
    """Try to complete a step, through a client that can show forms."""
    match agent.surface:
        case "execution":
            agent.call_with_forms(reacts, "continue_workflow", **agent.acknowledging())
        case "navigation":
            named = {"state": agent.tokens["state"], "action": "complete_step", "step_id": step}
            agent.call_with_forms(reacts, "nav_action", **named)
        case _:
            manifest = [{"step_id": step, "output": "done"}]
            token = {"session_token": agent.tokens["session_token"]}
            agent.call_with_forms(
                reacts, "next_activity", activity_id="__terminal__", step_manifest=manifest, **token
            )


@on(*EVERY)
def test_an_answer_that_the_agent_brought_does_not_keep_the_question_from_the_user(
    bench: Bench, surface: str
) -> None:
    agent = publishing(bench, surface, USER, "publish", channel="stable")
    complete(agent, "publish")
    assert not agent.has_done("publish")
    agent.user_decides("channel", "beta")
    complete(agent, "publish")
    assert agent.has_done("publish")
    assert (agent.variables["channel"], agent.waiting()) == ("beta", [])


@on(*EVERY)
def test_two_steps_that_ask_for_one_key_both_wait(bench: Bench, surface: str) -> None:
    agent = publishing(bench, surface, USER, "publish", "announce")
    for step in ("publish", "announce"):
        complete(agent, step)
        assert not agent.has_done(step)
        agent.user_decides("channel", "beta")
        complete(agent, step)
        assert agent.has_done(step)


@on(*EVERY, policy=["auto", "client"])
def test_a_question_whose_form_was_declined_waits(bench: Bench, surface: str, policy: str) -> None:
    terms = CLIENT if policy == "client" else Terms(min_response_ms=0)
    agent = publishing(bench, surface, terms, "publish", channel="stable")
    complete(agent, "publish", declines)
    assert not agent.has_done("publish")
    agent.user_decides("channel", "beta")
    complete(agent, "publish", declines)
    assert agent.has_done("publish")
    assert agent.variables["channel"] == "beta"


@on(*EVERY)
def test_what_the_agent_may_answer_and_has_does_not_wait(bench: Bench, surface: str) -> None:
    contract = {"contractRef": "wr.contracts.verification_report"}
    bench.write(workflow(*steps("publish", userInput=[CHANNEL], output=contract), *steps("last")))
    agent = Attacker(bench, surface)
    agent.start("test.flow", "main", channel="stable")
    agent.do("publish")
    assert not agent.has_done("publish")
    assert agent.waiting() == []


def awaiting(agent: Attacker) -> list[str]:
    """Return what the sessions wait for that count as waiting."""
    lines = run_lines(agent.ledger, RunsWanted("waiting")).lines
    assert all(line.status == "waiting" for line in lines)
    return [line.awaiting for line in lines]


@on(*EVERY)
def test_a_session_with_an_open_question_of_a_step_counts_as_waiting(bench: Bench, surface: str) -> None:
    agent = publishing(bench, surface, USER, "publish", channel="stable")
    complete(agent, "publish")
    assert awaiting(agent) == ["channel"]
    later = agent.ledger.clock() + 1
    assert not collect(agent.ledger.store, later, later)
    agent.user_decides("channel", "beta")
    complete(agent, "publish")
    assert awaiting(agent) == []


def test_a_question_that_answers_itself_is_shown_with_its_default_and_its_time(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rule 24."""
    options = [{"id": "now", "label": "Now"}, {"id": "later", "label": "Later"}]
    timed = {"blocking": False, "defaultOption": "later", "autoAdvanceMs": 30_000}
    gate = {"type": "gate", "id": "send", "name": "Send", "message": "Send?", "options": options, **timed}
    bench.write(workflow(gate, *steps("one")))
    agent = bench.agent()
    agent.call("start_workflow", workflowId="test.flow")
    (question,) = inbox(agent.ledger)
    assert (question.default, question.default_at) == ("later", question.since + 30_000)
    position = agent.ledger.position(question.session_id, question.node)
    show_question(question, substance_of(agent.ledger, position, question))
    assert f"Without an answer: later, from {clock(question.default_at)} on." in capsys.readouterr().out


@pytest.mark.parametrize(("handed_in", "shown"), [(20, 20), (21, 20)])
def test_a_question_comes_with_the_report_before_it_and_says_if_there_is_more(
    bench: Bench, handed_in: int, shown: int
) -> None:
    bench.write(workflow(*steps("write"), *steps("publish", userInput=[CHANNEL])))
    agent = bench.agent()
    agent.start("test.flow")
    notes = "Written.\n" * 400
    agent.ack(notes, artifacts=[{"kind": "page", "number": number} for number in range(handed_in)])
    agent.ack()
    (question,) = inbox(agent.ledger)
    position = agent.ledger.position(question.session_id, question.node)
    substance = substance_of(agent.ledger, position, question)
    assert substance.handed_in is not None
    assert substance.handed_in.notes == (notes,)
    assert (len(substance.handed_in.artifacts), substance.shortened) == (shown, shown < handed_in)
