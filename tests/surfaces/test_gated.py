"""The gated surface by its behaviour: every required checkpoint is pending from entry."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from interlock import __version__
from support.harness import Bench, workflow
from support.harness import steps as plain_steps
from support.session_agents import (
    FLOW,
    HEAD,
    LEAD,
    PATIENT,
    SessionAgent,
    gated,
    manifest,
    session,
    write_flow,
)


def enter_gather(bench: Bench, **more: object) -> SessionAgent:
    write_flow(bench)
    agent = gated(bench, **more)  # type: ignore[arg-type]
    agent.call("start_session", workflow_id="flow")
    agent.go("gather")
    return agent


def test_discover_lists_workflows_and_the_way_in(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    body = agent.call("discover").body
    assert (body["server"], body["version"]) == ("interlock", agent.call("health_check").body["version"])
    assert {"id": "flow", "title": "Flow"} in body["available_workflows"]
    assert "meta" in [entry["id"] for entry in body["available_workflows"]]
    assert "respond_checkpoint" in body["discovery"]
    listed = msgspec.json.decode(agent.call("list_workflows").text)
    assert {"id", "title", "version", "description", "tags"} == set(listed[0])


def test_entering_returns_the_whole_activity_and_its_pending_checkpoints(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow", agent_id="a")
    answer = agent.go("gather")
    body = answer.body
    assert [item["id"] for item in body["steps"]] == ["look", "weigh", "warn"]
    assert [item["id"] for item in body["checkpoints"]] == ["scope", "danger"]
    assert body["transitions"][0] == {"to": "build", "isDefault": True}
    assert body["pending_checkpoints"] == ["scope", "danger"]
    assert answer.meta["trace_token"].startswith("trc.v1.")


def test_the_gate_lists_each_pending_checkpoint_with_how_to_resolve_it(bench: Bench) -> None:
    answer = enter_gather(bench).go("build")
    assert answer.fields["message"].splitlines() == [
        "Cannot transition to 'build': Checkpoint 'scope' must be answered first: Is «it» the goal? "
        "Recorded as done: look. Resolve each by calling respond_checkpoint with the current session_token:",
        "- scope: option_id: yes | skip | redo",
        "- danger: option_id: go, or condition_not_met: true if its condition is false",
    ]
    assert answer.fields["pending"] == ["scope", "danger"]


def test_skills_and_resources_stay_readable_while_checkpoints_are_pending(bench: Bench) -> None:
    """Rule 15."""
    agent = enter_gather(bench)
    for tool, more in (
        ("get_workflow", {}),
        ("get_skills", {}),
        ("get_skill", {"step_id": "look"}),
        ("get_resource", {"resource_index": "00"}),
        ("get_trace", {}),
    ):
        assert not agent.tell(tool, **more).error


def test_the_same_activity_is_only_read_again_while_checkpoints_are_pending(bench: Bench) -> None:
    """Rule 15."""
    agent = enter_gather(bench)
    token = agent.token
    answer = agent.go("gather")
    assert answer.token == token
    assert answer.body["pending_checkpoints"] == ["scope", "danger"]


def test_the_same_activity_is_only_read_again_by_an_agent_that_hands_nothing_in(bench: Bench) -> None:
    agent = enter_gather(bench)
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    token = agent.token
    again = agent.go("gather").body
    assert (again["pending_checkpoints"], again["expected_next"]) == ([], "build")
    assert agent.token == token


def test_the_same_activity_is_entered_anew_where_an_answer_leads_there(bench: Bench) -> None:
    agent = enter_gather(bench)
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="redo")
    assert agent.go("gather").body["pending_checkpoints"] == ["scope", "danger"]


def test_an_agent_that_takes_up_a_session_is_told_what_to_do_next(bench: Bench) -> None:
    agent = enter_gather(bench)
    joined = agent.call("start_session", workflow_id="flow", session_token=agent.token).body
    assert joined["next_action"] == (
        "Call next_activity with activity_id 'gather' to read the activity again, and do its steps. "
        "Before you leave it: Call respond_checkpoint with checkpoint_id: scope. Ask the user for the option."
    )


def test_answers_take_checkpoints_off_the_list_and_the_last_one_opens_the_exit(bench: Bench) -> None:
    agent = enter_gather(bench)
    answer = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    assert answer.body == {
        "checkpoint_id": "scope",
        "resolved": True,
        "expected_next": "build",
        "session_token": agent.token,
        "remaining_checkpoints": ["danger"],
        "dismissible_checkpoints": ["danger"],
        "resolved_option": "yes",
        "effect": {"setVariable": {"verdict": "agreed"}},
    }
    answer = agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    assert (answer.body["dismissed"], answer.body["remaining_checkpoints"]) == (True, [])
    answer = agent.go("build", step_manifest=manifest("look", "weigh"), variables={"goal": "g"})
    assert answer.body["id"] == "build"
    kept = "'goal' stays unset: the user was shown it when deciding checkpoint 'scope'."
    assert answer.warnings == [f"{kept} The value that was sent is ignored."]


def test_an_answer_that_leads_elsewhere_ends_what_is_pending(bench: Bench) -> None:
    """Rule 21."""
    agent = enter_gather(bench)
    answer = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="skip")
    assert answer.body["remaining_checkpoints"] == []
    assert agent.go("finish").body["id"] == "finish"


def test_a_second_answer_is_refused_and_a_repeat_returns_the_recorded_one(bench: Bench) -> None:
    agent = enter_gather(bench)
    first = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    assert agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes").body == first.body
    other = agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="skip")
    assert (other.code, other.fields["option"]) == ("CHECKPOINT_ALREADY_ANSWERED", "yes")


def test_a_checkpoint_of_another_activity_is_not_pending_here(bench: Bench) -> None:
    agent = enter_gather(bench)
    answer = agent.tell("respond_checkpoint", checkpoint_id="fit", option_id="fits")
    assert (answer.code, answer.fields["message"]) == (
        "CHECKPOINT_NOT_FOUND",
        "Checkpoint not found: fit in activity gather",
    )


@pytest.mark.parametrize("surface", [session, gated])
def test_a_blocking_checkpoint_does_not_advance_by_itself(
    bench: Bench, surface: Callable[[Bench], SessionAgent]
) -> None:
    hold = {"type": "gate", "id": "hold", "name": "Hold", "message": "Hold?", "blocking": True}
    timed = {"defaultOption": "on", "autoAdvanceMs": 10, "options": [{"id": "on", "label": "On"}]}
    bench.write(workflow({**hold, **timed}, *plain_steps("one")))
    agent = surface(bench)
    agent.call("start_session", workflow_id="test.flow", agent_id="a")
    entered = agent.go("main")
    if surface is session:
        agent.tell("yield_checkpoint", checkpoint_id="hold")
        answer = agent.tell("respond_checkpoint", auto_advance=True)
    else:
        assert entered.body["pending_checkpoints"] == ["hold"]
        answer = agent.tell("respond_checkpoint", checkpoint_id="hold", auto_advance=True)
    assert answer.fields["message"] == (
        "Cannot auto-advance blocking checkpoint 'hold'. "
        "Blocking checkpoints require an explicit option_id from the user."
    )


def test_the_minimum_time_counts_from_the_entry_for_all_pending(bench: Bench) -> None:
    agent = enter_gather(bench, terms=PATIENT)
    for seconds in (2.9, 0.1):
        assert agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes").code == "TOO_FAST"
        bench.clock.pass_seconds(seconds)
    for gate, option in (("scope", "yes"), ("danger", "go")):
        assert not agent.tell("respond_checkpoint", checkpoint_id=gate, option_id=option).error


def test_a_checkpoint_in_a_loop_is_answered_in_each_of_its_rounds(bench: Bench) -> None:
    agent = enter_gather(bench)
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes")
    agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    agent.go("build", variables={"parts": ["a", "b", "c"]})
    for _ in range(3):
        assert agent.go("finish").fields["pending"] == ["fit"]
        bench.clock.pass_seconds(29)
        early = agent.tell("respond_checkpoint", checkpoint_id="fit", auto_advance=True)
        assert early.code == "TIMER_RUNNING"
        bench.clock.pass_seconds(1)
        answer = agent.tell("respond_checkpoint", checkpoint_id="fit", auto_advance=True)
        assert answer.body["resolved_option"] == "fits"
    assert agent.go("finish").body["transitions"] == [{"to": "__terminal__", "isDefault": True}]
    assert agent.go("__terminal__").body["status"] == "completed"


def test_workflow_id_is_checked_against_the_token(bench: Bench) -> None:
    """Rule 17."""
    agent = enter_gather(bench)
    answer = agent.call("start_session", workflow_id="meta", session_token=agent.token)
    assert answer.fields["message"] == (
        "Workflow mismatch: session was on 'flow' but call targets 'meta'. "
        "Start a new session for a different workflow."
    )
    answer = agent.call("start_session", workflow_id="flow", session_token=agent.token, agent_id="w")
    assert answer.body["inherited"] is True


def test_an_inherited_session_keeps_what_is_pending(bench: Bench) -> None:
    agent = enter_gather(bench)
    fresh = gated(bench)
    fresh.call("start_session", workflow_id="flow", session_token=agent.token, agent_id="w")
    assert fresh.go("build").fields["pending"] == ["scope", "danger"]


def test_an_activity_that_the_agent_has_read_is_named_when_it_is_entered_again(bench: Bench) -> None:
    agent = enter_gather(bench)
    first = agent.go("gather").body
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="redo")
    again = agent.go("gather").body
    assert (again["id"], again["digest"], again["unchanged"]) == ("gather", first["digest"], True)
    assert "steps" not in again
    assert again["pending_checkpoints"] == ["scope", "danger"]
    assert agent.go("gather").body["steps"] == first["steps"]


def test_who_joins_is_sent_an_activity_whole(bench: Bench) -> None:
    agent = enter_gather(bench)
    agent.call("start_session", workflow_id="flow", session_token=agent.token)
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="redo")
    assert "steps" in agent.go("gather").body


def test_a_skill_is_an_object_with_references_to_its_resources(bench: Bench) -> None:
    agent = enter_gather(bench)
    skill = agent.tell("get_skills").body["skills"]["lead"]
    assert skill["capability"] == "Lead"
    assert skill["_resources"] == [{"index": "00", "id": "guide", "version": "3.0.0"}]
    assert "resources" not in skill
    assert LEAD not in agent.tell("get_skills", full=True).text
    again = agent.tell("get_skills").body["skills"]["lead"]
    assert (again["id"], again["digest"], again["unchanged"]) == ("lead", skill["digest"], True)
    assert "capability" not in again
    assert agent.tell("get_skill", step_id="weigh").code == "NO_SKILL"
    assert agent.tell("get_skill", step_id="look").body["skill"]["id"] == "looking"


def test_a_resource_comes_with_index_id_version_and_content(bench: Bench) -> None:
    agent = enter_gather(bench)
    body = agent.tell("get_resource", resource_index="00").body["resource"]
    assert (body["index"], body["id"], body["version"]) == ("00", "guide", "3.0.0")
    assert body["content"].startswith("# Guide")
    named = agent.tell("get_resource", resource_index="meta/00").body["resource"]
    assert (named["index"], named["id"]) == ("meta/00", "bootstrap")


@pytest.mark.parametrize("summary", [True, False])
def test_the_workflow_is_returned_short_or_whole(bench: Bench, summary: bool) -> None:
    body = enter_gather(bench).tell("get_workflow", summary=summary).body
    assert body["initialActivity"] == "gather"
    assert ("steps" in body["activities"][0]) is not summary
    assert body["modes"][0]["id"] == "short"


def test_a_confirmation_is_pending_like_any_checkpoint(bench: Bench) -> None:
    bench.write(workflow(*plain_steps("one", requireConfirmation=True)))
    agent = gated(bench)
    agent.call("start_session", workflow_id="test.flow")
    assert agent.go("main").body["pending_checkpoints"] == ["confirm-one"]
    assert agent.go("__terminal__").code == "GATE_UNANSWERED"
    agent.tell("respond_checkpoint", checkpoint_id="confirm-one", option_id="proceed")
    assert agent.go("__terminal__").body["status"] == "completed"


def test_an_answer_to_a_confirmation_passes_over_nothing(bench: Bench) -> None:
    """Rules 14 and 25: the steps before it are claimed, and one that is sent back is done again."""
    prove = {
        "id": "prove",
        "title": "Prove",
        "promptBlocks": {"goal": "Prove it.", "outputRequired": {"notes": "why it is so"}},
    }
    bench.write(workflow(prove, *plain_steps("one", "two", requireConfirmation=True)))
    agent = gated(bench)
    agent.call("start_session", workflow_id="test.flow")
    agent.go("main")
    refused = agent.tell("respond_checkpoint", checkpoint_id="confirm-one", option_id="revise")
    assert (refused.code, refused.fields["step"]) == ("OUTPUT_REQUIRED", "prove")
    proved = [{"step_id": "prove", "output": "proved"}]
    for gate, option in (("one", "revise"), ("one", "proceed"), ("two", "revise"), ("two", "proceed")):
        named = {"checkpoint_id": f"confirm-{gate}", "option_id": option, "step_manifest": proved}
        assert not agent.tell("respond_checkpoint", **named).error
    assert agent.go("__terminal__").body["status"] == "completed"


def test_a_session_moves_between_the_two_surfaces(bench: Bench) -> None:
    """Rule 34."""
    agent = enter_gather(bench)
    other = session(bench)
    answer = other.call("start_session", agent_id="o", session_token=agent.token)
    assert answer.body["inherited"] is True
    other.tell("yield_checkpoint", checkpoint_id="scope")
    other.tell("respond_checkpoint", option_id="yes")
    assert agent.go("build", variables={"risky": True}).fields["pending"] == ["danger"]


def in_rounds(bench: Bench) -> SessionAgent:
    ask = {"type": "gate", "id": "ask", "name": "Ask", "message": "Deploy {{currentItem}}?"}
    options = [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    loop = {"type": "forEach", "items": "targets", "maxIterations": 5}
    body = [*plain_steps("make"), {**ask, "options": options}]
    bench.write(workflow({"type": "loop", "id": "each", "title": "Each", "loop": loop, "body": body}))
    agent = gated(bench)
    agent.call("start_session", workflow_id="test.flow")
    agent.go("main", variables={"targets": ["test", "staging", "prod"]})
    return agent


@pytest.mark.parametrize("looks_first", [True, False])
def test_a_repeated_answer_never_answers_the_next_round(bench: Bench, looks_first: bool) -> None:
    """Rules 13 and 16."""
    agent, made = in_rounds(bench), manifest("make")
    if looks_first:
        agent.tell("get_checkpoint", activity_id="main", checkpoint_id="ask", step_manifest=made)
    token = agent.token
    same = {"session_token": token, "checkpoint_id": "ask", "step_manifest": made}
    first = agent.call("respond_checkpoint", **same, option_id="yes")
    assert (first.body["iteration"], first.body["item"]) == (1, "test")
    assert agent.call("respond_checkpoint", **same, option_id="yes").body == first.body
    other = agent.call("respond_checkpoint", **same, option_id="no")
    assert (other.code, other.fields["option"]) == ("CHECKPOINT_ALREADY_ANSWERED", "yes")
    second = agent.tell("respond_checkpoint", checkpoint_id="ask", step_manifest=made, option_id="no")
    assert (second.body["iteration"], second.body["item"]) == (2, "staging")
    assert agent.call("respond_checkpoint", **same, option_id="yes").body == first.body


def test_a_step_is_sent_back_once_by_one_answer(bench: Bench) -> None:
    """Rules 13 and 25."""
    bench.write(workflow(*plain_steps("one", requireConfirmation=True)))
    agent = gated(bench)
    agent.call("start_session", workflow_id="test.flow")
    agent.go("main")
    answer = {"checkpoint_id": "confirm-one", "option_id": "revise"}
    before = agent.token
    first = agent.tell("respond_checkpoint", **answer)
    assert agent.call("respond_checkpoint", session_token=before, **answer).body == first.body
    again = agent.tell("respond_checkpoint", **answer)
    assert again.token != first.token
    assert agent.call("respond_checkpoint", session_token=before, **answer).body == first.body


def test_the_same_token_still_answers_another_checkpoint(bench: Bench) -> None:
    agent = enter_gather(bench)
    token = agent.token
    agent.call("respond_checkpoint", session_token=token, checkpoint_id="scope", option_id="yes")
    other = agent.call(
        "respond_checkpoint", session_token=token, checkpoint_id="danger", condition_not_met=True
    )
    assert not other.error, other.text


def test_a_question_of_another_activity_is_not_asked_again_by_reading_it(bench: Bench) -> None:
    """Rule 26: the call says so, where it once returned the definition."""
    agent = enter_gather(bench)
    agent.tell("respond_checkpoint", checkpoint_id="scope", option_id="yes", variables={"goal": "bread"})
    agent.tell("respond_checkpoint", checkpoint_id="danger", condition_not_met=True)
    agent.go("build", variables={"parts": ["a"]})
    answer = agent.tell("get_checkpoint", activity_id="gather", checkpoint_id="scope", reask={"goal": "cake"})
    assert (answer.code, answer.fields["variables"]) == ("REASK_IMPOSSIBLE", ["goal"])
    assert "next_activity" in answer.text


def test_the_definition_of_any_checkpoint_is_read(bench: Bench) -> None:
    agent = enter_gather(bench)
    before = agent.tell("get_checkpoint", activity_id="gather", checkpoint_id="scope").body["checkpoint"]
    assert before["not_reached"].startswith("Steps stand before this checkpoint")
    assert before["message"] == "Is «it» the goal?"
    assert [option["label"] for option in before["options"]] == ["Yes", "Skip the building", "Once more"]
    assert [option.get("effect") for option in before["options"]] == [
        {"setVariable": {"verdict": "agreed"}},
        {"transitionTo": "finish"},
        {"transitionTo": "gather"},
    ]
    other = agent.tell("get_checkpoint", activity_id="build", checkpoint_id="fit").body["checkpoint"]
    timing = {name: other[name] for name in ("blocking", "defaultOption", "autoAdvanceMs")}
    assert timing == {"blocking": False, "defaultOption": "fits", "autoAdvanceMs": 30000}
    assert other["not_reached"].startswith("It is not of the current activity")


@pytest.mark.parametrize(
    ("activity", "checkpoint", "code", "known"),
    [
        ("nowhere", "scope", "ACTIVITY_NOT_FOUND", "gather, build, finish"),
        ("gather", "fit", "CHECKPOINT_NOT_FOUND", "scope, danger"),
        ("finish", "fit", "CHECKPOINT_NOT_FOUND", "It has no checkpoints."),
    ],
)
def test_a_checkpoint_that_there_is_not_is_named(
    bench: Bench, activity: str, checkpoint: str, code: str, known: str
) -> None:
    agent = enter_gather(bench)
    refused = agent.tell("get_checkpoint", activity_id=activity, checkpoint_id=checkpoint)
    assert (refused.error, refused.code) == (True, code)
    assert known in refused.fields["next"]


@pytest.mark.parametrize(
    ("surface", "tool", "arguments"),
    [
        (session, "next_activity", {"activity_id": "__terminal__"}),
        (session, "yield_checkpoint", {"checkpoint_id": "scope"}),
        (gated, "next_activity", {"activity_id": "__terminal__"}),
        (gated, "respond_checkpoint", {"checkpoint_id": "scope", "option_id": "small"}),
    ],
)
def test_a_call_before_the_first_activity_is_told_which_it_is(
    bench: Bench, surface: Callable[[Bench], SessionAgent], tool: str, arguments: dict[str, str]
) -> None:
    write_flow(bench)
    agent = surface(bench)
    starting = {"agent_id": "a"} if surface is session else {}
    agent.call("start_session", workflow_id="flow", **starting)
    refused = agent.tell(tool, **arguments)
    assert refused.code == "NO_ACTIVITY"
    assert refused.fields["next"] == "Call next_activity with activity_id 'gather'."


def test_the_skill_of_a_step_needs_an_activity(bench: Bench) -> None:
    write_flow(bench)
    agent = gated(bench)
    agent.call("start_session", workflow_id="flow")
    assert agent.tell("get_skill", step_id="look").code == "NO_ACTIVITY"
    agent.go("gather")
    assert agent.tell("get_skill", step_id="look").body["skill"]["id"] == "looking"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({}, "Exactly one of option_id, auto_advance, or condition_not_met must be provided."),
        (
            {"option_id": "yes", "condition_not_met": True},
            "Exactly one of option_id, auto_advance, or condition_not_met must be provided.",
        ),
        ({"option_id": "no"}, "Invalid option 'no' for checkpoint 'scope'. Valid options: [yes, skip, redo]"),
        (
            {"condition_not_met": True},
            "Cannot dismiss checkpoint 'scope': it has no condition field. "
            "Only conditional checkpoints can be dismissed with condition_not_met.",
        ),
    ],
)
def test_an_answer_that_cannot_count_leaves_the_checkpoint_pending(
    bench: Bench, answer: dict[str, object], text: str
) -> None:
    agent = enter_gather(bench)
    refused = agent.tell("respond_checkpoint", checkpoint_id="scope", **answer)
    assert (refused.error, refused.fields["message"]) == (True, text)
    assert agent.go("build").fields["pending"] == ["scope", "danger"]


def test_the_tools_without_a_token_and_the_summary_have_what_the_document_lists(bench: Bench) -> None:
    roles = "executionModel:\n  roles[1]{id,description}:\n    worker,Works\n"
    write_flow(bench, {**FLOW, "flow/workflow.toon": HEAD + roles})
    agent = gated(bench)
    health = agent.call("health_check").body
    assert (health["status"], health["version"]) == ("healthy", __version__)
    assert health["workflows_available"] == len(agent.call("discover").body["available_workflows"])
    assert health["uptime_seconds"] >= 0
    agent.call("start_session", workflow_id="flow")
    summary = agent.tell("get_workflow").body
    assert summary["rules"] == ["Be brief."]
    assert [variable["name"] for variable in summary["variables"]] == ["goal", "parts", "risky", "verdict"]
    assert summary["executionModel"] == {"roles": [{"id": "worker", "description": "Works"}]}
    assert summary["initialActivity"] == "gather"
    assert summary["activities"][0] == {"id": "gather", "name": "Gather", "required": True}
