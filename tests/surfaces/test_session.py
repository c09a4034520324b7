"""The session surface by its behaviour: one head, several agents, warnings and gates."""

from __future__ import annotations

import json
from typing import Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.core.run.commands import Terms
from interlock.ledger.decisions.inbox import decide_question, inbox
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.health import examine
from interlock.ledger.log.records import CallTraced
from interlock.surfaces.call import Ask, Call, Client, FormAnswer, Reply
from interlock.surfaces.navigation import NavigationSurface
from interlock.surfaces.session import SessionSurface
from interlock.surfaces.tool import call_tool
from support.harness import Bench, workflow
from support.harness import steps as plain_steps
from support.session_agents import (
    BUILD,
    FLOW,
    GATHER,
    HEAD,
    LEAD,
    PATIENT,
    QUICK,
    Talk,
    answered,
    gated,
    joined,
    manifest,
    prepare,
    session,
    started,
)

TOOLS = [
    *("discover", "list_workflows", "health_check", "start_session", "get_workflow_status"),
    *("get_workflow", "next_activity", "get_activity"),
    *("yield_checkpoint", "resume_checkpoint", "present_checkpoint", "respond_checkpoint"),
    *("get_skills", "get_skill", "get_resource", "get_trace"),
]


WHILE = """\
type: while
    condition:
      type: simple
      variable: risky
      operator: ==
      value: true
"""


def walked(lead: Talk) -> Talk:
    """Through gather and build into finish."""
    worker = joined(lead)
    answered(worker, lead, "scope", "yes", variables={"goal": "bread"})
    lead.go("build", step_manifest=manifest("look", "weigh"), variables={"parts": ["crust"]})
    worker.token = joined(lead).token
    answered(worker, lead, "fit", "fits")
    lead.go("finish", step_manifest=manifest("begin", "make", "check"))
    return lead


def test_it_has_the_tools_of_its_document_within_8000_bytes(bench: Bench) -> None:
    tools = session(bench).surface.tools
    assert list(tools) == TOOLS
    listed = [
        {"name": one.name, "description": one.description, "inputSchema": one.argument_schema()}
        for one in tools.values()
    ]
    assert len(msgspec.json.encode(listed)) <= 8000


def test_discover_tells_server_version_and_the_way_in(bench: Bench) -> None:
    text = session(bench).call("discover").text
    assert text.startswith("server: interlock\nversion: ")
    assert "start_session" in text


def test_the_list_has_id_title_version_and_tags_and_hides_meta(bench: Bench) -> None:
    prepare(bench)
    talk = session(bench)
    text = talk.call("list_workflows").text
    assert "id: flow\n    title: Flow\n    version: 1.2.0\n    tags[2]: one,two" in text
    assert "id: meta" not in text
    assert talk.call("health_check").body["workflows_available"] == text.count("  - id: ")


def test_a_session_without_workflow_is_of_meta(bench: Bench) -> None:
    assert session(bench).call("start_session", agent_id="a").body["workflow"]["id"] == "meta"


def test_agent_id_is_required(bench: Bench) -> None:
    told = session(bench).call("start_session", workflow_id="meta")
    assert (told.error, told.code) == (True, "VALIDATION_ERROR")
    assert "agent_id" in told.text


def test_the_summary_begins_with_the_primary_skill_and_is_shorter(bench: Bench) -> None:
    talk = started(bench)
    short, full = talk.tell("get_workflow").text, talk.tell("get_workflow", summary=False).text
    assert short.startswith("id: lead\n")
    assert "\n\n---\n\nsession_token: " in short
    for part in ("rules[1]", "variables[4]", "modes[1]", "initialActivity: gather", "build,Build,true"):
        assert part in short
    assert len(short) < len(full)
    assert GATHER.rstrip() in full


def test_next_activity_returns_id_and_name_and_get_activity_the_raw_file(bench: Bench) -> None:
    prepare(bench)
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    told = talk.go("gather")
    assert told.body == {"activity_id": "gather", "name": "Gather", "session_token": told.token}
    assert told.meta["trace_token"].startswith("trc.v1.")
    assert told.meta["validation"] == {"status": "valid", "warnings": []}
    text = talk.tell("get_activity").text
    assert text.startswith(f"session_token: {told.token}\n")
    assert text.endswith(f"\n\n{GATHER}")


def test_the_token_stands_once_in_the_text_and_once_in_meta(bench: Bench) -> None:
    talk = started(bench)
    calls = [
        talk.tell("get_workflow"),
        talk.tell("get_activity"),
        talk.tell("get_skills"),
        talk.tell("get_skill", step_id="look"),
        talk.tell("get_resource", resource_id="00"),
        talk.tell("get_workflow_status"),
        talk.tell("get_trace"),
        talk.go("nowhere"),
    ]
    for told in calls:
        assert told.text.count("ses.v1.") == 1
        assert msgspec.json.encode(told.meta).count(b"ses.v1.") == 1
        assert b"ses.v1." not in msgspec.json.encode(told.fields)


