"""Jumps over a gate, from the decision that was made and back again: none passes it (rules 21 to 23)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.authored import write
from support.harness import Bench
from support.session_agents import Answer, SessionAgent, gated, session

Make = Callable[[Bench], SessionAgent]
Options = dict[str, dict[str, Any]]

EITHER = pytest.mark.parametrize("make", [session, gated])
QUICK = {"type": "simple", "variable": "quick", "operator": "==", "value": True}


def activity(
    name: str, *transitions: dict[str, Any], gates: dict[str, Options] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return an activity file with one step; each gate is given by its options and their effects."""
    checkpoints = [
        {
            "id": gate,
            "name": gate,
            "message": f"{gate}?",
            "options": [
                {"id": option, "label": option, "effect": effect} for option, effect in options.items()
            ],
        }
        for gate, options in (gates or {}).items()
    ]
    steps = [{"id": f"do-{name}", "name": "Do", "description": "Do it."}]
    head = {"id": name, "version": "1.0.0", "name": name, "steps": steps, **fields}
    return {**head, "checkpoints": checkpoints, "transitions": list(transitions)}


def to(target: str, **fields: Any) -> dict[str, Any]:
    return {"to": target, **(fields or {"isDefault": True})}


def begin(
    bench: Bench, make: Make, *listed: dict[str, Any], first: str | None = None, **fields: Any
) -> SessionAgent:
    """Write the activities as one workflow, start it and enter the first, or another."""
    agent = started(bench, make, *listed, **fields)
    assert not agent.go(first or listed[0]["id"]).error
    return agent


def started(bench: Bench, make: Make, *listed: dict[str, Any], **fields: Any) -> SessionAgent:
    """Write the activities as one workflow and start it."""
    variables = [{"name": "quick", "type": "boolean"}]
    head = {"id": "w", "version": "1.0.0", "title": "W", "variables": variables}
    files = {"w/workflow.yaml": json.dumps({**head, "initialActivity": listed[0]["id"], **fields})}
    for number, described in enumerate(listed):
        files[f"w/activities/{number:02}-{described['id']}.yaml"] = json.dumps(described)
    write(bench.workflows, files)
    agent = make(bench)
    answer = agent.call("start_session", agent_id="agent", workflow_id="w")
    assert not answer.error, answer.text
    return agent


def decide(agent: SessionAgent, gate: str, option: str) -> None:
    """Have the gate answered, by whichever tools the surface has for it."""
    yields = "yield_checkpoint" in agent.surface.tools
    if yields:
        assert not agent.tell("yield_checkpoint", checkpoint_id=gate).error
    named = {} if yields else {"checkpoint_id": gate}
    answer = agent.tell("respond_checkpoint", option_id=option, **named)
    assert not answer.error, answer.text
    if yields:
        agent.tell("resume_checkpoint")


def is_held_by(answer: Answer, gate: str) -> bool:
    return answer.code == "GATE_UNANSWERED" and f"'{gate}'" in answer.text


REVIEW = activity("review", to("ship"), gates={"good": {"yes": {}, "rework": {"transitionTo": "build"}}})
CHECK = activity("check", to("ship"), gates={"good": {"yes": {}}})
SHIP = activity("ship")


@EITHER
def test_work_that_was_sent_back_does_not_ship_without_being_reviewed_again(bench: Bench, make: Make) -> None:
    agent = begin(bench, make, activity("build", to("review")), REVIEW, SHIP)
    agent.go("review")
    decide(agent, "good", "rework")
    assert is_held_by(agent.go("ship"), "good")
    assert not agent.go("build").error
    assert is_held_by(agent.go("ship"), "good")
    assert not agent.go("review").error
    decide(agent, "good", "yes")
    assert not agent.go("ship").error


@EITHER
def test_what_has_shipped_once_does_not_ship_again_without_a_review(bench: Bench, make: Make) -> None:
    again = activity("ship", to("build", condition=QUICK), to("__terminal__"))
    agent = begin(bench, make, activity("build", to("review")), REVIEW, again)
    agent.go("review")
    decide(agent, "good", "yes")
    agent.go("ship")
    assert not agent.go("build").error
    assert is_held_by(agent.go("ship"), "good")


@EITHER
def test_going_back_is_free_in_a_circle_too(bench: Bench, make: Make) -> None:
    agent = begin(bench, make, activity("plan", to("build")), activity("build", to("review")), REVIEW, SHIP)
    agent.go("build")
    agent.go("review")
    decide(agent, "good", "rework")
    agent.go("build")
    assert not agent.go("plan").error


@EITHER
def test_only_the_exit_that_was_decided_passes_over_the_gates_that_remain(bench: Bench, make: Make) -> None:
    gates: dict[str, Options] = {"good": {"no": {"transitionTo": "fix"}}, "sure": {"yes": {}}}
    agent = begin(bench, make, activity("check", to("ship"), gates=gates), SHIP, activity("fix", to("ship")))
    decide(agent, "good", "no")
    refused = agent.go("ship")
    assert refused.code == "GATE_UNANSWERED"
    assert "The answered checkpoint leads to 'fix'" in refused.text
    assert "Next: Call next_activity with activity_id 'fix' first." in refused.text
    assert not agent.go("fix").error


