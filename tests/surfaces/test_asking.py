"""Asking the user through the client (rules 10, 26, 27): answered, declined, and bound to what was shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.surfaces.call import Call, Client, Elicit, FormAnswer, Reply
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.tool import call_tool
from support.harness import Agent, Bench, decision, gate, steps, workflow
from support.log import logged_events

CLIENT = Client("asking-client", can_elicit=True)
CONFIRMED = {"id": "confirmed", "title": "Confirmed", "prompt": "x", "requireConfirmation": True}


def acknowledge(agent: Agent, output: dict[str, Any] | None = None, **more: Any) -> Elicit | dict[str, Any]:
    arguments = {"stateToken": agent.last["stateToken"], "ackToken": agent.last["ackToken"]}
    arguments |= {"output": output} if output else {}
    outcome = call_tool(agent.surface, "continue_workflow", arguments, Call(CLIENT, **more))
    if isinstance(outcome, Elicit):
        return outcome
    assert isinstance(outcome, Reply)
    assert isinstance(outcome.structured, msgspec.Raw)
    answer: dict[str, Any] = msgspec.json.decode(bytes(outcome.structured))
    return answer


def asked(agent: Agent) -> Elicit:
    ask = acknowledge(agent)
    assert isinstance(ask, Elicit)
    return ask


def started(bench: Bench, item: dict[str, Any], **options: Any) -> Agent:
    bench.write(workflow(item, *steps("last")))
    agent = bench.agent(**options)
    agent.start("test.flow")
    return agent


def channel(agent: Agent) -> list[str]:
    rows = logged_events(agent.ledger.store, agent.last["session"]["sessionId"], "gate_resolved")
    return [row.event.channel for row in rows]


@pytest.mark.parametrize(
    "item", [gate("which", "left", "right"), CONFIRMED], ids=["checkpoint", "confirmation"]
)
def test_the_user_is_asked_and_the_answer_is_recorded_with_its_channel(
    bench: Bench, item: dict[str, Any]
) -> None:
    agent = started(bench, item)
    ask = asked(agent)
    ((name, question),) = ask.questions.items()
    choices = [item["const"] for item in question.schema["properties"]["choice"]["oneOf"]]  # type: ignore[index]
    answers = {name: FormAnswer("accept", {"choice": choices[0]})}
    answer = acknowledge(agent, answers=answers, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["pending"]["stepId"] == "last"
    assert channel(agent) == ["elicitation"]


def test_asking_is_no_attempt(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"))
    before = agent.ledger.store._connection.total_changes()  # type: ignore[attr-defined]
    asked(agent)
    asked(agent)
    assert agent.ledger.store._connection.total_changes() == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_declining_is_no_answer(bench: Bench, action: Any) -> None:
    agent = started(bench, gate("which", "left", "right"))
    ask = asked(agent)
    answer = acknowledge(agent, answers={"which": FormAnswer(action)}, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["kind"] == "blocked"


def test_the_agent_cannot_fill_in_for_a_user_who_declined(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"))
    ask = asked(agent)
    forged = {"artifacts": [decision("which", "left")]}
    answer = acknowledge(agent, forged, answers={"which": FormAnswer("decline")}, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["kind"] == "blocked"
    assert "inbox" in answer["blockers"][0]["suggestedFix"]


def test_a_declined_confirmation_is_not_taken_from_the_bare_acknowledgement(bench: Bench) -> None:
    agent = started(bench, CONFIRMED)
    ask = asked(agent)
    answer = acknowledge(agent, answers={"confirm-confirmed": FormAnswer("decline")}, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["pending"]["stepId"] == "confirm-confirmed"


def test_revise_makes_the_step_pending_again(bench: Bench) -> None:
    agent = started(bench, CONFIRMED)
    ask = asked(agent)
    answers = {"confirm-confirmed": FormAnswer("accept", {"choice": "revise"})}
    answer = acknowledge(agent, answers=answers, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["pending"]["stepId"] == "confirmed"


def test_an_answer_to_another_question_does_not_count(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"))
    answers = {"which": FormAnswer("accept", {"choice": "left"})}
    again = acknowledge(agent, answers=answers, asked="sha256:something-else")
    assert isinstance(again, Elicit)
    assert again.questions["which"].message == "which?"


def test_what_only_the_user_has_is_asked_for(bench: Bench) -> None:
    need = {"reason": "needs_user_artifact", "key": "designDoc", "question": "Where is the design?"}
    agent = started(bench, {"id": "read", "title": "Read", "prompt": "x", "userInput": [need]})
    ask = asked(agent)
    assert ask.questions["designDoc"].message == "Where is the design?"
    answers = {"designDoc": FormAnswer("accept", {"choice": "docs/design.md"})}
    answer = acknowledge(agent, answers=answers, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["pending"]["stepId"] == "last"


def test_policy_agent_never_asks(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"), terms=Terms(decisions="agent"))
    assert isinstance(acknowledge(agent), dict)


def test_never_stop_never_asks(bench: Bench) -> None:
    assert isinstance(acknowledge(started(bench, gate("which", "left", "right"), mode="never-stop")), dict)


def test_policy_client_takes_the_answer_of_a_form_and_no_report(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"), terms=Terms(decisions="client"))
    assert agent.decide("left")["kind"] == "blocked", "a client without forms leaves it to the inbox"
    assert "inbox" in agent.text
    ask = asked(agent)
    answer = acknowledge(agent, answers={"which": FormAnswer("accept", {"choice": "left"})}, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["pending"]["stepId"] == "last"


def test_policy_user_sends_no_form_and_takes_no_answer_of_one(bench: Bench) -> None:
    agent = started(bench, gate("which", "left", "right"))
    ask = asked(agent)
    stricter = Agent(ExecutionSurface(bench.ledger(terms=Terms(decisions="user"))))
    stricter.last = agent.last
    answers = {"which": FormAnswer("accept", {"choice": "left"})}
    answer = acknowledge(stricter, answers=answers, asked=ask.state)
    assert isinstance(answer, dict)
    assert answer["kind"] == "blocked"
    assert not channel(agent)
    stricter.last = answer
    assert isinstance(acknowledge(stricter), dict), "nothing is asked through the client"


@pytest.mark.parametrize("by", ["continue_workflow", "resume_session"])
def test_a_read_says_what_the_user_has_answered(bench: Bench, by: str) -> None:
    """An agent that comes back after the decision is not sent to the inbox again."""
    need = {"reason": "needs_user_choice", "key": "channel", "question": "Which channel?"}
    bench.write(workflow(gate("ship", "now", "later"), *steps("publish", userInput=[need])))
    agent = bench.agent(terms=Terms(decisions="user"))
    agent.start("test.flow", goal="pelican")

    def read() -> str:
        if by == "continue_workflow":
            agent.call("continue_workflow", stateToken=agent.last["stateToken"])
        else:
            agent.call("resume_session", query="pelican")
        return agent.text

    started = agent.last
    assert "open the inbox" in read()
    (asked,) = inbox(agent.ledger)
    answer_question(agent.ledger, asked, "later", "after lunch")
    text = read()
    assert "The user has answered 'ship': later (cli), and says: after lunch" in text
    assert "open the inbox" not in text
    agent.last = started
    agent.ack()
    agent.ack()
    (asked,) = inbox(agent.ledger)
    answer_question(agent.ledger, asked, "stable")
    assert "The user has answered 'channel': stable (cli)" in read()
