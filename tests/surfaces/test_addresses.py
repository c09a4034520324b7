"""Where only the user may answer, a client that opens addresses is given that of the question (rule 27)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from interlock.core.run.commands import DecisionPolicy, Terms
from interlock.surfaces.call import Address, Call, Client, Elicit, FormAnswer, Reply
from interlock.surfaces.tool import call_tool
from support.harness import Agent, Bench, decision, gate, steps, workflow
from support.log import logged_events

CONSOLE = "http://127.0.0.1:8750/console"
OPENING = Client("opening-client", can_elicit=True, opens_addresses=True)


def started(bench: Bench, decisions: DecisionPolicy = "user", console_url: str = CONSOLE) -> Agent:
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    agent = bench.agent(terms=Terms(decisions), console_url=console_url)
    agent.start("test.flow")
    return agent


def acknowledged(agent: Agent, client: Client = OPENING, **more: Any) -> Elicit | Reply:
    arguments = {"stateToken": agent.last["stateToken"], "ackToken": agent.last["ackToken"]}
    arguments["output"] = {"artifacts": [decision("which", "left")]}
    outcome = call_tool(agent.surface, "continue_workflow", arguments, Call(client, **more))
    assert isinstance(outcome, (Elicit, Reply))
    return outcome


def kinds(agent: Agent, kind: str) -> list[Any]:
    return [row.event for row in logged_events(agent.ledger.store, agent.last["session"]["sessionId"], kind)]


def test_the_address_names_exactly_the_question_that_waits(bench: Bench) -> None:
    agent = started(bench)
    asked = acknowledged(agent)
    assert isinstance(asked, Elicit)
    question = asked.questions["which"]
    assert isinstance(question, Address)
    assert question.url.startswith(f"{CONSOLE}/inbox?")
    query = parse_qs(urlsplit(question.url).query)
    (shown,) = kinds(agent, "question_shown")
    assert query == {"session": [agent.last["session"]["sessionId"]], "shown": [shown.shown]}
    assert question.message == "which?"


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_opening_an_address_answers_nothing_and_declines_nothing(bench: Bench, action: Any) -> None:
    agent = started(bench)
    asked = acknowledged(agent)
    assert isinstance(asked, Elicit)
    forged = {"which": FormAnswer(action, {"choice": "left"} if action == "accept" else {})}
    after = acknowledged(agent, answers=forged, asked=asked.state)
    assert isinstance(after, Reply)
    assert "the user's own decision" in after.text or "inbox" in after.text
    assert kinds(agent, "gate_resolved") == kinds(agent, "question_declined") == []


@pytest.mark.parametrize(
    ("decisions", "console_url", "client"),
    [
        ("auto", CONSOLE, OPENING),
        ("user", "", OPENING),
        ("user", CONSOLE, Client("form-client", can_elicit=True)),
    ],
    ids=["a form will do", "there is no console", "the client opens none"],
)
def test_no_address_is_given(
    bench: Bench, decisions: DecisionPolicy, console_url: str, client: Client
) -> None:
    outcome = acknowledged(started(bench, decisions, console_url), client)
    questions = outcome.questions.values() if isinstance(outcome, Elicit) else ()
    assert not any(isinstance(question, Address) for question in questions)