def test_what_the_agent_holds_is_answered_unchanged(bench: Bench) -> None:
    talk = started(bench)
    for tool, more in (("get_activity", {}), ("get_skills", {}), ("get_skill", {"step_id": "look"})):
        whole = talk.tell(tool, **more).text
        mark = whole.partition("digest: ")[2].partition("\n")[0]
        again = talk.tell(tool, known=mark, **more).text
        assert "unchanged: true" in again
        assert len(again) < 200
        assert talk.tell(tool, known="000000000000", **more).text == whole


@pytest.mark.parametrize(
    ("step", "skill"), [("look", "id: looking"), ("make", "id: session-protocol"), (None, "id: lead")]
)
def test_skills_come_from_the_workflow_its_meta_or_a_named_one(
    bench: Bench, step: str | None, skill: str
) -> None:
    """Rule 36: own workflow, then meta; steps in loops are found too."""
    talk = started(bench)
    if step == "make":
        answered(joined(talk), talk, "scope", "yes", variables={"parts": ["x"]})
        talk.go("build")
    told = talk.tell("get_skill", step_id=step) if step else talk.tell("get_skill")
    assert skill in told.text


def test_a_meta_of_the_same_source_comes_before_the_bundled_one(bench: Bench) -> None:
    """Rule 36."""
    own = "id: session-protocol\nversion: 9.0.0\ncapability: Ours\n"
    meta = "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: only\n"
    only = "id: only\nversion: 1.0.0\nname: Only\nsteps: [{id: work, name: Work, description: Work.}]\n"
    files = {
        "meta/workflow.yaml": meta,
        "meta/activities/00-only.yaml": only,
        "meta/skills/00-session-protocol.toon": own,
    }
    prepare(bench, {**FLOW, **files})
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    talk.go("build")
    assert talk.tell("get_skill", step_id="make").text.endswith(own)
    assert "id: bootstrap" in talk.tell("get_resource", resource_id="meta/00").text


def test_before_any_activity_the_skill_is_the_primary_one(bench: Bench) -> None:
    prepare(bench)
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    assert talk.tell("get_skill").text.endswith(LEAD)
    assert talk.tell("get_activity").code == "NO_ACTIVITY"


def test_resources_are_found_bare_and_by_workflow(bench: Bench) -> None:
    talk = started(bench)
    for ref in ("00", "0", "guide"):
        text = talk.tell("get_resource", resource_id=ref).text
        assert f"resource_id: {ref}\nid: guide\nversion: 3.0.0\n" in text
        assert text.endswith("Read me.") or text.endswith("Read me.\n")
    assert "id: bootstrap" in talk.tell("get_resource", resource_id="meta/00").text
    missing = talk.tell("get_resource", resource_id="77")
    assert missing.code == "NOT_FOUND"
    assert "00" in missing.fields["next"]


def test_a_workflow_in_yaml_or_steps_is_read_as_toon(bench: Bench) -> None:
    bench.write(workflow(*plain_steps("one", "two", requireConfirmation=True)))
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="test.flow")
    talk.go("main")
    text = talk.tell("get_activity").text
    assert "steps[2]" in text
    assert "id: confirm-one" in text


def test_step_workflows_run_as_one_activity_with_confirmations_as_checkpoints(bench: Bench) -> None:
    bench.write(workflow(*plain_steps("one", "two", requireConfirmation=True)))
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="test.flow")
    talk.go("main")
    assert talk.go("__terminal__").fields["checkpoint"] == "confirm-one"
    answered(talk, talk, "confirm-one", "revise")
    answered(talk, talk, "confirm-one", "proceed")
    assert talk.go("__terminal__").fields["checkpoint"] == "confirm-two"
    answered(talk, talk, "confirm-two", "proceed", step_manifest=manifest("two"))
    assert talk.go("__terminal__").body["status"] == "completed"


def test_a_whole_walk_ends_as_completed_with_its_time(bench: Bench) -> None:
    talk = walked(started(bench))
    assert talk.tell("get_workflow_status").body["status"] == "active"
    assert "ways: __terminal__ (expected)" in talk.tell("get_activity").text
    told = talk.go("__terminal__", step_manifest=manifest("close"))
    assert told.body["status"] == "completed"
    status = talk.tell("get_workflow_status").body
    assert status["status"] == "completed"
    assert status["completed_activities"] == ["gather", "build", "finish"]
    assert status["completed_at"] == bench.clock.now // 1000
    assert talk.go("gather").code == "RUN_FINISHED"


def test_the_end_asked_for_again_returns_the_recorded_answer(bench: Bench) -> None:
    talk = walked(started(bench))
    first = talk.go("__terminal__")
    assert talk.go("__terminal__") == first


