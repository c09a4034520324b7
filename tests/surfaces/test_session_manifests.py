"""The session surface: manifests, the outputs in them, and the warnings about them."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.run.commands import Terms
from interlock.core.run.notices import HOW_GAPS_CLOSE
from support.harness import Bench, steps, workflow
from support.session_agents import (
    SessionAgent,
    answer_checkpoint,
    gated,
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


CHILD_NOT_STARTED = {  # gated starts no child
    session: ("Workflow 'child', which activity 'finish' triggers, was not started.",),
    gated: (),
}


@pytest.mark.parametrize("surface", [session, gated])
def test_the_documented_warnings_in_their_words(bench: Bench, surface: Any) -> None:
    write_flow(bench)
    agent = surface(bench, Terms(enforcement="advisory", min_response_ms=0))
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
        *CHILD_NOT_STARTED[surface],
        "Gap 2 (critical, for the user to resolve): "
        "Checkpoint 'scope' of activity 'gather' was left out on the way to 'build'.",
        "Gap 3 (warning): Nothing was written down about 'close' of activity 'finish'.",
        HOW_GAPS_CLOSE,
    ]
    answer = agent.go(
        "finish",
        step_manifest=[{"step_id": "other", "output": " "}],
        activity_manifest=[{"activity_id": "x", "transition_condition": "moon"}],
        transition_condition="moon",
    )
    assert answer.warnings == [
        "Missing steps in manifest: [begin]",
        "Step 'other' has empty output",
        "Activity manifest references unknown activity 'x'",
        "Activity 'x' has empty outcome",
        "Activity 'x' claims transition condition 'moon' not found in workflow transitions",
        "Unexpected steps in manifest: [other]",
        "Transition to 'finish' is the default (no condition) but agent claimed condition 'moon'.",
        "Gap 4 (warning): Nothing was written down about 'begin' of activity 'build'.",
    ]


def scope_answered(bench: Bench, surface: Any) -> SessionAgent:
    """Return an agent in the activity that it may leave now."""
    write_flow(bench)
    agent: SessionAgent = surface(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    if surface is session:
        answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "g"})
        return agent
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes", variables={"goal": "g"})
    agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    return agent


@pytest.mark.parametrize("surface", [session, gated])
def test_the_order_of_the_manifest_is_compared(bench: Bench, surface: Any) -> None:
    answer = scope_answered(bench, surface).go("build", step_manifest=manifest("weigh", "look"))
    assert answer.warnings == ["Step order mismatch at position 0: expected 'look' but got 'weigh'"]


@pytest.mark.parametrize("surface", [session, gated])
def test_a_step_that_the_activity_does_not_have_is_told_by_whichever_call_names_it(
    bench: Bench, surface: Any
) -> None:
    """Its output is not recorded, so that whoever misspelt a step must learn it from a refusal too."""
    write_flow(bench)
    agent = surface(bench, Terms(min_response_ms=0))
    agent.call("start_session", agent_id="a", workflow_id="flow")
    misspelt = manifest("lok")
    assert "Unexpected steps in manifest: [lok]" in agent.go("gather", step_manifest=misspelt).warnings
    refused = agent.go("build", step_manifest=misspelt)
    assert refused.code == "GATE_UNANSWERED"
    assert "Unexpected steps in manifest: [lok]" in refused.text
    named = {"checkpoint_id": "scope", "step_manifest": misspelt, "variables": {"goal": "g"}}
    if surface is session:
        asked = agent.tell("yield_checkpoint", **named)
    else:
        asked = agent.tell("get_checkpoint", activity_id="gather", **named)
        answered = agent.tell("respond_checkpoint", option_id="yes", **named)
        assert "Unexpected steps in manifest: [lok]" in answered.warnings
    assert "Unexpected steps in manifest: [lok]" in asked.warnings


def test_no_manifest_is_missed_if_the_steps_before_an_early_exit_came_with_the_yield(bench: Bench) -> None:
    """Rule 14: what came with a yield need not be sent again."""
    write_flow(bench, EARLY)
    agent = session(bench, Terms(min_response_ms=0))
    agent.call("start_session", agent_id="a", workflow_id="early")
    agent.go("one")
    answer_checkpoint(agent, agent, "ask", "leave", step_manifest=manifest("look"))
    assert agent.go("__terminal__").warnings == []


@pytest.mark.parametrize("surface", [session, gated])
def test_every_warning_is_also_in_the_trace(bench: Bench, surface: Any) -> None:
    """Rule 18."""
    agent = scope_answered(bench, surface)
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


@pytest.mark.parametrize("surface", [session, gated])
def test_outputs_of_the_manifest_are_found_again(bench: Bench, surface: Any) -> None:
    agent = scope_answered(bench, surface)
    agent.go("build", step_manifest=[{"step_id": "look", "output": "the oven is broken"}])
    candidates = bench.agent().call("resume_session", query="oven broken")["candidates"]
    assert [candidate["workflowId"] for candidate in candidates] == ["flow"]
    recap = bench.agent().call("continue_workflow", stateToken=agent.token)["recap"]["entries"]
    assert recap == [{"stepId": "look", "notes": "the oven is broken"}]


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_a_step_of_which_nothing_was_written_down_is_a_gap_and_no_block(bench: Bench, surface: str) -> None:
    """Rule 31: what was done is asked for when the activity is read."""
    bench.write(workflow(*steps("look", "weigh"), *steps("quiet", notesOptional=True)))
    agent = session(bench) if surface == "session" else gated(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    entered = agent.go("main")
    read = agent.tell("get_activity") if surface == "session" else entered
    assert "output: what came of the step" in read.text
    ended = agent.go("__terminal__", step_manifest=manifest("look"))
    assert ended.body["status"] == "completed"
    assert "Gap 1 (warning): Nothing was written down about 'weigh' of activity 'main'." in ended.warnings


@pytest.mark.parametrize("surface", ["session", "gated"])
def test_nothing_is_missed_where_every_step_was_reported_or_need_not_be(bench: Bench, surface: str) -> None:
    bench.write(workflow(*steps("look"), *steps("quiet", notesOptional=True)))
    agent = session(bench) if surface == "session" else gated(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    ended = agent.go("__terminal__", step_manifest=manifest("look", "quiet"))
    assert not [warning for warning in ended.warnings if "Gap" in warning]


LAST = {
    "last/workflow.yaml": "{id: last, version: 1.0.0, title: Last, initialActivity: one}",
    "last/activities/00-one.yaml": """
