"""The end of a run says who decided what, and where the record is, on every surface."""

from __future__ import annotations

import re

import pytest

from interlock.surfaces.navigation import NavigationSurface
from support.harness import Agent, Bench, gate, steps, workflow
from support.session_agents import answer_checkpoint, gated, session

DECIDED = "Decided: ship: yes (Yes), reported by the agent."
RECORD = re.compile(r"The record: interlock log sess_\w+\.")


@pytest.fixture
def flow(bench: Bench) -> Bench:
    bench.write(workflow(*steps("build"), gate("ship", {"id": "yes", "label": "Yes"}, "no")))
    return bench


def assert_tells(text: str) -> None:
    assert DECIDED in text
    assert RECORD.search(text)


def test_on_execution(flow: Bench) -> None:
    agent = flow.agent()
    agent.start("test.flow")
    agent.ack("built")
    agent.decide("yes")
    assert agent.text.startswith("The workflow is complete. ")
    assert_tells(agent.text)


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_on_session_and_gated(flow: Bench, surface: str) -> None:
    agent = session(flow) if surface == "session" else gated(flow)
    agent.call(
        "start_session", workflow_id="test.flow", **({"agent_id": "a"} if surface == "session" else {})
    )
    agent.go("main")
    done = [{"step_id": "build", "output": "built"}]
    if surface == "session":
        answer_checkpoint(agent, agent, "ship", "yes", step_manifest=done)
    else:
        agent.tell("respond_checkpoint", checkpoint_id="ship", option_id="yes", step_manifest=done)
    assert_tells(agent.go("__terminal__").body["outcome"])


def test_on_navigation(flow: Bench) -> None:
    client = Agent(NavigationSurface(flow.ledger()))
    state = client.call("nav_start", workflow_id="test.flow")["state"]
    built = {"action": "complete_step", "step_id": "build", "output": {"notesMarkdown": "built"}}
    state = client.call("nav_action", state=state, **built)["state"]
    answer = {"action": "respond_to_checkpoint", "checkpoint_id": "ship", "option_id": "yes"}
    state = client.call("nav_action", state=state, **answer)["state"]
    ended = client.call("nav_action", state=state, action="transition", activity_id="__terminal__")
    assert_tells(ended["message"])