def test_status_survives_a_restart(bench: Bench) -> None:
    talk = walked(started(bench))
    before = talk.tell("get_workflow_status").body
    fresh = session(bench)
    fresh.token = talk.token
    assert fresh.tell("get_workflow_status").body == before
    assert before["last_checkpoint"] == {
        "activity_id": "build",
        "checkpoint_id": "fit",
        "option_id": "fits",
        "timestamp": bench.clock.now // 1000,
    }


def test_an_exact_repeat_of_the_call_that_made_the_visit_is_a_replay(bench: Bench) -> None:
    """Rule 13."""
    prepare(bench)
    talk = session(bench)
    begun = talk.call("start_session", agent_id="a", workflow_id="flow").token
    first = talk.go("gather")
    again = talk.call("next_activity", session_token=begun, activity_id="gather")
    assert again == first
    assert talk.tell("get_trace").text.count('"name":"next_activity"') == 1


def test_a_stale_token_is_refused_with_the_position_and_the_current_token(bench: Bench) -> None:
    """Rule 13."""
    talk = started(bench)
    old = talk.token
    answered(joined(talk), talk, "scope", "yes", variables={"parts": []})
    current = talk.go("build").token
    told = talk.call("next_activity", session_token=old, activity_id="finish")
    assert (told.code, told.fields["current_activity"], told.token) == ("STALE_TOKEN", "build", current)
    for tool, more in (("yield_checkpoint", {"checkpoint_id": "fit"}), ("resume_checkpoint", {})):
        assert talk.call(tool, session_token=old, **more).code == "STALE_TOKEN"


def test_reading_with_an_old_token_works_and_says_so(bench: Bench) -> None:
    talk = started(bench)
    old = talk.token
    answered(joined(talk), talk, "scope", "yes", variables={"parts": []})
    talk.go("build")
    told = talk.call("get_activity", session_token=old)
    assert "id: build" in told.text
    assert any("moved on" in warning for warning in told.warnings)


def test_reading_never_makes_a_token_stale(bench: Bench) -> None:
    talk = started(bench)
    token = talk.token
    for tool in ("get_workflow", "get_activity", "get_skill", "get_skills", "get_trace"):
        assert talk.call(tool, session_token=token).token == token


def test_agents_have_tokens_of_their_own_and_are_told_apart_in_the_trace(bench: Bench) -> None:
    talk = started(bench)
    worker = joined(talk)
    assert worker.token != talk.token
    worker.tell("get_activity")
    talk.tell("get_workflow")
    calls = {event["name"]: event["aid"] for event in talk.tell("get_trace").body["events"]}
    assert calls["get_activity"] == "worker"
    assert calls["get_workflow"] == "orchestrator"


def test_another_agent_id_on_an_inherited_token_is_warned_about(bench: Bench) -> None:
    talk = started(bench)
    told = talk.call("start_session", agent_id="other", session_token=talk.token)
    assert told.body["inherited"] is True
    assert told.body["warning"] == (
        "Warning: The provided agent_id 'other' does not match the inherited session token's agent_id "
        "'orchestrator'. The session has been transitioned to 'other'."
    )


def test_workflow_id_beside_a_token_is_ignored(bench: Bench) -> None:
    """Rule 17."""
    talk = started(bench)
    told = talk.call("start_session", agent_id="orchestrator", session_token=talk.token, workflow_id="meta")
    assert told.body["workflow"]["id"] == "flow"
    assert "warning" not in told.body


def test_while_a_checkpoint_is_open_only_the_document_s_tools_answer(bench: Bench) -> None:
    """Rule 15."""
    talk = started(bench)
    worker = joined(talk)
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
        told = worker.tell(tool, **more)
        assert (told.error, told.code, told.fields["message"]) == (True, "DECISION_PENDING", text)
    assert worker.tell("yield_checkpoint", checkpoint_id="danger").fields["message"] == (
        "Cannot yield checkpoint 'danger': Checkpoint 'scope' is already active "
        "and awaiting orchestrator resolution."
    )
    assert worker.tell("resume_checkpoint").fields["message"] == (
        "Cannot resume: Checkpoint 'scope' is still active and has not been resolved by the orchestrator."
    )
    assert talk.go("build").fields["message"] == (
        "Cannot transition to 'build': Active checkpoint 'scope' on activity 'gather'. "
        "The orchestrator must resolve it by calling respond_checkpoint."
    )
    assert talk.tell("get_workflow_status").body["status"] == "blocked"
    for tool in ("get_trace", "present_checkpoint", "get_workflow_status"):
        assert not talk.tell(tool).error
    assert not talk.call("start_session", agent_id="third", session_token=talk.token).error


def test_present_shows_the_question_with_the_variables_worked_in(bench: Bench) -> None:
    talk = started(bench)
    handle = talk.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"}).body[
        "checkpoint_handle"
    ]
    for told in (talk.call("present_checkpoint", checkpoint_handle=handle), talk.tell("present_checkpoint")):
        assert "message: Is bread the goal?" in told.text
        assert f"checkpoint_handle: {handle}" in told.text
        assert "transitionTo: finish" in told.text


