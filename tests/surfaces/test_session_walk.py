"""The session surface: going from activity to activity to the end of a workflow."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.harness import Bench, workflow
from support.harness import steps as plain_steps
from support.log import event_kinds
from support.session_agents import (
    BUILD,
    FLOW,
    HEAD,
    Answer,
    SessionAgent,
    answer_checkpoint,
    join_session,
    manifest,
    session,
    session_id_of,
    start_flow,
    walk_to_finish,
    write_flow,
)

WHILE = """\
type: while
    condition:
      type: simple
      variable: risky
      operator: ==
      value: true
"""


def test_a_whole_walk_ends_as_completed_with_its_time(bench: Bench) -> None:
    agent = walk_to_finish(start_flow(bench))
    assert agent.tell("get_workflow_status").body["status"] == "active"
    assert "exits: __terminal__ (expected)" in agent.tell("get_activity").text
    answer = agent.go("__terminal__", step_manifest=manifest("close"))
    assert answer.body["status"] == "completed"
    status = agent.tell("get_workflow_status").body
    assert status["status"] == "completed"
    assert status["completed_activities"] == ["gather", "build", "finish"]
    assert status["completed_at"] == bench.clock.now // 1000
    assert agent.go("gather").code == "RUN_FINISHED"


def test_the_end_asked_for_again_returns_the_recorded_answer(bench: Bench) -> None:
    agent = walk_to_finish(start_flow(bench))
    first = agent.go("__terminal__")
    assert agent.go("__terminal__") == first


def test_step_workflows_run_as_one_activity_with_confirmations_as_checkpoints(bench: Bench) -> None:
    bench.write(workflow(*plain_steps("one", "two", requireConfirmation=True)))
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="test.flow")
    agent.go("main")
    assert agent.go("__terminal__").fields["checkpoint"] == "confirm-one"
    answer_checkpoint(agent, agent, "confirm-one", "revise")
    answer_checkpoint(agent, agent, "confirm-one", "proceed")
    assert agent.go("__terminal__").fields["checkpoint"] == "confirm-two"
    answer_checkpoint(agent, agent, "confirm-two", "proceed", step_manifest=manifest("two"))
    assert agent.go("__terminal__").body["status"] == "completed"


def test_an_exact_repeat_of_the_call_that_made_the_visit_is_a_replay(bench: Bench) -> None:
    """Rule 13."""
    write_flow(bench)
    agent = session(bench)
    begun = agent.call("start_session", agent_id="a", workflow_id="flow").token
    first = agent.go("gather")
    again = agent.call("next_activity", session_token=begun, activity_id="gather")
    assert again == first
    calls = [event for event in agent.tell("get_trace").body["events"] if event["name"] == "next_activity"]
    assert [call["about"].get("repeated", False) for call in calls] == [False, True]
    assert [call["s"] for call in calls] == ["ok", "ok"]


def test_a_stale_token_is_refused_with_the_position_and_the_current_token(bench: Bench) -> None:
    """Rule 13."""
    agent = start_flow(bench)
    old = agent.token
    answer_checkpoint(join_session(agent), agent, "scope", "yes", variables={"parts": []})
    current = agent.go("build").token
    answer = agent.call("next_activity", session_token=old, activity_id="finish")
    assert (answer.code, answer.fields["current_activity"], answer.token) == ("STALE_TOKEN", "build", current)
    for tool, more in (("yield_checkpoint", {"checkpoint_id": "fit"}), ("resume_checkpoint", {})):
        assert agent.call(tool, session_token=old, **more).code == "STALE_TOKEN"


def test_another_exit_than_the_chosen_one_is_taken_with_a_warning_and_a_divergence(bench: Bench) -> None:
    """Rule 22: nothing that is required is left out."""
    optional = BUILD.replace("    blocking: false\n", "    blocking: false\n    required: false\n")
    write_flow(bench, {**FLOW, "flow/activities/01-build.toon": optional})
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    answer_checkpoint(agent, agent, "scope", "yes")
    answer = agent.go("finish", step_manifest=manifest("look", "weigh"), variables={"parts": ["a"]})
    assert answer.body["activity_id"] == "finish"
    assert any("Transition to 'finish' requires condition" in warning for warning in answer.warnings)
    kinds = event_kinds(agent.ledger.store, session_id_of(agent))
    assert "divergence_recorded" in kinds


def test_variables_are_kept_even_if_a_gate_refuses_the_call(bench: Bench) -> None:
    """Rule 19."""
    agent = start_flow(bench)
    assert agent.go("build", variables={"goal": "bread"}).error
    agent.tell("yield_checkpoint", checkpoint_id="scope")
    assert "Is «bread» the goal?" in agent.tell("present_checkpoint").text


def test_what_was_passed_over_for_an_unset_variable_is_named(bench: Bench) -> None:
    """Rule 20."""
    flow = {**FLOW, "flow/workflow.toon": HEAD.replace("    defaultValue: false\n", "")}
    write_flow(bench, flow)
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    answer_checkpoint(agent, agent, "scope", "yes", variables={"goal": "g"})
    left = {"risky": None}
    warnings = agent.go("build", step_manifest=manifest("look", "weigh"), variables=left).warnings
    told = "Step 'warn' and checkpoint 'danger' were passed over: nobody has set 'risky' (risky == true)."
    assert told in warnings


def test_a_loop_without_its_list_asks_for_it(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes")
    agent.go("build")
    answer = agent.go("finish")
    assert (answer.code, answer.fields["variables"]) == ("INPUT_REQUIRED", ["parts"])


def test_a_round_that_asked_is_not_claimed_as_the_last_while_the_condition_holds(bench: Bench) -> None:
    """Rule 30: the next round is due, and a call that brings nothing for it does not begin it."""
    loop = BUILD.replace("type: forEach\n    variable: part\n    over: parts\n", WHILE)
    write_flow(bench, {**FLOW, "flow/activities/01-build.toon": loop})
    agent = session(bench)
    agent.call("start_session", agent_id="a", workflow_id="flow")
    agent.go("gather")
    answer_checkpoint(agent, agent, "scope", "yes")
    agent.go("build")
    lacking = agent.go("finish", variables={"risky": True})
    assert (lacking.code, lacking.fields["variables"]) == ("INPUT_REQUIRED", ["part"])
    assert "The question of checkpoint 'fit' shows 'part', which nobody has set." in lacking.text
    assert agent.go("finish", variables={"part": "crust"}).fields["instance"] == "each@0::fit"
    answer_checkpoint(agent, agent, "fit", "bad")
    due = agent.go("finish")
    assert (due.code, due.fields["iteration"], due.fields["steps"]) == ("ROUND_DUE", 2, ["make", "check"])
    answer_checkpoint(agent, agent, "fit", "fits", step_manifest=manifest("make"))
    assert not agent.go("finish", variables={"risky": False}).error


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(["read", "yield", "yes", "redo", "resume", "build", "finish", "gather"]), max_size=12
    )
)
def test_no_sequence_of_calls_leaves_gather_without_an_answer_to_its_gate(
    tmp_path_factory: pytest.TempPathFactory, moves: list[str]
) -> None:
    """Rule 23, whatever an agent tries."""
    agent = start_flow(Bench(tmp_path_factory.mktemp("walk")))
    answered = False
    for move in moves:
        answer = try_move(agent, move)
        if move in ("yes", "redo") and not answer.error:
            answered = True
        if move in ("build", "finish", "gather") and not answer.error:
            assert answered, moves
            return


def try_move(agent: SessionAgent, move: str) -> Answer:
    match move:
        case "read":
            return agent.tell("get_activity")
        case "yield":
            return agent.tell("yield_checkpoint", checkpoint_id="scope")
        case "resume":
            return agent.tell("resume_checkpoint")
        case "yes" | "redo":
            return agent.tell("respond_checkpoint", option_id=move)
        case _:
            return agent.go(move)
