"""The lookup surface: what it says of an output and of a workflow file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from support.lookup_client import (
    SCHEMA,
    Ask,
    document,
    loop,
    step,
)

TREE = {
    "or": [
        {"type": "contains", "value": "yes", "message": "say yes"},
        {"and": [{"type": "regex", "pattern": "^no", "flags": "i", "message": "begin with no"},
                 {"type": "length", "min": 6, "message": "say why"}]},
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "output", "valid", "words"),
    [
        ([{"type": "contains", "value": "ab", "message": "M"}], "xaby", True, []),
        ([{"type": "contains", "value": "ab", "message": "M"}], "xa", False, ["M", "'ab'"]),
        ([{"type": "regex", "pattern": "^a.c$", "message": "M"}], "abc", True, []),
        ([{"type": "regex", "pattern": "^A.C$", "flags": "i", "message": "M"}], "abc", True, []),
        ([{"type": "regex", "pattern": "^A.C$", "message": "M"}], "abc", False, ["M", "^A.C$"]),
        ([{"type": "regex", "pattern": "(?<!x)y", "message": "M"}], "xy", False, ["M"]),
        ([{"type": "length", "min": 3, "max": 4, "message": "M"}], "ab", False, ["M", "at least 3"]),
        ([{"type": "length", "min": 3, "max": 4, "message": "M"}], "abcde", False, ["M", "at most 4"]),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], '{"verdict": 1}', True, []),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], "{}", False, ["M", "verdict"]),
        ([{"type": "schema", "schema": SCHEMA, "message": "M"}], "no json", False, ["M", "JSON"]),
        (TREE, "yes", True, []),
        (TREE, "No, never", True, []),
        (TREE, "no", False, ["say yes", "say why"]),
        ({"not": {"type": "contains", "value": "TODO", "message": "M"}}, "TODO", False, ["TODO"]),
    ],
)
def test_an_output_is_checked_against_the_criteria(
    ask_about: Callable[..., Ask], rules: Any, output: str, valid: bool, words: list[str]
) -> None:
    ask = ask_about(step("one", validationCriteria=rules))
    verdict = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output=output)
    assert verdict["valid"] is valid
    text = " ".join([*verdict["issues"], *verdict["suggestions"]])
    assert bool(text) is not valid
    for word in words:
        assert word in text


def test_all_failures_of_a_list_are_reported(ask_about: Callable[..., Ask]) -> None:
    rules = [{"type": "contains", "value": value, "message": value * 3} for value in "abc"]
    ask = ask_about(step("one", validationCriteria=rules))
    verdict = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output="b")
    assert verdict["issues"] == ["aaa", "ccc"]
    assert len(verdict["suggestions"]) == 2


def test_conditional_rules_read_the_context(ask_about: Callable[..., Ask]) -> None:
    rule = {"type": "length", "min": 9, "message": "M", "condition": {"var": "long", "equals": True}}
    ask = ask_about(step("one", validationCriteria=[rule]))
    asked = {"workflowId": "team-some-flow", "stepId": "one", "output": "short"}
    assert ask("workflow_validate", **asked)["valid"] is True
    assert ask("workflow_validate", **asked, context={"long": True})["valid"] is False


def test_without_criteria_any_output_will_do_and_instances_are_known(ask_about: Callable[..., Ask]) -> None:
    ask = ask_about(loop("twice", [step("look")], type="for", count=2))
    for name in ("look", "look-2"):
        verdict = ask("workflow_validate", workflowId="team-some-flow", stepId=name, output="x")
        assert verdict == {"valid": True, "issues": [], "suggestions": []}


def test_criteria_that_cannot_be_run_are_an_error_of_the_workflow(ask_about: Callable[..., Ask]) -> None:
    """Rule 33: the pattern backtracks without end, and no input can stall the server."""
    slow = {"type": "regex", "pattern": "(?=a)(a|aa)+$", "message": "M"}
    ask = ask_about(step("one", validationCriteria=[slow]))
    refused = ask("workflow_validate", workflowId="team-some-flow", stepId="one", output="a" * 60 + "c")
    assert refused.code == -32004
    assert refused.data["stepId"] == "one"


@pytest.mark.parametrize(
    ("text", "valid", "target"),
    [
        ('{\n "id": }', False, "line 2"),
        ("[]", False, "line 1"),
        (msgspec.json.encode(document()).decode(), False, "must not be empty"),
        (msgspec.json.encode(document(step("one"))).decode(), True, ""),
        (msgspec.json.encode(document(step("one"), id="Not An Id")).decode(), False, "Not An Id"),
        (msgspec.json.encode(document(loop("l", "nowhere", type="for", count=1))).decode(), False, "nowhere"),  # type: ignore[arg-type]
        (msgspec.json.encode(document(step("one"), {
            "id": "g", "type": "gate", "message": "Which?",
            "options": [{"id": "a", "effect": {"transitionTo": "elsewhere"}}],
        })).decode(), False, "elsewhere"),
        ("[" * 5000, False, "line 1"),
        ('"' + "x" * 1_000_001 + '"', False, "1000000"),
    ],
)  # fmt: skip
def test_bad_json_is_an_answer(ask_about: Callable[..., Ask], text: str, valid: bool, target: str) -> None:
    verdict = ask_about(step("one"))("workflow_validate_json", workflowJson=text)
    assert verdict["valid"] is valid
    assert bool(verdict["issues"]) is not valid
    assert target in " ".join(verdict["issues"])


VERDICT = {"outputContract": {"contractRef": "wr.contracts.review_verdict"}}
CLEAN = '"verdict": "clean", "confidence": "high", "findings": [], "summary": "nothing"'


@pytest.mark.parametrize(
    ("output", "valid", "words"),
    [
        (
            "looks fine",
            False,
            ["needs an artifact of kind 'wr.review_verdict'", "<clean | minor | blocking>"],
        ),
        ('{"verdict": "superb"}', False, ['"superb" is not one of "clean", "minor", "blocking"']),
        (f"{{{CLEAN}}}", True, []),
        (f'[{{"kind": "wr.review_verdict", {CLEAN}}}]', True, []),
    ],
)
def test_an_artifact_that_the_step_must_hand_in_is_checked(
    ask_about: Callable[..., Ask], output: str, valid: bool, words: list[str]
) -> None:
    """The guidance asks for it: an output without it is not valid."""
    ask = ask_about(step("judge", **VERDICT))
    answer = ask("workflow_validate", workflowId="team-some-flow", stepId="judge", output=output)
    assert answer["valid"] is valid
    assert [word for word in words if word not in str(answer)] == []


def test_what_a_step_must_hand_in_by_name_is_checked(ask_about: Callable[..., Ask]) -> None:
    blocks = {"goal": "Look.", "outputRequired": {"riskLevel": "Low or High"}}
    ask = ask_about(step("look", promptBlocks=blocks))
    call = {"workflowId": "team-some-flow", "stepId": "look", "output": "seen"}
    assert ask("workflow_validate", **call)["suggestions"] == ['send as context: {"riskLevel":"<riskLevel>"}']
    assert ask("workflow_validate", **call, context={"riskLevel": "Low"})["valid"]


def test_a_variable_that_the_step_must_set_is_checked(ask_about: Callable[..., Ask]) -> None:
    careful = step("careful", runCondition={"var": "size", "equals": "large"})
    sizes = [{"name": "size", "type": "string", "values": ["small", "large"]}]
    ask = ask_about(step("look", sets=["size"]), careful, variables=sizes)
    call = {"workflowId": "team-some-flow", "stepId": "look", "output": "Looked."}
    for context in ({}, {"size": "huge"}, {"size": None}):
        judged = ask("workflow_validate", **call, context=context)
        (issue,) = judged["issues"]
        assert issue.startswith("Step 'look' must set 'size' (string), which decides what follows.")
        assert judged["suggestions"] == ['send as context: {"size":"<small | large>"}']
    assert ask("workflow_validate", **call, context={"size": "small"})["valid"]