@EITHER
@pytest.mark.parametrize("skips", ["a mode that is off", "an option that was not chosen"])
def test_what_is_not_skipped_is_not_jumped_over(bench: Bench, make: Make, skips: str) -> None:
    mode = {"id": "short", "name": "Short", "activationVariable": "quick", "skipActivities": ["check"]}
    way = {"way": {"full": {}, "short": {"skipActivities": ["check"]}}}
    by_mode = skips == "a mode that is off"
    plan = activity("plan", to("check"), gates={} if by_mode else way)
    agent = begin(bench, make, plan, CHECK, SHIP, **({"modes": [mode]} if by_mode else {}))
    if not by_mode:
        decide(agent, "way", "full")
    assert is_held_by(agent.go("ship"), "good")


BY_EITHER = pytest.mark.parametrize("skips", ["a mode", "an option"])


def with_skipped_design(bench: Bench, make: Make, skips: str, *transitions: dict[str, Any]) -> SessionAgent:
    """Begin a workflow whose design stands after a checked activity and is skipped in this run."""
    mode = {"id": "short", "name": "Short", "activationVariable": "quick", "skipActivities": ["design"]}
    short = {"setVariable": {"quick": True}} if skips == "a mode" else {"skipActivities": ["design"]}
    start = activity("start", to("check"), gates={"way": {"short": short}})
    check = activity("check", to("design"), gates={"good": {"yes": {}}})
    design = activity("design", *(transitions or [to("ship")]))
    agent = begin(bench, make, start, check, design, SHIP, activity("archive"), modes=[mode])
    decide(agent, "way", "short")
    return agent


@EITHER
@BY_EITHER
def test_a_skipped_activity_is_no_way_around_a_gate(bench: Bench, make: Make, skips: str) -> None:
    agent = with_skipped_design(bench, make, skips)
    assert is_held_by(agent.go("design"), "good")
    assert not agent.go("check").error
    assert is_held_by(agent.go("design"), "good")


@EITHER
@BY_EITHER
def test_a_skipped_activity_that_leads_back_is_no_way_around_a_gate(
    bench: Bench, make: Make, skips: str
) -> None:
    large = {**QUICK, "variable": "large"}
    agent = with_skipped_design(bench, make, skips, to("ship", condition=large), to("start"))
    assert is_held_by(agent.go("design"), "good")
    assert is_held_by(agent.go("ship"), "good")


@EITHER
@BY_EITHER
def test_what_only_a_skipped_activity_leads_to_is_no_way_around_a_gate(
    bench: Bench, make: Make, skips: str
) -> None:
    large = {**QUICK, "variable": "large"}
    agent = with_skipped_design(bench, make, skips, to("archive", condition=large), to("ship"))
    assert is_held_by(agent.go("archive"), "good")


@EITHER
def test_a_run_does_not_begin_with_a_skipped_activity_behind_a_gate(bench: Bench, make: Make) -> None:
    mode = {"id": "short", "name": "Short", "activationVariable": "quick", "skipActivities": ["design"]}
    check = activity("check", to("design"), gates={"good": {"yes": {}}})
    files = [check, activity("design", to("ship")), SHIP]
    agent = started(bench, make, *files, modes=[mode])
    assert is_held_by(agent.go("design", variables={"quick": True}), "good")
    assert is_held_by(agent.go("design"), "good")


@EITHER
@BY_EITHER
def test_a_skipped_activity_can_be_entered_after_the_gates_before_it(
    bench: Bench, make: Make, skips: str
) -> None:
    agent = with_skipped_design(bench, make, skips)
    agent.go("check")
    decide(agent, "good", "yes")
    entered = agent.go("design")
    assert not entered.error
    assert any("not a direct transition" in warning for warning in entered.warnings)
    assert not agent.go("ship").error


@EITHER
def test_a_refused_jump_records_nothing_about_an_activity_that_was_not_left(bench: Bench, make: Make) -> None:
    agent = begin(bench, make, activity("build", to("review")), REVIEW, SHIP)
    assert is_held_by(agent.go("ship"), "good")
    assert is_held_by(agent.go("ship"), "good")
    told = " ".join(agent.go("review").warnings)
    assert "Gap 1 (warning): Nothing was written down about 'do-build' of activity 'build'." in told
    assert "Gap 2" not in told


def test_a_refused_jump_at_gated_names_the_activity_and_no_gate_that_was_passed(bench: Bench) -> None:
    build = activity("build", to("review"), gates={"unsure": {"yes": {}}})
    build["checkpoints"][0]["condition"] = {**QUICK, "operator": "==", "value": True}
    agent = begin(bench, gated, build, REVIEW, SHIP)
    refused = agent.go("ship", variables={"quick": False})
    assert is_held_by(refused, "good")
    assert "Next: Call next_activity with activity_id 'review' first." in refused.text
    assert "unsure" not in refused.text


