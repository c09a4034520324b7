"""The session surface: yielding, presenting, answering and resuming checkpoints."""

from __future__ import annotations

import pytest

from interlock.ledger.runs.positions import ProcessClock
from support.harness import Bench
from support.session_agents import (
    PATIENT,
    answer_checkpoint,
    join_session,
    manifest,
    start_flow,
)


def test_while_a_checkpoint_is_open_only_the_document_s_tools_answer(bench: Bench) -> None:
    """Rule 15."""
    agent = start_flow(bench)
    worker = join_session(agent)
    worker.tell("yield_checkpoint", checkpoint_id="scope")
    text = (
        "Blocked: Active checkpoint 'scope' on activity 'gather'. All tools are gated until the checkpoint "
        "is resolved. The orchestrator must call respond_checkpoint with the checkpoint_handle to clear the "
        "gate before any other tool calls can proceed."
    )
    for tool, more in (
        ("get_workflow", {}),
        ("get_activity", {}),
        ("get_skill", {}),
        ("get_skills", {}),
        ("get_resource", {"resource_id": "00"}),
    ):
        answer = worker.tell(tool, **more)
        assert (answer.error, answer.code, answer.fields["message"]) == (True, "DECISION_PENDING", text)
    assert worker.tell("yield_checkpoint", checkpoint_id="danger").fields["message"] == (
        "Cannot yield checkpoint 'danger': Checkpoint 'scope' is already active "
        "and awaiting orchestrator resolution."
    )
    assert worker.tell("resume_checkpoint").fields["message"] == (
        "Cannot resume: Checkpoint 'scope' is still active and has not been resolved by the orchestrator."
    )
    assert agent.go("build").fields["message"] == (
        "Cannot transition to 'build': Active checkpoint 'scope' on activity 'gather'. "
        "The orchestrator must resolve it by calling respond_checkpoint."
    )
    assert agent.tell("get_workflow_status").body["status"] == "blocked"
    for tool in ("get_trace", "present_checkpoint", "get_workflow_status"):
        assert not agent.tell(tool).error
    assert not agent.call("start_session", agent_id="third", session_token=agent.token).error


def test_present_shows_the_question_with_the_variables_worked_in(bench: Bench) -> None:
    agent = start_flow(bench)
    handle = agent.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"}).body[
        "checkpoint_handle"
    ]
    for answer in (
        agent.call("present_checkpoint", checkpoint_handle=handle),
        agent.tell("present_checkpoint"),
    ):
        assert "message: Is «bread» the goal?" in answer.text
        assert f"checkpoint_handle: {handle}" in answer.text
        assert "effect: goes to finish" in answer.text


def test_nobody_resumes_from_what_was_never_yielded(bench: Bench) -> None:
    assert start_flow(bench).tell("resume_checkpoint").code == "CHECKPOINT_NOT_YIELDED"


def test_a_worker_resumes_with_its_old_token_or_with_the_handle(bench: Bench) -> None:
    """Rule 15."""
    for index in range(2):
        agent = start_flow(Bench(bench.folder))
        worker = join_session(agent)
        before = worker.token
        yielded = worker.tell("yield_checkpoint", checkpoint_id="scope").body
        handle = yielded["checkpoint_handle"]
        assert (yielded["status"], "<checkpoint_yield>" in yielded["message"]) == ("yielded", True)
        agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
        answer = worker.call("resume_checkpoint", session_token=(before, handle)[index])
        assert (answer.body["status"], answer.body["resolved_option"]) == ("resumed", "yes")
        assert answer.body["message"] == "Its effects are applied: go on."
        assert not worker.tell("get_activity").error


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({}, "Exactly one of option_id, auto_advance, or condition_not_met must be provided."),
        (
            {"option_id": "yes", "auto_advance": True},
            "Exactly one of option_id, auto_advance, or condition_not_met must be provided.",
        ),
        ({"option_id": "no"}, "Invalid option 'no' for checkpoint 'scope'. Valid options: [yes, skip, redo]"),
        (
            {"auto_advance": True},
            "Cannot auto-advance checkpoint 'scope': missing defaultOption or autoAdvanceMs.",
        ),
        (
            {"condition_not_met": True},
            "Cannot dismiss checkpoint 'scope': it has no condition field. "
            "Only conditional checkpoints can be dismissed with condition_not_met.",
        ),
    ],
)
def test_an_answer_that_cannot_count_is_refused_in_the_document_s_words(
    bench: Bench, answer: dict[str, object], text: str
) -> None:
    agent = start_flow(bench)
    handle = agent.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    refusal = agent.call("respond_checkpoint", checkpoint_handle=handle, **answer)
    assert (refusal.error, refusal.fields["message"]) == (True, text)
    assert agent.tell("get_workflow_status").body["status"] == "blocked"


def test_an_answer_without_token_or_open_checkpoint_is_refused(bench: Bench) -> None:
    agent = start_flow(bench)
    assert (
        agent.call("respond_checkpoint", option_id="yes")
        .fields["message"]
        .startswith("Either checkpoint_handle")
    )
    answer = agent.tell("respond_checkpoint", option_id="yes")
    assert answer.fields["message"].startswith(
        "The provided checkpoint_handle does not have an active checkpoint"
    )


