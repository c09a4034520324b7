"""The lookup surface: which step it offers next, and with what guidance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.core.definition.workflow import Activity, Step, Workflow
from interlock.surfaces.lookup.names import names_of
from interlock.surfaces.lookup.progress import Offered, due_step
from support.lookup_client import (
    Ask,
    gate,
    lookup_client,
    loop,
    save_folder,
    step,
    walk,
)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, ["first", "last"]),
        ({"size": "large"}, ["first", "careful", "last"]),
        ({"size": " LARGE "}, ["first", "careful", "last"]),
        ({"size": "small"}, ["first", "last"]),
    ],
)
def test_conditions_read_the_context(
    ask_about: Callable[..., Ask], context: dict[str, Any], expected: list[str]
) -> None:
    careful = step("careful", runCondition={"var": "size", "equals": "large"})
    assert walk(ask_about(step("first"), careful, step("last")), **context) == expected


def test_a_step_passed_over_for_want_of_a_variable_is_named(ask_about: Callable[..., Ask]) -> None:
    """Rule 20."""
    ask = ask_about(step("careful", runCondition={"var": "size", "equals": "large"}), step("last"))
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert len(guidance["warnings"]) == 1
    assert "careful" in guidance["warnings"][0]
    assert "size" in guidance["warnings"][0]


def test_steps_done_out_of_order_are_not_offered_again(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(step("one"), step("two"), step("three"))
    first = ask("workflow_next", workflowId="team-some-flow", completedSteps=["two"])
    assert first["step"]["id"] == "one"
    then = ask("workflow_next", workflowId="team-some-flow", completedSteps=["two", "one"])
    assert then["step"]["id"] == "three"


def test_instances_of_a_step_in_a_loop_are_numbered(ask_about: Callable[..., Ask]) -> None:
    """Rule 38, and the loop's variables are worked into the prompt."""
    body = [step("look", prompt="Look at {{file}}."), step("note")]
    ask = ask_about(loop("each", body, type="forEach", items="files", itemVar="file"), step("end"))
    files = ["a.py", "b.py"]
    assert walk(ask, files=files) == ["look", "note", "look-2", "note-2", "end"]
    second = ask(
        "workflow_next",
        workflowId="team-some-flow",
        completedSteps=["look", "note"],
        context={"files": files},
    )
    assert second["step"]["id"] == "look-2"
    assert second["step"]["prompt"] == "Look at b.py."
    assert "Look at b.py." in second["guidance"]["prompt"]


def test_the_number_of_an_instance_never_hides_another_step(ask_about: Callable[..., Ask]) -> None:
    """Rule 38: `look-2` is a step of its own here, so the second visit of `look` is `look-3`."""
    ask = ask_about(loop("twice", [step("look")], type="for", count=2), step("look-2"))
    assert walk(ask) == ["look", "look-3", "look-2"]


ACTIVITIES = {
    "workflow.yaml": "id: two-rooms\nversion: 1.0.0\ntitle: Two rooms\ninitialActivity: first\n",
    "activities/01-first.yaml": """
id: first
version: 1.0.0
name: First
steps:
  - { id: look, name: Look, description: Look around }
  - { id: leave, name: Leave, description: Leave the room }
checkpoints:
  - id: sure
    name: Sure
    message: Sure?
    options:
      - { id: done, label: Done, effect: { transitionTo: __terminal__ } }
transitions:
  - { to: second, isDefault: true }
""",
    "activities/02-second.yaml": """
id: second
version: 1.0.0
name: Second
steps:
  - { id: look, name: Look, description: Look again }
""",
}


def test_an_activity_workflow_is_the_list_of_its_steps(tmp_path: Path) -> None:
    """Rule 38: equal ids in two activities are numbered; gates are left out."""
    ask = lookup_client(save_folder(tmp_path, ACTIVITIES))
    assert [shown["id"] for shown in ask("workflow_get", id="two-rooms")["steps"]] == [
        "look",
        "leave",
        "look-2",
    ]
    assert walk(ask, "two-rooms") == ["look", "leave", "look-2"]
    second = ask("workflow_next", workflowId="two-rooms", completedSteps=["look", "leave"])
    assert "Look again" in second["step"]["prompt"]