def test_nobody_resumes_from_what_was_never_yielded(bench: Bench) -> None:
    assert started(bench).tell("resume_checkpoint").code == "CHECKPOINT_NOT_YIELDED"


def test_a_worker_resumes_with_its_old_token_or_with_the_handle(bench: Bench) -> None:
    """Rule 15."""
    for index in range(2):
        talk = started(Bench(bench.folder))
        worker = joined(talk)
        before = worker.token
        handle = worker.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
        talk.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes")
        told = worker.call("resume_checkpoint", session_token=(before, handle)[index])
        assert told.body["status"] == "resumed"
        assert told.body["resolved_option"] == "yes"


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
    talk = started(bench)
    handle = talk.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    told = talk.call("respond_checkpoint", checkpoint_handle=handle, **answer)
    assert (told.error, told.fields["message"]) == (True, text)
    assert talk.tell("get_workflow_status").body["status"] == "blocked"


def test_an_answer_without_token_or_open_checkpoint_is_refused(bench: Bench) -> None:
    talk = started(bench)
    assert (
        talk.call("respond_checkpoint", option_id="yes")
        .fields["message"]
        .startswith("Either checkpoint_handle")
    )
    told = talk.tell("respond_checkpoint", option_id="yes")
    assert told.fields["message"].startswith(
        "The provided checkpoint_handle does not have an active checkpoint"
    )


def test_an_answer_that_comes_too_fast_is_refused_before_its_option_is_looked_at(bench: Bench) -> None:
    """Rule 24."""
    talk = started(bench, PATIENT)
    handle = talk.tell("yield_checkpoint", checkpoint_id="scope").body["checkpoint_handle"]
    told = talk.call("respond_checkpoint", checkpoint_handle=handle, option_id="nonsense")
    assert told.fields["message"] == (
        "Checkpoint response too fast (0s < 3s minimum). "
        "Present the checkpoint to the user before responding."
    )
    bench.clock.pass_seconds(2.9)
    assert talk.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").code == "TOO_FAST"
    bench.clock.pass_seconds(0.1)
    assert not talk.call("respond_checkpoint", checkpoint_handle=handle, option_id="yes").error


def test_auto_advance_waits_for_the_whole_timer(bench: Bench) -> None:
    talk = started(bench)
    answered(talk, talk, "scope", "yes", variables={"parts": ["a"]})
    talk.go("build")
    handle = talk.tell("yield_checkpoint", checkpoint_id="fit").body["checkpoint_handle"]
    bench.clock.pass_seconds(29)
    told = talk.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
    assert told.fields["message"] == (
        "Auto-advance timer not elapsed for checkpoint 'fit' (29s < 30s). "
        "Wait for the full autoAdvanceMs (30000ms) before auto-advancing."
    )
    bench.clock.pass_seconds(1)
    told = talk.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
    assert told.body["resolved_option"] == "fits"


def test_effects_are_applied_by_the_server(bench: Bench) -> None:
    """Rule 21: transitionTo of an answer is the expected way, over the remaining steps and gates."""
    talk = started(bench)
    told = answered(talk, talk, "scope", "skip")
    assert told.body["effect"] == {"transitionTo": "finish"}
    assert (
        "finish if parts" in talk.tell("get_activity").text
        or "finish (expected)" in talk.tell("get_activity").text
    )
    assert talk.go("finish", step_manifest=manifest("look")).warnings == []


def test_another_way_than_the_chosen_one_is_taken_with_a_warning_and_a_divergence(bench: Bench) -> None:
    """Rule 22."""
    talk = started(bench)
    answered(talk, talk, "scope", "yes")
    told = talk.go("finish", step_manifest=manifest("look", "weigh"), variables={"parts": ["a"]})
    assert told.body["activity_id"] == "finish"
    assert any("Transition to 'finish' requires condition" in warning for warning in told.warnings)
    with talk.ledger.store.reading() as reader:
        kinds = [row.kind for row in reader.events(_session_of(talk))]
    assert "divergence_recorded" in kinds


def _session_of(talk: Talk) -> str:
    session_id = talk.tell("get_workflow_status").body["session_id"]
    assert isinstance(session_id, str)
    return session_id