def test_an_answer_that_comes_too_fast_is_refused_before_its_option_is_looked_at(bench: Bench) -> None:
    """Rule 24."""
    agent = start_flow(bench, PATIENT)
    handle = agent.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    answer = agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="nonsense")
    assert answer.fields["message"] == (
        "Checkpoint response too fast (0s < 3s minimum). "
        "Present the checkpoint to the user before responding."
    )
    bench.clock.pass_seconds(2.9)
    assert agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").code == "TOO_FAST"
    bench.clock.pass_seconds(0.1)
    assert not agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").error


def test_a_clock_that_is_set_back_locks_nobody_out(bench: Bench) -> None:
    """Rule 24: an answer of the user is not refused for an hour because the clock was an hour fast."""
    agent = start_flow(bench, PATIENT)
    handle = agent.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    bench.clock.pass_seconds(-3600)
    assert not agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").error


def test_an_answer_is_not_early_because_another_machine_is_behind(bench: Bench) -> None:
    """Rule 24: clocks that differ a little say nothing, so the user must have had time by either of them."""
    agent = start_flow(bench, PATIENT)
    handle = agent.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    bench.clock.pass_seconds(-2)
    early = agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
    assert early.code == "TOO_FAST"
    bench.clock.pass_seconds(-3600)
    assert not agent.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").error


def test_the_clock_of_a_process_goes_on_when_the_clock_is_set_back() -> None:
    """Rule 24: a timer ends when its time has passed, whatever happens to the clock meanwhile."""
    wall, ticks = [10**12], [0]
    clock = ProcessClock(lambda: wall[0], lambda: ticks[0])
    began = clock()
    wall[0], ticks[0] = wall[0] - 3600 * 10**9, 30 * 10**9
    assert clock() - began == 30_000
    wall[0], ticks[0] = 10**12 + 60 * 10**9, 31 * 10**9
    assert clock() - began == 60_000


def test_a_timer_does_not_end_early_when_the_clock_is_set_back(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"parts": ["a"]})
    agent.go("build")
    handle = agent.tell("yield_checkpoint", checkpoint_id="fit").body["checkpoint_handle"]
    bench.clock.pass_seconds(-3600)
    answer = agent.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
    assert "(0s < 30s)" in answer.fields["message"]


def test_auto_advance_waits_for_the_whole_timer(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes", variables={"parts": ["a"]})
    agent.go("build")
    handle = agent.tell("yield_checkpoint", checkpoint_id="fit").body["checkpoint_handle"]
    bench.clock.pass_seconds(29)
    answer = agent.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
    assert answer.fields["message"] == (
        "Auto-advance timer not elapsed for checkpoint 'fit' (29s < 30s). "
        "Wait for the full autoAdvanceMs (30000ms) before auto-advancing."
    )
    bench.clock.pass_seconds(1)
    answer = agent.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
    assert answer.body["resolved_option"] == "fits"


def test_effects_are_applied_by_the_server(bench: Bench) -> None:
    """Rule 21: transitionTo of an answer is the expected exit, over the remaining steps and gates."""
    agent = start_flow(bench)
    answer = answer_checkpoint(agent, agent, "scope", "skip")
    assert answer.body["effect"] == {"transitionTo": "finish"}
    assert 'exits: build; finish if parts == "none" (expected)\n' in agent.tell("get_activity").text
    assert agent.go("finish", step_manifest=manifest("look")).warnings == []


def test_a_gate_whose_condition_becomes_true_must_be_answered(bench: Bench) -> None:
    """Rule 23."""
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "yes")
    answer = agent.go("build", variables={"risky": True})
    assert (answer.code, answer.fields["checkpoint"]) == ("GATE_UNANSWERED", "danger")
    answer_checkpoint(agent, agent, "danger", "go")
    assert not agent.go("build").error


def test_every_iteration_has_its_own_answer(bench: Bench) -> None:
    """Rule 16."""
    agent = start_flow(bench)
    worker = join_session(agent)
    answer_checkpoint(worker, agent, "scope", "yes", variables={"parts": ["a", "b"]})
    agent.go("build")
    worker.token = join_session(agent).token
    answer_checkpoint(worker, agent, "fit", "fits")
    other = join_session(agent, "replacement")
    refusal = agent.go("finish")
    assert refusal.fields["instance"] == "each@1::fit"
    assert "Checkpoint 'fit' (iteration 2: b) must be answered first" in refusal.text
    answer_checkpoint(worker, agent, "fit", "bad")
    first = other.tell("yield_checkpoint", checkpoint_id="fit", iteration=1).body
    second = other.tell("yield_checkpoint", checkpoint_id="fit", iteration=2).body
    assert (first["resolved_option"], second["resolved_option"]) == ("fits", "bad")
    assert not agent.go("finish").error


def test_a_replaced_worker_gets_the_recorded_answers(bench: Bench) -> None:
    agent = start_flow(bench)
    answer_checkpoint(join_session(agent), agent, "scope", "yes")
    answer = join_session(agent, "replacement").tell("yield_checkpoint", checkpoint_id="scope")
    assert answer.body["status"] == "answered"
    assert answer.body["effect"] == {"setVariable": {"verdict": "agreed"}}
    assert "answered: scope=yes" in agent.tell("get_activity").text


def test_entering_an_activity_again_starts_with_empty_answers(bench: Bench) -> None:
    """Rule 16."""
    agent = start_flow(bench)
    answer_checkpoint(agent, agent, "scope", "redo")
    agent.go("gather")
    assert agent.tell("yield_checkpoint", checkpoint_id="scope").body["status"] == "yielded"
