"""What nobody has set and decides whether work is left out is asked for on every surface (rule 20)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.store.protocol import SessionFilter
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from support.harness import Agent, Bench, steps, workflow
from support.log import logged_events
from support.session_agents import gated, session, write_flow

SHAPE = {"deep": "<true | false>"}


@pytest.fixture
def flow(bench: Bench) -> Bench:
    """A workflow whose last step depends on a variable that no step sets."""
    later = steps("dig", runCondition={"var": "deep", "equals": True})
    bench.write(workflow(*steps("look"), *later))
    return bench


def test_execution_asks_for_it_and_blocks(flow: Bench) -> None:
    agent = flow.agent()
    agent.start("test.flow")
    agent.ack("seen")
    assert "Nobody has set 'deep': without that, the workflow ends past step 'dig'." in agent.text
    assert 'Send in context: {"deep":"<true | false>"}' in agent.text
    blocked = agent.ack("seen")
    assert [blocker["example"] for blocker in blocked["blockers"]] == [SHAPE]
    assert agent.ack(deep=True)["pending"]["stepId"] == "dig"


def test_execution_takes_null_as_leave_it_unset(flow: Bench) -> None:
    agent = flow.agent()
    agent.start("test.flow")
    assert agent.ack("seen", deep=None)["status"] == "complete"


@pytest.mark.parametrize("surface", [session, gated])
def test_a_claim_is_refused_without_it(flow: Bench, surface: Any) -> None:
    agent = surface(flow, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    done = [{"step_id": "look", "output": "seen"}]
    refusal = agent.go("__terminal__", step_manifest=done)
    assert (refusal.code, refusal.fields["example"]) == ("INPUT_REQUIRED", SHAPE)
    assert agent.go("__terminal__", variables={"deep": None}).body["status"] == "completed"


@pytest.mark.parametrize("deep", [True, False, None])
def test_navigation_lists_it_with_the_exit(flow: Bench, deep: bool | None) -> None:
    client = Agent(NavigationSurface(flow.ledger()))
    state = client.call("nav_start", workflow_id="test.flow")["state"]
    look = {"action": "complete_step", "step_id": "look", "output": {"notesMarkdown": "seen"}}
    body = client.call("nav_action", state=state, **look)
    (offer,) = body["availableActions"]["required"]
    assert (offer["action"], offer["variables"], offer["example"]) == ("transition", ["deep"], SHAPE)
    leave = {"state": body["state"], "action": "transition", "activity_id": "__terminal__"}
    assert client.call("nav_action", **leave)["error"]["code"] == "INPUT_REQUIRED"
    body = client.call("nav_action", **leave, variables={"deep": deep})
    assert body["success"]
    if deep:
        assert body["availableActions"]["required"][0]["step_id"] == "dig"
    else:
        assert body["status"] == "completed"


def test_in_never_stop_mode_navigation_lists_the_exit_without_it(flow: Bench) -> None:
    client = Agent(NavigationSurface(flow.ledger("never-stop")))
    state = client.call("nav_start", workflow_id="test.flow")["state"]
    look = {"action": "complete_step", "step_id": "look", "output": {"notesMarkdown": "seen"}}
    body = client.call("nav_action", state=state, **look)
    (offer,) = body["availableActions"]["required"]
    assert (offer["action"], offer["activity"]) == ("transition", "__terminal__")
    assert not {"variables", "example"} & offer.keys(), "it is not required"
    left = client.call("nav_action", state=body["state"], action="transition", activity_id="__terminal__")
    assert left["status"] == "completed"
    assert "Nobody has set 'deep'" in client.text, "the gap says so"


def test_lookup_warns_with_the_context_to_send(flow: Bench) -> None:
    client = Agent(LookupSurface(flow.ledger().library))
    body = client.call("workflow_next", workflowId="test-flow", completedSteps=["look"])
    assert body["isComplete"]
    assert 'Send in context: {"deep":"<true | false>"}.' in client.text.replace("\\", "")
    client.call("workflow_next", workflowId="test-flow", completedSteps=["look"], context={"deep": None})
    assert "Send in context" not in client.text


AGAIN = {
    "again/workflow.yaml": """
id: again
version: 1.0.0
title: Again
initialActivity: try
""",
    "again/activities/00-try.yaml": """
id: try
version: 1.0.0
name: Try
steps:
  - { id: attempt, name: Attempt, description: Try it., actions: [{ action: set, target: works }] }
transitions:
  - { to: try, condition: { type: simple, variable: works, operator: "==", value: false } }
  - { to: __terminal__, isDefault: true }
""",
}


def test_an_activity_with_an_exit_to_itself_is_read_again_and_entered_again(bench: Bench) -> None:
    write_flow(bench, AGAIN)
    agent = gated(bench, Terms(min_response_ms=0))
    agent.call("start_session", workflow_id="again")
    agent.go("try")
    agent.go("try")
    assert visits(bench, agent) == 1
    done = [{"step_id": "attempt", "output": "it failed"}]
    agent.go("try", step_manifest=done, variables={"works": False})
    assert visits(bench, agent) == 2
    ended = agent.go("__terminal__", step_manifest=done, variables={"works": True})
    assert ended.body["status"] == "completed"


def visits(bench: Bench, agent: Any) -> int:
    store = agent.surface.ledger.store
    with store.reading() as reader:
        (session,) = reader.sessions(SessionFilter())
    return len(logged_events(store, session.session_id, "activity_entered"))