def test_the_documented_warnings_in_their_words(bench: Bench) -> None:
    prepare(bench)
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    told = talk.go("finish")
    assert told.warnings == [
        "First activity must be 'gather' but 'finish' was requested. "
        "Start with the workflow's initialActivity."
    ]
    told = talk.go("build", activity_manifest=[], variables={"parts": []})
    assert told.warnings == [
        "No step_manifest provided for previous activity 'finish'. "
        "Include a manifest to enable step completion validation.",
        "Empty activity_manifest provided. Omit the parameter if no activities have been completed.",
        "Activity 'build' is not a direct transition from 'finish'. Valid transitions: [__terminal__]",
    ]
    told = talk.go(
        "finish",
        step_manifest=[{"step_id": "other", "output": " "}],
        activity_manifest=[{"activity_id": "x", "transition_condition": "moon"}],
        transition_condition="moon",
    )
    assert told.warnings == [
        "Missing steps in manifest: [begin]",
        "Unexpected steps in manifest: [other]",
        "Step 'other' has empty output",
        "Activity manifest references unknown activity 'x'",
        "Activity 'x' has empty outcome",
        "Activity 'x' claims transition condition 'moon' not found in workflow transitions",
        "Transition to 'finish' is the default (no condition) but agent claimed condition 'moon'.",
    ]


def test_the_order_of_the_manifest_is_compared(bench: Bench) -> None:
    talk = started(bench)
    answered(talk, talk, "scope", "yes", variables={"goal": "g"})
    told = talk.go("build", step_manifest=manifest("weigh", "look"))
    assert told.warnings == ["Step order mismatch at position 0: expected 'look' but got 'weigh'"]


def test_every_warning_is_also_in_the_trace(bench: Bench) -> None:
    """Rule 18."""
    talk = started(bench)
    answered(talk, talk, "scope", "yes", variables={"goal": "g"})
    told = talk.go("build")
    events = talk.tell("get_trace").body["events"]
    assert told.warnings
    assert [one for one in events if one["name"] == "next_activity"][-1]["vw"] == told.warnings


def test_variables_are_kept_even_if_a_gate_refuses_the_call(bench: Bench) -> None:
    """Rule 19."""
    talk = started(bench)
    assert talk.go("build", variables={"goal": "bread"}).error
    talk.tell("yield_checkpoint", checkpoint_id="scope")
    assert "Is bread the goal?" in talk.tell("present_checkpoint").text


def test_a_gate_whose_condition_becomes_true_must_be_answered(bench: Bench) -> None:
    """Rule 23."""
    talk = started(bench)
    answered(talk, talk, "scope", "yes")
    told = talk.go("build", variables={"risky": True})
    assert (told.code, told.fields["checkpoint"]) == ("GATE_UNANSWERED", "danger")
    answered(talk, talk, "danger", "go")
    assert not talk.go("build").error


def test_what_was_passed_over_for_an_unset_variable_is_named(bench: Bench) -> None:
    """Rule 20."""
    flow = {**FLOW, "flow/workflow.toon": HEAD.replace("    defaultValue: false\n", "")}
    prepare(bench, flow)
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    talk.go("gather")
    answered(talk, talk, "scope", "yes", variables={"goal": "g"})
    warnings = talk.go("build", step_manifest=manifest("look", "weigh")).warnings
    assert "Step 'warn' was passed over: nobody has set 'risky' (risky == true)." in warnings
    assert "Checkpoint 'danger' was passed over: nobody has set 'risky' (risky == true)." in warnings


def test_a_loop_without_its_list_asks_for_it(bench: Bench) -> None:
    talk = started(bench)
    answered(talk, talk, "scope", "yes")
    talk.go("build")
    told = talk.go("finish")
    assert (told.code, told.fields["variables"]) == ("INPUT_REQUIRED", ["parts"])


def test_every_iteration_has_its_own_answer(bench: Bench) -> None:
    """Rule 16."""
    talk = started(bench)
    worker = joined(talk)
    answered(worker, talk, "scope", "yes", variables={"parts": ["a", "b"]})
    talk.go("build")
    worker.token = joined(talk).token
    answered(worker, talk, "fit", "fits")
    other = joined(talk, "replacement")
    assert other.tell("yield_checkpoint", checkpoint_id="fit").body["resolved_option"] == "fits"
    assert talk.go("finish").fields["instance"] == "each@1::fit"
    answered(worker, talk, "fit", "bad")
    first = other.tell("yield_checkpoint", checkpoint_id="fit", iteration=1).body
    second = other.tell("yield_checkpoint", checkpoint_id="fit", iteration=2).body
    assert (first["resolved_option"], second["resolved_option"]) == ("fits", "bad")
    assert not talk.go("finish").error


def test_a_loop_that_goes_by_a_condition_is_left_after_the_answer_of_its_gate(bench: Bench) -> None:
    """Rule 14: nothing in a walk can change the condition, so that the loop is claimed once."""
    loop = BUILD.replace("type: forEach\n    variable: part\n    over: parts\n", WHILE)
    prepare(bench, {**FLOW, "flow/activities/01-build.toon": loop})
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    talk.go("build", variables={"risky": True})
    assert talk.go("finish").fields["instance"] == "each@0::fit"
    answered(talk, talk, "fit", "bad")
    told = talk.go("finish")
    assert "Loop 'each' was claimed once; its condition still holds." in told.warnings