def test_a_steered_loop_is_gone_through_once_and_confirmations_pass(ask_about: Callable[..., Ask]) -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control"}
    steered = loop("again", [step("try")], type="while", conditionSource=source)
    ask = ask_about(step("first", requireConfirmation=True), steered, step("last"))
    assert walk(ask) == ["first", "try", "last"]
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert guidance["requiresConfirmation"] is True


def test_what_a_gate_would_have_decided_is_read_from_the_context(ask_about: Callable[..., Ask]) -> None:
    quick = gate("pace", setVariable={"pace": "quick"})
    slow = step("slow", runCondition={"var": "pace", "equals": "slow"})
    asked = gate("again", setVariable={"pace": "quick"})
    only = loop("only", [gate("alone", setVariable={"pace": "quick"})], type="for", count=2)
    ask = ask_about(quick, loop("twice", [asked, slow], type="for", count=2), only, step("last"))
    assert walk(ask, pace="slow") == ["slow", "slow-2", "last"]
    assert walk(ask) == ["last"]


def test_a_loop_without_its_items_is_passed_by_with_a_warning(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(loop("each", [step("look")], type="forEach", items="files"), step("end"))
    answer = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])
    assert answer["step"]["id"] == "end"
    assert "files" in answer["guidance"]["warnings"][0]


ROUND = {
    "workflow.yaml": "id: merry-go-round\nversion: 1.0.0\ntitle: Round\ninitialActivity: here\n"
    "variables: [{ name: fair, type: string }, { name: again, type: boolean }]\n",
    "activities/01-here.yaml": """
id: here
version: 1.0.0
name: Here
steps:
  - { id: look, name: Look, description: Look, condition: { var: fair, equals: open } }
transitions:
  - { to: here, condition: { type: simple, variable: again, operator: "==", value: true } }
  - { to: __terminal__, condition: { type: simple, variable: again, operator: "==", value: false } }
""",
}


def test_a_workflow_that_goes_round_without_a_step_is_an_invalid_state(tmp_path: Path) -> None:
    ask = lookup_client(save_folder(tmp_path, ROUND))
    asked = {"workflowId": "merry-go-round", "completedSteps": []}
    refused = ask("workflow_next", **asked)
    assert (refused.code, refused.data["workflowId"]) == (-32005, "merry-go-round")
    assert "here" in refused.data["details"]
    assert ask("workflow_get", id="merry-go-round", mode="preview").code == -32005
    assert ask("workflow_next", **asked, context={"again": False})["isComplete"] is True


def test_independent_activities_begin_with_the_one_that_the_context_names() -> None:
    """Rule 35."""
    rooms = tuple(Activity(name, name, (Step(f"do-{name}", name),)) for name in ("one", "two"))
    workflow = Workflow("rooms", "Rooms", "", "1.0.0", rooms, form="activities")
    for context, expected in (({}, "do-one"), ({"choose-activity": "two"}, "do-two")):
        offered = due_step(workflow, names_of(workflow), frozenset(), context)
        assert isinstance(offered, Offered)
        assert offered.name == expected


def test_guidance_names_what_the_output_must_hold(ask_about: Callable[..., Ask]) -> None:
    rules = [
        {"type": "contains", "value": "plan", "message": "name the plan"},
        {"type": "length", "min": 9, "message": "more", "condition": {"var": "long", "equals": True}},
    ]
    ask = ask_about(step("one", validationCriteria=rules, modelTier="strong"))
    guidance = ask("workflow_next", workflowId="team-some-flow", completedSteps=[])["guidance"]
    assert guidance["validationCriteria"] == ["name the plan"]
    assert guidance["modelHint"] == "strong"