id: one
version: 1.0.0
name: One
steps:
  - { id: look, name: Look }
  - { id: tell, name: Tell }
checkpoints:
  - { id: ask, name: Ask, message: Publish?, options: [{ id: ok, label: Yes }] }
""",
}


@pytest.mark.parametrize("surface", [session, gated])
@pytest.mark.parametrize("again", ["at the question", "with a refused call"])
def test_an_output_that_comes_while_the_question_waits_counts(bench: Bench, surface: Any, again: str) -> None:
    """Rule 14: a later output for a claimed step is still taken, and nobody says that there was none."""
    write_flow(bench, LAST)
    agent = surface(bench)
    agent.call("start_session", agent_id="a", workflow_id="last")
    agent.go("one")
    assert agent.go("__terminal__").code == "GATE_UNANSWERED"
    done = {"step_manifest": manifest("look", "tell")}
    if again == "with a refused call":
        assert agent.go("__terminal__", **done).code == "GATE_UNANSWERED"
        done = {}
    if surface is session:
        answer_checkpoint(agent, agent, "ask", "ok", **done)
    else:
        agent.tell("respond_checkpoint", checkpoint_id="ask", option_id="ok", **done)
    ended = agent.go("__terminal__")
    assert ended.body["status"] == "completed"
    assert ended.warnings == []
    recap = agent.tell("get_workflow_status").body["recap"] if surface is session else None
    assert recap is None or [entry["notes"] for entry in recap["entries"]] == ["look done", "tell done"]


def test_variables_that_come_with_a_yield_of_a_shown_question_are_kept(bench: Bench) -> None:
    write_flow(bench, LAST)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="last")
    agent.go("one")
    agent.go("__terminal__", step_manifest=manifest("look", "tell"))
    agent.tell("yield_checkpoint", checkpoint_id="ask", variables={"mood": "calm"})
    assert agent.tell("get_workflow_status").body["context"] == {"mood": "calm"}
