"""The session surface: child sessions, what they inherit and what they return (rule 35)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent, Bench
from support.navigation_client import opened
from support.session_agents import (
    SessionAgent,
    gated,
    manifest,
    session,
    session_id_of,
    start_flow,
    walk_to_finish,
    write_flow,
)


def test_a_child_takes_the_context_and_returns_what_the_parent_declares(bench: Bench) -> None:
    """Rule 35."""
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    answer = child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    assert not answer.warnings
    status = child.tell("get_workflow_status").body
    assert child.tell("get_trace").body["psid"] == session_id_of(parent)
    assert status["parent"] == {
        "session_id": session_id_of(parent),
        "workflow_id": "flow",
        "activity": "finish",
        "version": "1.2.0",
    }
    assert parent.tell("get_workflow_status").body["children"][0]["workflow_id"] == "child"
    child.go("only")
    child.go("__terminal__", variables={"verdict": "crusty", "risky": True, "private": "secret"})
    assert "children" not in parent.tell("get_workflow_status").body
    events = [
        event for event in parent.tell("get_trace").body["events"] if event["name"].startswith("child_")
    ]
    assert [event["name"] for event in events] == ["child_started", "child_returned"]
    assert events[1]["about"]["returned"] == ["risky"]  # the verdict is the user's, the goal was shown
    assert not parent.go("__terminal__").error


def test_a_run_that_has_ended_starts_no_child(bench: Bench) -> None:
    parent = walk_to_finish(start_flow(bench))
    parent.go("__terminal__")
    child = session(bench)
    answer = child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    assert answer.error
    assert "has ended; it starts no child" in answer.text


def test_a_child_has_a_child_has_a_child(bench: Bench) -> None:
    write_flow(bench)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    for _ in range(3):
        answer = agent.call(
            "start_session", agent_id="a", workflow_id="flow", parent_session_token=agent.token
        )
        assert answer.warnings == ["Activity 'none' declares no trigger of 'flow'; no context was passed on."]
    parent, depth = agent.tell("get_workflow_status").body.get("parent"), 0
    while parent:
        parent, depth = parent.get("parent"), depth + 1
    assert depth == 3


def test_a_parent_that_goes_on_records_the_abandoned_child(bench: Bench) -> None:
    """Rule 35."""
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    assert not parent.go("__terminal__").error
    events = [event for event in parent.tell("get_trace").body["events"] if event["name"] == "child_returned"]
    assert events[0]["about"]["outcome"] == "abandoned"
    told = child.go("only")
    assert told.code == "RUN_ABANDONED"
    assert "abandoned by its parent (flow): the parent went on without it." in told.text.replace("\n", " ")
    assert child.tell("get_workflow_status").body["status"] == "abandoned"
    again = [event for event in parent.tell("get_trace").body["events"] if event["name"] == "child_returned"]
    assert again == events


def test_going_on_past_a_running_child_is_a_warning_on_execution(bench: Bench) -> None:
    """Rule 35: navigation blocks; session and gated record the child as abandoned, and say so."""
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    agent = Agent(ExecutionSurface(bench.ledger()))
    agent.call("continue_workflow", stateToken=parent.token)
    agent.ack("closed")
    running = [warning["message"] for warning in agent.last["warnings"]]
    assert "Child 'child' is still running; this run goes on without it." in running
    assert "Warning: Child 'child' is still running; this run goes on without it." in agent.text


@pytest.mark.parametrize("surface", [session, gated])
def test_going_on_past_a_running_child_is_a_warning_on_session_and_gated(
    bench: Bench, surface: Callable[[Bench], SessionAgent]
) -> None:
    parent = walk_to_finish(start_flow(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    agent = surface(bench)
    agent.call("start_session", agent_id="p", workflow_id="flow", session_token=parent.token)
    gone = agent.go("__terminal__", step_manifest=manifest("close"))
    assert "Child 'child' was still running; it is abandoned." in gone.warnings
    assert "it is abandoned" in gone.text


TRIGGERING = {
    "lead/workflow.yaml": "{id: lead, version: 1.0.0, title: Lead, initialActivity: one}",
    "lead/activities/00-one.yaml": """
id: one
version: 1.0.0
name: One
steps:
  - { id: delegate, name: Delegate, triggers: [{ workflow: helper }] }
  - { id: extra, name: Extra, required: false, triggers: [{ workflow: other }] }
""",
    "helper/workflow.yaml": "{id: helper, version: 1.0.0, title: Helper, initialActivity: help}",
    "helper/activities/00-help.yaml": "{id: help, version: 1.0.0, name: Help, steps: [{id: do, name: Do}]}",
}
UNSTARTED = "Workflow 'helper', which step 'delegate' triggers, was not started."


@pytest.mark.parametrize(("surface", "told"), [(session, [UNSTARTED]), (gated, [])])
def test_an_activity_that_is_left_without_its_child_says_so(
    bench: Bench, surface: Callable[[Bench], SessionAgent], told: list[str]
) -> None:
    """Rule 35: a step that was claimed is no child that was started. Agents on gated cannot start one."""
    write_flow(bench, TRIGGERING)
    parent = surface(bench)
    parent.call("start_session", agent_id="a", workflow_id="lead")
    parent.go("one")
    assert parent.go("__terminal__", step_manifest=manifest("delegate")).warnings == told


def test_navigation_says_so_too(bench: Bench) -> None:
    write_flow(bench, TRIGGERING)
    client = opened(bench)
    client.start("lead")
    client.done("delegate")
    (warning,) = client.go("__terminal__")["warnings"][:1]
    assert (warning["code"], warning["message"]) == ("CHILD_NOT_STARTED", UNSTARTED)


def test_a_child_that_was_started_is_not_missed(bench: Bench) -> None:
    write_flow(bench, TRIGGERING)
    parent, child = session(bench), session(bench)
    parent.call("start_session", agent_id="a", workflow_id="lead")
    parent.go("one")
    child.call("start_session", agent_id="c", workflow_id="helper", parent_session_token=parent.token)
    child.go("help")
    child.go("__terminal__", step_manifest=manifest("do"))
    assert parent.go("__terminal__", step_manifest=manifest("delegate")).warnings == []
