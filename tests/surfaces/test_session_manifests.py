"""The session surface: manifests, the outputs in them, and the warnings about them."""

from __future__ import annotations

import pytest

from interlock.core.run.commands import Terms
from support.harness import Bench, workflow
from support.session_agents import (
    answer_checkpoint,
    manifest,
    session,
    start_flow,
    write_flow,
)

EARLY = {
    "early/workflow.yaml": "{id: early, version: 1.0.0, title: Early, initialActivity: one}",
    "early/activities/00-one.yaml": """
id: one
version: 1.0.0
name: One
steps:
  - { id: look, name: Look }
  - { id: never, name: Never, checkpoint: ask }
checkpoints:
  - id: ask
    name: Ask
    message: Leave?
    options: [{ id: leave, label: Leave, effect: { transitionTo: __terminal__ } }]
""",
}


def test_the_documented_warnings_in_their_words(bench: Bench) -> None:
    write_flow(bench)
    agent = session(bench, Terms(enforcement="advisory", min_response_ms=0))
    agent.call("start_session", agent_id="a", workflow_id="flow")
    answer = agent.go("finish")
    assert answer.warnings == [
        "First activity must be 'gather' but 'finish' was requested. "
        "Start with the workflow's initialActivity.",
        "Gap 1 (critical, for the user to resolve): "
        "Checkpoint 'scope' of activity 'gather' was left out on the way to 'finish'.",
    ]
    answer = agent.go("build", activity_manifest=[], variables={"parts": []})
    assert answer.warnings == [
        "No step_manifest provided for previous activity 'finish'. "
        "Include a manifest to enable step completion validation.",
        "Empty activity_manifest provided. Omit the parameter if no activities have been completed.",
        "Activity 'build' is not a direct transition from 'finish'. Valid transitions: [__terminal__]",
        "Gap 2 (critical, for the user to resolve): "
        "Checkpoint 'scope' of activity 'gather' was left out on the way to 'build'.",
    ]
    answer = agent.go(
        "finish",
        step_manifest=[{"step_id": "other", "output": " "}],
        activity_manifest=[{"activity_id": "x", "transition_condition": "moon"}],
        transition_condition="moon",
    )
    assert answer.warnings == [
        "Missing steps in manifest: [begin]",
        "Unexpected steps in manifest: [other]",
        "Step 'other' has empty output",
        "Activity manifest references unknown activity 'x'",
        "Activity 'x' has empty outcome",
        "Activity 'x' claims transition condition 'moon' not found in workflow transitions",
        "Transition to 'finish' is the default (no condition) but agent claimed condition 'moon'.",
    ]


def test_the_order_of_the_manifest_is_compared(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "g"})
    answer = agent.go("build", step_manifest=manifest("weigh", "look"))
    assert answer.warnings == ["Step order mismatch at position 0: expected 'look' but got 'weigh'"]


def test_no_manifest_is_missed_if_the_steps_before_an_early_exit_came_with_the_yield(bench: Bench) -> None:
    """Rule 14: what came with a yield need not be sent again."""
    write_flow(bench, EARLY)
    agent = session(bench, Terms(min_response_ms=0))
    agent.call("start_session", agent_id="a", workflow_id="early")
    agent.go("one")
    answer_checkpoint(agent, agent, "ask", "leave", step_manifest=manifest("look"))
    assert agent.go("__terminal__").warnings == []


def test_every_warning_is_also_in_the_trace(bench: Bench) -> None:
    """Rule 18."""
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "g"})
    answer = agent.go("build")
    events = agent.tell("get_trace").body["events"]
    assert answer.warnings
    assert [event for event in events if event["name"] == "next_activity"][-1]["vw"] == answer.warnings


def test_a_step_with_a_required_contract_is_not_claimed_without_its_artifact(bench: Bench) -> None:
    """Rule 14."""
    contract = {
        "output": {"schema": {"type": "object", "required": ["n"]}, "example": {"kind": "count", "n": 1}}
    }
    items = [{"id": "count", "title": "Count", "prompt": "Count.", **contract}]
    bench.write(workflow(*items))
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    answer = agent.go("__terminal__", step_manifest=manifest("count"))
    assert answer.code == "OUTPUT_REQUIRED"
    artifact = {**answer.fields["example"], "n": 3}
    done = agent.go("__terminal__", step_manifest=[{"step_id": "count", "output": {"artifacts": [artifact]}}])
    assert done.body["status"] == "completed", done.text


@pytest.mark.parametrize(
    "output",
    [{"artifacts": [{"n": 1}]}, {"artifacts": "x"}, {"kind": "big", "body": "x" * 300_000}],
)
def test_an_output_that_does_not_fit_is_refused_with_its_step_and_changes_nothing(
    bench: Bench, output: object
) -> None:
    agent = start_flow(bench)
    before = agent.tell("get_workflow_status").body
    answer = agent.go("build", step_manifest=[{"step_id": "look", "output": output}], variables={"goal": "g"})
    assert answer.code == "VALIDATION_ERROR"
    assert "look" in answer.text
    assert agent.tell("get_workflow_status").body == before


@pytest.mark.parametrize("output", [{"found": 3}, ["a", "b"], 7, "plain"])
def test_any_value_is_an_output(bench: Bench, output: object) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "g"})
    answer = agent.go("build", step_manifest=[{"step_id": "look", "output": output}, *manifest("weigh")])
    assert answer.warnings == []


def test_outputs_of_the_manifest_are_found_again(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes")
    agent.go("build", step_manifest=[{"step_id": "look", "output": "the oven is broken"}])
    candidates = bench.agent().call("resume_session", query="oven broken")["candidates"]
    assert [candidate["workflowId"] for candidate in candidates] == ["flow"]
    recap = bench.agent().call("continue_workflow", stateToken=agent.token)["recap"]["entries"]
    assert recap == [{"stepId": "look", "notes": "the oven is broken"}]