def test_a_replaced_worker_gets_the_recorded_answers(bench: Bench) -> None:
    talk = started(bench)
    answered(joined(talk), talk, "scope", "yes")
    told = joined(talk, "replacement").tell("yield_checkpoint", checkpoint_id="scope")
    assert told.body["status"] == "answered"
    assert told.body["effect"] == {"setVariable": {"verdict": "agreed"}}
    assert "answered: scope=yes" in talk.tell("get_activity").text


def test_entering_an_activity_again_starts_with_empty_answers(bench: Bench) -> None:
    """Rule 16."""
    talk = started(bench)
    answered(talk, talk, "scope", "redo")
    talk.go("gather")
    assert talk.tell("yield_checkpoint", checkpoint_id="scope").body["status"] == "yielded"


def test_a_step_with_a_required_contract_is_not_claimed_without_its_artifact(bench: Bench) -> None:
    """Rule 14."""
    contract = {
        "output": {"schema": {"type": "object", "required": ["n"]}, "example": {"kind": "count", "n": 1}}
    }
    items = [{"id": "count", "title": "Count", "prompt": "Count.", **contract}]
    bench.write(workflow(*items))
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="test.flow")
    talk.go("main")
    told = talk.go("__terminal__", step_manifest=manifest("count"))
    assert told.code == "OUTPUT_REQUIRED"
    artifact = {**told.fields["example"], "n": 3}
    done = talk.go("__terminal__", step_manifest=[{"step_id": "count", "output": {"artifacts": [artifact]}}])
    assert done.body["status"] == "completed", done.text


def test_never_stop_decides_by_itself_and_records_a_gap(bench: Bench) -> None:
    """Rule 27."""
    prepare(bench)
    talk = session(bench, mode="never-stop")
    talk.call("start_session", agent_id="a", workflow_id="flow")
    talk.go("gather")
    assert not talk.go("build").error
    with talk.ledger.store.reading() as reader:
        kinds = [row.kind for row in reader.events(_session_of(talk))]
    assert "gap_recorded" in kinds


def test_advisory_enforcement_turns_the_unopened_gate_into_a_warning(bench: Bench) -> None:
    """Rule 23: an open gate always holds."""
    talk = started(bench, Terms(enforcement="advisory", min_response_ms=0))
    talk.tell("yield_checkpoint", checkpoint_id="scope")
    assert talk.go("build").code == "DECISION_PENDING"
    talk.tell("respond_checkpoint", option_id="redo")
    talk.go("gather")
    told = talk.go("build")
    assert any("scope" in warning for warning in told.warnings)


def test_under_policy_user_an_agent_s_answer_does_not_count(bench: Bench) -> None:
    """Rule 27."""
    talk = started(bench, Terms(decisions="user", min_response_ms=0))
    talk.tell("yield_checkpoint", checkpoint_id="scope")
    assert talk.tell("respond_checkpoint", option_id="yes").code == "USER_MUST_DECIDE"


def test_a_client_that_can_ask_is_asked_and_the_user_s_answer_counts(bench: Bench) -> None:
    """Rule 27: the agent's own choice of an option is not what is recorded."""
    talk = started(bench)
    talk.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    client = Client("asking", can_elicit=True)
    arguments = {"session_token": talk.token, "option_id": "yes"}
    ask = call_tool(talk.surface, "respond_checkpoint", arguments, Call(client))
    assert isinstance(ask, Ask)
    assert ask.questions["scope"].message == "Is bread the goal?"
    answers = {"scope": FormAnswer("accept", {"choice": "skip"})}
    reply = call_tool(talk.surface, "respond_checkpoint", arguments, Call(client, answers, ask.state))
    assert isinstance(reply, Reply)
    assert json.loads(reply.text)["resolved_option"] == "skip"


def test_the_user_s_answer_in_the_inbox_lets_the_worker_resume(bench: Bench) -> None:
    """Rules 26 and 27."""
    talk = started(bench, Terms(decisions="user", min_response_ms=0))
    worker = joined(talk)
    worker.tell("yield_checkpoint", checkpoint_id="scope", variables={"goal": "bread"})
    with talk.ledger.store.reading() as reader:
        (question,) = inbox(talk.ledger, reader)
    assert question.message == "Is bread the goal?"
    assert decide_question(talk.ledger, question, "skip") is None
    assert worker.tell("resume_checkpoint").body["resolved_option"] == "skip"
    assert talk.go("finish").body["activity_id"] == "finish"