@EITHER
def test_an_exit_that_another_answer_would_have_opened_is_no_path(bench: Bench, make: Make) -> None:
    way = {"way": {"full": {}, "short": {"transitionTo": "ship"}}}
    agent = begin(bench, make, activity("plan", to("check"), gates=way), CHECK, SHIP)
    decide(agent, "way", "full")
    assert is_held_by(agent.go("ship"), "good")


@EITHER
def test_an_exit_that_the_users_decision_has_closed_is_no_path(bench: Bench, make: Make) -> None:
    way = {"way": {"full": {"setVariable": {"quick": False}}, "short": {"setVariable": {"quick": True}}}}
    plan = activity("plan", to("ship", condition=QUICK), to("check"), gates=way)
    agent = begin(bench, make, plan, CHECK, SHIP)
    decide(agent, "way", "full")
    assert is_held_by(agent.go("ship"), "good")
    assert not agent.go("check").error


@EITHER
@pytest.mark.parametrize("free", ["an optional gate", "a false condition", "an optional activity"])
def test_a_gate_that_need_not_be_answered_holds_no_jump(bench: Bench, make: Make, free: str) -> None:
    (good,) = CHECK["checkpoints"]
    field = {"required": False} if free == "an optional gate" else {"condition": QUICK}
    check = {**CHECK, "checkpoints": [{**good, **field}]}
    if free == "an optional activity":
        check = {**CHECK, "required": False}
    agent = begin(bench, make, activity("plan", to("check")), check, SHIP)
    if free == "a false condition":
        assert is_held_by(agent.go("ship"), "good")  # nobody has said that it is false
    assert not agent.go("ship", variables={"quick": False}).error


@EITHER
def test_where_no_exit_is_open_yet_the_gates_ahead_hold_a_jump(bench: Bench, make: Make) -> None:
    declared = [{"name": "quick", "type": "boolean", "defaultValue": False}]
    plan = activity("plan", to("check", condition=QUICK))
    agent = begin(bench, make, plan, CHECK, SHIP, variables=declared)
    assert is_held_by(agent.go("ship"), "good")


LOOPED = {
    **CHECK,
    "loops": [
        {
            "id": "outer",
            "name": "Outer",
            "type": "forEach",
            "over": "parts",
            "steps": [{"id": "look", "name": "Look", "description": "Look.", "checkpoint": "good"}],
        }
    ],
}


@EITHER
def test_a_gate_in_a_loop_holds_a_jump_and_says_how_to_go_on(bench: Bench, make: Make) -> None:
    agent = begin(bench, make, activity("plan", to("build")), activity("build", to("check")), LOOPED, SHIP)
    for target in ("ship", "__terminal__"):
        refused = agent.go(target)
        assert is_held_by(refused, "good")
        assert "a path to it passes checkpoint 'good' of activity 'check'" in refused.text
        assert "Next: Call next_activity with activity_id 'build' first." in refused.text
    assert not agent.go("check").error  # build requires nothing


@EITHER
def test_one_path_with_a_gate_holds_a_jump_although_another_has_none(bench: Bench, make: Make) -> None:
    plan = activity("plan", to("check"), to("look", condition=QUICK))
    agent = begin(bench, make, plan, activity("look", to("ship")), CHECK, SHIP)
    assert is_held_by(agent.go("ship"), "good")
    assert not agent.go("look").error
    assert not agent.go("ship").error


@EITHER
def test_what_only_another_answer_leads_to_is_not_entered(bench: Bench, make: Make) -> None:
    way = {"way": {"full": {}, "short": {"transitionTo": "express"}}}
    express = activity("express", to("ship"))
    agent = begin(bench, make, activity("plan", to("check"), gates=way), CHECK, express, SHIP)
    decide(agent, "way", "full")
    refused = agent.go("express")
    assert is_held_by(refused, "way")
    assert "its answer does not lead there" in refused.text
    assert "Next: Call next_activity with activity_id 'check' first." in refused.text


@EITHER
def test_a_no_is_no_way_to_what_yes_leads_to(bench: Bench, make: Make) -> None:
    way = {"ship-it": {"yes": {"setVariable": {"quick": True}}, "no": {"setVariable": {"quick": False}}}}
    plan = activity("plan", to("ship", condition=QUICK), to("fix"), gates=way)
    agent = begin(bench, make, plan, activity("fix"), SHIP)
    decide(agent, "ship-it", "no")
    assert is_held_by(agent.go("ship"), "ship-it")
    assert not agent.go("fix").error
    assert is_held_by(agent.go("ship"), "ship-it")


@EITHER
def test_nobody_goes_on_from_before_the_beginning(bench: Bench, make: Make) -> None:
    """The agent begins behind the first activity, goes through, and back to the first: it is asked again."""
    listed = [activity("plan", to("build")), activity("build", to("check")), CHECK, SHIP]
    agent = begin(bench, make, *listed, first="build")
    agent.go("check")
    decide(agent, "good", "yes")
    agent.go("ship")
    assert not agent.go("plan").error
    assert is_held_by(agent.go("ship"), "good")
