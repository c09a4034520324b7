"""A step that is not required may be passed over or done, on every surface alike (rules 23 and 31)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from interlock.surfaces.call import Call, Reply
from interlock.surfaces.lookup import LookupSurface
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.tool import call_tool
from support.harness import Agent, Bench, gate, steps, workflow
from support.session_agents import SessionAgent, gated, session

VERDICT = {
    "kind": "wr.gate_verdict",
    "version": 1,
    "verdict": "approved",
    "confidence": "high",
    "rationale": "All acceptance criteria are met and checked.",
}


def write(bench: Bench) -> None:
    """Write a workflow whose first step is optional, and needs an artifact if it is done."""
    optional = steps("look", required=False, output={"contractRef": "wr.contracts.gate_verdict"})
    bench.write(workflow(*optional, *steps("work"), *steps("polish", required=False)))


def test_through_execution_an_optional_step_without_output_is_passed_over(bench: Bench) -> None:
    write(bench)
    agent = bench.agent()
    agent.start("test.flow")
    assert "This step is optional: do it if it helps here." in agent.text
    assert "Without output, the step is passed over." in agent.text
    assert agent.ack()["pending"]["stepId"] == "work"
    assert "This step is optional" not in agent.text
    agent.ack("worked")
    assert agent.ack()["status"] == "complete"


def test_through_execution_an_optional_step_that_is_done_hands_in_what_it_declares(bench: Bench) -> None:
    write(bench)
    agent = bench.agent()
    agent.start("test.flow")
    assert agent.ack("looked")["blockers"][0]["code"] == "MISSING_REQUIRED_OUTPUT"
    assert agent.ack("looked", artifacts=[VERDICT])["pending"]["stepId"] == "work"


@pytest.mark.parametrize("surface", [session, gated])
def test_a_manifest_may_leave_an_optional_step_out(bench: Bench, surface: Any) -> None:
    write(bench)
    agent: SessionAgent = surface(bench)
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    entered = agent.go("main")
    shown = agent.tell("get_activity").text if surface is session else entered.text
    assert shown.replace('"required":false', "required: false").count("required: false") == 2
    done = agent.go("__terminal__", step_manifest=[{"step_id": "work", "output": "worked"}])
    assert done.body["status"] == "completed"
    assert done.warnings == []


@pytest.mark.parametrize("surface", [session, gated])
def test_a_claimed_optional_step_hands_in_what_it_declares(bench: Bench, surface: Any) -> None:
    write(bench)
    agent: SessionAgent = surface(bench)
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    agent.go("main")
    claims: list[dict[str, Any]] = [{"step_id": "look", "output": "looked"}]
    claims.append({"step_id": "work", "output": "worked"})
    assert agent.go("__terminal__", step_manifest=claims).code == "OUTPUT_REQUIRED"
    claims[0]["output"] = {"artifacts": [VERDICT]}
    assert agent.go("__terminal__", step_manifest=claims).body["status"] == "completed"


def test_navigation_offers_an_optional_step_and_passes_over_it(bench: Bench) -> None:
    write(bench)
    agent = Agent(NavigationSurface(bench.ledger()))
    agent.call("nav_start", workflow_id="test.flow")
    started = json.loads(agent.text)
    assert started["availableActions"]["required"][0]["step"] == "work"
    agent.call("nav_action", state=started["state"], action="complete_step", step_id="work")
    state = json.loads(agent.text)["state"]
    agent.call("nav_action", state=state, action="transition", activity_id="__terminal__")
    assert json.loads(agent.text)["status"] == "completed"


SOFT = gate("soft", "yes", "no", defaultOption="no", blocking=False)


@pytest.mark.parametrize(
    "before", [steps("look", required=False), [SOFT]], ids=["optional step", "gate that holds nobody up"]
)
@pytest.mark.parametrize(
    ("config", "description"),
    [
        ({"type": "for", "count": 2}, "Start loop 'Each' (2 iterations)."),
        ({"type": "for", "count": "rounds"}, "not set to a whole number. Send it in variables."),
        ({"type": "forEach", "items": "parts"}, "Start loop 'Each': send its list 'parts' as loop_items."),
    ],
)
def test_navigation_offers_the_loop_after_what_holds_nobody_up(
    bench: Bench, before: list[dict[str, Any]], config: dict[str, Any], description: str
) -> None:
    each = {"id": "each", "type": "loop", "title": "Each", "body": steps("work")}
    bench.write(workflow(*before, {**each, "loop": {**config, "maxIterations": 3}}))
    agent = Agent(NavigationSurface(bench.ledger()))
    agent.call("nav_start", workflow_id="test.flow")
    started = json.loads(agent.text)
    (offered,) = started["availableActions"]["required"]
    assert description in offered["description"]
    advance = {"action": "advance_loop", "loop_id": "each"}
    given = {"loop_items": ["a"], "variables": {"rounds": 2}}
    wanted = {name: given[name] for name in given if name in offered}
    agent.call("nav_action", state=started["state"], **advance, **wanted)
    assert json.loads(agent.text)["position"]["step"]["id"] == "work"


@pytest.mark.parametrize(
    ("completed", "due"), [([], "look"), (["work"], "polish"), (["look"], "work"), (["work", "polish"], None)]
)
def test_lookup_passes_over_an_optional_step_when_a_later_one_is_done(
    bench: Bench, completed: list[str], due: str | None
) -> None:
    write(bench)
    surface = LookupSurface(bench.ledger().library)
    asked = {"workflowId": "test-flow", "completedSteps": completed}
    reply = call_tool(surface, "workflow_next", asked, Call())
    assert isinstance(reply, Reply)
    answer = msgspec.json.decode(reply.text)
    assert (answer["step"] or {}).get("id") == due
    assert answer["isComplete"] is (due is None)
    assert ("This step is optional" in answer["guidance"]["prompt"]) is (due in ("look", "polish"))