def test_a_question_before_a_step_is_told_until_the_context_decides_it(ask_about: Callable[..., Ask]) -> None:
    """Nothing here asks the user, so the agent is told to, with what each answer would set."""
    asked = gate("pace", setVariable={"pace": "quick"})
    ask = ask_about(step("look"), asked, step("make"), step("tell"), gate("publish"))
    call = {"workflowId": "team-some-flow", "completedSteps": ["look"]}
    assert ask("workflow_next", **call)["guidance"]["warnings"] == [
        "Ask the user ('pace'), and send in context what the answer sets: "
        "Which? first (First): pace = quick; other (Other)."
    ]
    assert "warnings" not in ask("workflow_next", **call, context={"pace": "slow"})["guidance"]
    call["completedSteps"] = ["look", "make"]
    assert "warnings" not in ask("workflow_next", **call)["guidance"]
    call["completedSteps"] = ["look", "make", "tell"]
    assert "('publish')" in ask("workflow_next", **call)["guidance"]["warnings"][0]


def test_a_question_about_what_the_context_has_is_told_until_an_answer_has_changed_it(
    ask_about: Callable[..., Ask],
) -> None:
    """What a question shows was set before it was asked, and does not answer it."""
    large = {"var": "size", "not_equals": "small"}
    asked = {**gate("split", setVariable={"size": "normal"}), "condition": large}
    ask = ask_about(step("look"), asked, step("make"))
    call = {"workflowId": "team-some-flow", "completedSteps": ["look"]}
    assert "('split')" in ask("workflow_next", **call, context={"size": "large"})["guidance"]["warnings"][0]
    for size in ("normal", "small"):
        assert "warnings" not in ask("workflow_next", **call, context={"size": size})["guidance"]


def test_a_steered_loop_says_that_it_was_counted_once(ask_about: Callable[..., Ask]) -> None:
    source = {"kind": "artifact_contract", "contractRef": "wr.contracts.loop_control"}
    refine = loop("refine", [step("draft"), step("judge")], type="while", conditionSource=source)
    ask = ask_about(refine, step("ship"), step("tell"))
    call = {"workflowId": "team-some-flow", "completedSteps": ["draft", "judge"]}
    offered = ask("workflow_next", **call)
    assert offered["step"]["id"] == "ship"
    assert offered["guidance"]["warnings"] == [
        "Loop 'refine' was counted once: if it was decided to continue, do its steps again before going on."
    ]
    call["completedSteps"] = ["draft", "judge", "ship"]
    assert "warnings" not in ask("workflow_next", **call)["guidance"]


VERDICT = {"verdict": "clean", "confidence": "high", "findings": [], "summary": "nothing"}