def test_what_only_the_user_can_give_is_asked_for_by_name(bench: Bench) -> None:
    """Rule 28."""
    need = {"reason": "needs_user_choice", "key": "colour", "question": "Which colour?"}
    bench.write(workflow(*plain_steps("paint", userInput=[need])))
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="test.flow")
    talk.go("main")
    told = talk.go("__terminal__")
    assert (told.code, told.fields["variables"]) == ("INPUT_REQUIRED", ["colour"])
    assert "Which colour?" in told.text
    assert talk.go("__terminal__", variables={"colour": "red"}).body["status"] == "completed"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_declines_is_not_answered_for_by_the_agent(
    bench: Bench, action: Literal["decline", "cancel"]
) -> None:
    """Rule 27."""
    prepare(bench)
    for surface, more in ((session(bench), {}), (gated(bench), {"checkpoint_id": "scope"})):
        surface.call("start_session", agent_id="a", workflow_id="flow")
        surface.go("gather")
        if not more:
            surface.tell("yield_checkpoint", checkpoint_id="scope")
        client = Client("asking", can_elicit=True)
        arguments = {"session_token": surface.token, "option_id": "yes", **more}
        ask = call_tool(surface.surface, "respond_checkpoint", arguments, Call(client))
        assert isinstance(ask, Ask)
        answered = Call(client, {"scope": FormAnswer(action)}, ask.state)
        reply = call_tool(surface.surface, "respond_checkpoint", arguments, answered)
        assert isinstance(reply, Reply)
        assert isinstance(reply.structured, dict)
        assert reply.structured["code"] == "USER_MUST_DECIDE"


def test_a_trace_token_names_the_calls_of_its_activity(bench: Bench) -> None:
    talk = started(bench)
    talk.tell("get_activity")
    answered(talk, talk, "scope", "yes", variables={"parts": []})
    first = talk.go("build").meta["trace_token"]
    talk.tell("get_skills")
    second = talk.go("finish").meta["trace_token"]
    names = [one["name"] for one in talk.tell("get_trace", trace_tokens=[first]).body["events"]]
    assert names == [
        "get_activity",
        "yield_checkpoint",
        "respond_checkpoint",
        "resume_checkpoint",
        "next_activity",
    ]
    body = talk.tell("get_trace", trace_tokens=[second, first[:-1] + "!"]).body
    assert [one["name"] for one in body["events"]] == ["get_skills", "next_activity"]
    assert body["source"] == "tokens"
    assert body["token_errors"][0]["index"] == 1
    assert all(one["act"] == "build" for one in body["events"])


def test_the_trace_itself_leaves_no_trace(bench: Bench) -> None:
    talk = started(bench)
    before = talk.tell("get_trace").body["event_count"]
    talk.tell("get_workflow_status")
    assert talk.tell("get_trace").body["event_count"] == before


def test_a_child_takes_the_context_and_returns_what_the_parent_declares(bench: Bench) -> None:
    """Rule 35."""
    parent = walked(started(bench))
    child = session(bench)
    told = child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    assert not told.warnings
    status = child.tell("get_workflow_status").body
    assert child.tell("get_trace").body["psid"] == _session_of(parent)
    assert status["parent"] == {
        "session_id": _session_of(parent),
        "workflow_id": "flow",
        "activity": "finish",
        "version": "1.2.0",
    }
    assert parent.tell("get_workflow_status").body["children"][0]["workflow_id"] == "child"
    with child.ledger.store.reading() as reader:
        row = reader.session(_session_of(child))
        assert row is not None
    child.go("only")
    child.go("__terminal__", variables={"verdict": "crusty", "private": "secret"})
    assert "children" not in parent.tell("get_workflow_status").body
    events = [one for one in parent.tell("get_trace").body["events"] if one["name"].startswith("child_")]
    assert [one["name"] for one in events] == ["child_started", "child_returned"]
    assert events[1]["about"]["returned"] == ["goal", "verdict"]
    assert not parent.go("__terminal__").error


def test_a_child_has_a_child_has_a_child(bench: Bench) -> None:
    prepare(bench)
    talk = session(bench)
    talk.call("start_session", agent_id="a", workflow_id="flow")
    for _ in range(3):
        told = talk.call("start_session", agent_id="a", workflow_id="flow", parent_session_token=talk.token)
        assert told.warnings == ["Activity 'none' declares no trigger of 'flow'; no context was passed on."]
    parent, depth = talk.tell("get_workflow_status").body.get("parent"), 0
    while parent:
        parent, depth = parent.get("parent"), depth + 1
    assert depth == 3


def test_a_parent_that_goes_on_records_the_abandoned_child(bench: Bench) -> None:
    """Rule 35."""
    parent = walked(started(bench))
    child = session(bench)
    child.call("start_session", agent_id="c", workflow_id="child", parent_session_token=parent.token)
    assert not parent.go("__terminal__").error
    events = [one for one in parent.tell("get_trace").body["events"] if one["name"] == "child_returned"]
    assert events[0]["about"]["outcome"] == "abandoned"
    child.go("only")
    assert not child.go("__terminal__").error
    again = [one for one in parent.tell("get_trace").body["events"] if one["name"] == "child_returned"]
    assert again == events


