"""What an answer says to do now: one sentence for each channel, in the words of its surface (rule 41)."""

from __future__ import annotations

import json

import pytest

from interlock.core.run.commands import Terms
from interlock.surfaces.refusals import INBOX
from support.harness import STATEFUL, Bench, gate, steps, workflow
from support.text_agents import AGENTS, TextAgent

FLOW = workflow(*steps("look"), gate("deploy", "yes", "no"), *steps("last"), metaGuidance=["Stay calm."])


def agent_of(bench: Bench, surface: str, terms: Terms) -> TextAgent:
    bench.write(FLOW)
    agent, _ = AGENTS[surface]
    return agent(STATEFUL[surface](bench.ledger(terms=terms)), "test.flow", "walrus")  # type: ignore[arg-type]


@pytest.mark.parametrize("surface", STATEFUL)
def test_where_only_the_user_decides_the_agent_is_told_to_end_its_turn(bench: Bench, surface: str) -> None:
    agent = agent_of(bench, surface, Terms(decisions="user", min_response_ms=0))
    text = agent.begin()
    for _ in range(5):
        if INBOX in text:
            break
        text = agent.go_on(text)
    assert INBOX in text
    assert "Ask the user" not in text


def test_a_block_says_what_is_missing_and_not_the_step_again(bench: Bench) -> None:
    bench.write(workflow(*steps("look", prompt="Look at the sea.", output={"kind": "t.sea"})))
    agent = bench.agent()
    agent.start("test.flow", goal="walrus")
    assert "Look at the sea." in agent.text
    agent.ack("Looked.")
    assert agent.text.startswith("BLOCKED")
    assert "Look at the sea." not in agent.text
    assert "with only stateToken it shows the step again" in agent.text


def test_an_advance_shows_the_tokens_to_go_on_with_and_a_read_shows_all(bench: Bench) -> None:
    agent = agent_of(bench, "execution", Terms())
    started = agent.begin()
    advanced = agent.go_on(started)
    assert ["checkpointToken" in text for text in (started, advanced)] == [True, False]
    assert "checkpointToken" in agent.remember()


def test_navigation_tells_the_rules_of_the_workflow_at_the_start(bench: Bench) -> None:
    agent = agent_of(bench, "navigation", Terms())
    assert json.loads(agent.begin())["rules"] == ["Stay calm."]
    assert "Stay calm." in agent.remember()


def test_a_step_that_sends_nothing_is_not_told_to_send_it(bench: Bench) -> None:
    bench.write(workflow(*steps("look", notesOptional=True), *steps("tell")))
    agent = bench.agent()
    agent.start("test.flow")
    assert "\nThen continue_workflow with:\nstateToken: " in agent.text