def test_what_a_step_has_handed_in_is_read_from_the_context(ask_about: Callable[..., Ask]) -> None:
    """Rule 19: nothing is kept here, so conditions and texts read what the client has kept."""
    judge = step("judge", outputContract={"contractRef": "wr.contracts.review_verdict"})
    is_not_clean = {"var": "artifacts.review_verdict.verdict", "not_equals": "clean"}
    tell = step("tell", prompt="Tell them: {{artifacts.review_verdict.summary}}.")
    ask = ask_about(judge, step("repair", runCondition=is_not_clean), tell)
    call: dict[str, Any] = {"workflowId": "team-some-flow", "completedSteps": []}
    sent = ask("workflow_next", **call)["guidance"]["prompt"]
    assert sent.endswith("; from then on also as context.artifacts.review_verdict")
    call["completedSteps"] = ["judge"]
    offered = ask("workflow_next", **call, context={"artifacts": {"review_verdict": VERDICT}})
    assert (offered["step"]["id"], offered["step"]["prompt"]) == ("tell", "Tell them: nothing.")
    assert "warnings" not in offered["guidance"]
    minor = {"review_verdict": {**VERDICT, "verdict": "minor"}}
    offered = ask("workflow_next", **call, context={"artifacts": minor})
    assert offered["step"]["id"] == "repair"
    assert "warnings" not in offered["guidance"]


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({}, "This step needs an artifact of kind 'wr.review_verdict'"),
        ({"artifacts": "clean"}, "This step needs an artifact of kind 'wr.review_verdict'"),
        ({"artifacts": {"review_verdict": {"verdict": "superb"}}}, "is not accepted"),
    ],
)
def test_an_artifact_that_the_context_lacks_is_named_with_what_to_send(
    ask_about: Callable[..., Ask], context: dict[str, Any], why: str
) -> None:
    judge = step("judge", outputContract={"contractRef": "wr.contracts.review_verdict"})
    ask = ask_about(judge, step("tell", prompt="Tell them: {{artifacts.review_verdict.summary}}."))
    call = {"workflowId": "team-some-flow", "completedSteps": ["judge"], "context": context}
    (warning,) = ask("workflow_next", **call)["guidance"]["warnings"]
    assert warning.startswith("What step 'judge' hands in is read later. ")
    assert why in warning
    assert 'Send in context: {"artifacts":{"review_verdict":{' in warning


def test_a_question_at_the_end_of_a_round_is_told_before_the_next(ask_about: Callable[..., Ask]) -> None:
    """A value may be the answer of the round before: then the client is told to make sure."""
    accept = gate("accept", setVariable={"accepted": True})
    until = {"var": "accepted", "equals": True}
    work = loop("work", [step("make"), accept], type="until", condition=until)
    ask = ask_about(work, step("tell"))
    call: dict[str, Any] = {"workflowId": "team-some-flow", "completedSteps": ["make"]}
    (warning,) = ask("workflow_next", **call)["guidance"]["warnings"]
    assert warning.startswith("Ask the user ('accept'), and send in context what the answer sets: Which?")
    offered = ask("workflow_next", **call, context={"accepted": False})
    assert offered["step"]["id"] == "make-2"
    assert "warnings" not in offered["guidance"]
    call["completedSteps"] = ["make", "make-2"]
    offered = ask("workflow_next", **call, context={"accepted": False})
    assert offered["step"]["id"] == "make-3"
    (warning,) = offered["guidance"]["warnings"]
    assert warning.startswith("If the user was not asked in this round, ask again ('accept')")


def test_only_questions_that_the_run_comes_to_are_told(ask_about: Callable[..., Ask]) -> None:
    """The loop between them, with its own question, is passed over."""
    plan = gate("plan", setVariable={"plan": "fix"})
    fixing = {"var": "plan", "equals": "fix"}
    fix = {**loop("fix", [step("write"), gate("keep")], type="for", count=1), "runCondition": fixing}
    ask = ask_about(step("look"), plan, fix, step("tell"))
    call: dict[str, Any] = {"workflowId": "team-some-flow", "completedSteps": ["look"]}
    offered = ask("workflow_next", **call)
    assert offered["step"]["id"] == "tell"
    assert [text for text in offered["guidance"]["warnings"] if "('plan')" in text]
    assert not [text for text in offered["guidance"]["warnings"] if "('keep')" in text]
    call["completedSteps"] = ["look", "write"]
    offered = ask("workflow_next", **call, context={"plan": "fix"})
    assert "('keep')" in offered["guidance"]["warnings"][0]


def test_a_value_of_the_context_that_does_not_fit_is_named(ask_about: Callable[..., Ask]) -> None:
    """Rule 19."""
    sizes = [{"name": "size", "type": "string", "values": ["small", "large"]}]
    ask = ask_about(step("look"), variables=sizes)
    call = {"workflowId": "team-some-flow", "completedSteps": [], "context": {"size": "huge"}}
    assert ask("workflow_next", **call)["guidance"]["warnings"] == [
        '\'size\' is not taken: it is one of "small" | "large". Send one of these.'
    ]