def test_a_run_started_here_is_found_and_taken_up_at_the_execution_surface(bench: Bench) -> None:
    """Rule 34."""
    talk = started(bench)
    answered(talk, talk, "scope", "yes", variables={"goal": "bread", "parts": []})
    agent = bench.agent()
    assert agent.call("resume_session", query="flow")["candidates"][0]["workflowId"] == "flow"
    shown = agent.call("continue_workflow", stateToken=talk.token)
    assert shown["pending"]["stepId"] == "weigh"
    agent.ack("weighed")
    assert agent.pending == "begin"
    status = talk.tell("get_workflow_status").body
    assert status["current_activity"] == "build"


def test_a_run_started_at_the_execution_surface_is_taken_up_here(bench: Bench) -> None:
    """Rule 34."""
    prepare(bench)
    agent = bench.agent()
    begun = agent.start("flow")
    agent.ack("looked", goal="bread")
    talk = session(bench)
    told = talk.call("start_session", agent_id="a", session_token=begun["stateToken"])
    assert told.body["inherited"] is True
    assert talk.tell("get_workflow_status").body["status"] == "blocked"
    assert not talk.tell("respond_checkpoint", option_id="yes").error
    assert not talk.go("build").error


@pytest.mark.parametrize(
    "output",
    [{"artifacts": [{"n": 1}]}, {"artifacts": "x"}, {"kind": "big", "body": "x" * 300_000}],
)
def test_an_output_that_does_not_fit_is_refused_with_its_step_and_changes_nothing(
    bench: Bench, output: object
) -> None:
    talk = started(bench)
    before = talk.tell("get_workflow_status").body
    told = talk.go("build", step_manifest=[{"step_id": "look", "output": output}], variables={"goal": "g"})
    assert told.code == "VALIDATION_ERROR"
    assert "look" in told.text
    assert talk.tell("get_workflow_status").body == before


@pytest.mark.parametrize("output", [{"found": 3}, ["a", "b"], 7, "plain"])
def test_any_value_is_an_output(bench: Bench, output: object) -> None:
    talk = started(bench)
    answered(talk, talk, "scope", "yes", variables={"goal": "g"})
    told = talk.go("build", step_manifest=[{"step_id": "look", "output": output}, *manifest("weigh")])
    assert told.warnings == []


def test_a_run_started_by_navigation_is_taken_up_here(bench: Bench) -> None:
    """Rule 34."""
    prepare(bench)
    surface = NavigationSurface(session(bench).ledger)
    reply = call_tool(surface, "nav_start", {"workflow_id": "flow"}, Call())
    assert isinstance(reply, Reply)
    state = json.loads(reply.text)["state"]
    talk = session(bench)
    told = talk.call("start_session", agent_id="a", session_token=state)
    assert told.body["inherited"] is True
    assert talk.tell("get_workflow_status").body["current_activity"] == "gather"


def test_outputs_of_the_manifest_are_found_again(bench: Bench) -> None:
    talk = started(bench)
    answered(talk, talk, "scope", "yes")
    talk.go("build", step_manifest=[{"step_id": "look", "output": "the oven is broken"}])
    found = bench.agent().call("resume_session", query="oven broken")["candidates"]
    assert [one["workflowId"] for one in found] == ["flow"]
    recap = bench.agent().call("continue_workflow", stateToken=talk.token)["recap"]["entries"]
    assert recap == [{"stepId": "look", "notes": "the oven is broken"}]


def test_the_log_of_a_session_is_whole_and_its_calls_are_facts(bench: Bench) -> None:
    talk = walked(started(bench))
    with talk.ledger.store.reading() as reader:
        row = reader.session(_session_of(talk))
        assert row is not None
        assert examine(reader, row).health == "healthy"
        events = [read_event(one) for one in reader.events(row.session_id, kinds=("call_traced",))]
    tools = [event.tool for event in events if isinstance(event, CallTraced)]
    assert tools.count("next_activity") == 3
    assert {"yield_checkpoint", "respond_checkpoint", "resume_checkpoint", "start_session"} <= set(tools)


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
    talk = started(Bench(tmp_path_factory.mktemp("walk")))
    answered_here = False
    for move in moves:
        told = _tried(talk, move)
        if move in ("yes", "redo") and not told.error:
            answered_here = True
        if move in ("build", "finish", "gather") and not told.error:
            assert answered_here, moves
            return


def _tried(talk: Talk, move: str):  # type: ignore[no-untyped-def]
    match move:
        case "read":
            return talk.tell("get_activity")
        case "yield":
            return talk.tell("yield_checkpoint", checkpoint_id="scope")
        case "resume":
            return talk.tell("resume_checkpoint")
        case "yes" | "redo":
            return talk.tell("respond_checkpoint", option_id=move)
        case _:
            return talk.go(move)


def test_it_is_the_surface_that_its_name_says(bench: Bench) -> None:
    surface = session(bench, QUICK).surface
    assert isinstance(surface, SessionSurface)
    assert surface.name == "session"
