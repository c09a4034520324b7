"""Rule 19: what a step of others sets is read from its text when the file is compiled, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.authoring.inference.prose import names_set_in
from interlock.authoring.library import Loaded
from interlock.core.values import Json
from support.authored import ASK, compiled, head, library, step, write

KNOWN = frozenset({"approved", "target_path", "riskLevel", "status", "found"})


@pytest.mark.parametrize(
    "text",
    [
        "Set approved.",
        "Set `approved` to true if all checks pass.",
        "When the checks pass, set the approved flag.",
        "Reset approved to false.",
        "Clear `approved` before you go on.",
        "Mark approved as true.",
        "Record the decision in `approved`.",
        "Force approved = true.",
        "If it is not known, set approved to false.",
        "If no match: set approved = false.",
        "`approved` = whether everybody agreed",
        "`approved` must be set to true afterwards.",
        "Ask what is wanted (sets the approved variable).",
        "Set these context variables:\n\n- `approved`: whether it is good\n- notes",
    ],
)
def test_a_text_that_says_so_sets_the_variable(text: str) -> None:
    assert names_set_in(text, KNOWN) == ["approved"]


@pytest.mark.parametrize(
    "text",
    [
        "Never set approved yourself.",
        "Do not set `approved`.",
        "You must not, whatever happens, set approved = true.",
        "Don't\nset approved here.",
        "You may NOT set `approved = false` when a check fails.",
        "Do not set the following:\n- approved",
        "If `approved = true`, deploy.",
        "Deploy when approved = true.",
        "Continue unless approved == true.",
        "If approved is true (set by the review checkpoint): deploy.",
        "The user sets approved.",
        "Only the user may set approved.",
        "Set up the project {{approved}}.",
        "Describe the set of approved changes.",
        "Set deadlines, and list everything that was approved.",
        "Set status.approved_by in the report.",
        "Tell the user whether it is approved.",
    ],
)
def test_a_text_that_does_not_say_so_sets_nothing(text: str) -> None:
    assert "approved" not in names_set_in(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "Set `target_path`, `riskLevel` and `status`.",
        "Set target_path, riskLevel, and status accordingly.",
        "Set target_path to '.', riskLevel to low and status to open.",
        "If found: set target_path = the match, riskLevel = low, status = open.",
        "Set context variables:\n- `target_path`\n- `riskLevel`: low or high\n- `status`",
    ],
)
def test_every_name_of_an_enumeration_counts(text: str) -> None:
    assert sorted(names_set_in(text, KNOWN)) == ["riskLevel", "status", "target_path"]


def judged(prompt: str, **fields: Json) -> dict[str, Json]:
    """A step workflow whose first step has this prompt, and whose second reads `approved`."""
    condition: Json = {"var": "approved", "equals": True}
    deploy: Json = {"id": "deploy", "title": "D", "prompt": "Deploy.", "runCondition": condition}
    return head({"id": "judge", "title": "Judge", "prompt": prompt, **fields}, deploy)


def test_json_of_others_is_compiled_with_what_its_steps_set(tmp_path: Path) -> None:
    judge = step(compiled(tmp_path, judged("Judge it. Set approved.")), "judge")
    assert judge.inferred == ("approved",)
    assert judge.sets("approved")


def test_each_step_is_listed_with_its_location(tmp_path: Path) -> None:
    loaded = compiled(tmp_path, judged("Judge it. Set approved."))
    listed = [(one.code, one.severity, one.message) for one in loaded.diagnostics]
    assert listed == [("IL516", "info", "the text of 'judge' is taken to set approved")]


def test_what_is_declared_is_not_inferred_too(tmp_path: Path) -> None:
    judge = step(compiled(tmp_path, judged("Set approved.", sets=["approved.by"])), "judge")
    assert (judge.inferred, judge.sets("approved")) == ((), True)


def test_only_names_that_the_workflow_knows_count(tmp_path: Path) -> None:
    judge = step(compiled(tmp_path, judged("Set approved and the table.")), "judge")
    assert judge.inferred == ("approved",)


def test_the_names_of_a_loop_are_its_own(tmp_path: Path) -> None:
    inner: Json = {"id": "in", "title": "In", "prompt": "Set item. Set approved. {{item}}"}
    loop: Json = {"type": "forEach", "items": "list", "itemVar": "item", "maxIterations": 3}
    each: Json = {"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": [inner]}
    assert step(compiled(tmp_path, judged("Judge.") | {"steps": [ASK, each]}), "in").inferred == ()


def test_nothing_is_inferred_from_our_own_yaml(tmp_path: Path) -> None:
    text = "id: t.w\nname: W\nversion: 1.0.0\nvariables: [{name: approved, type: boolean}]\n"
    text += "steps:\n  - {id: judge, title: J, prompt: Judge it. Set approved.}\n"
    loaded = library(write(tmp_path, {"w.yaml": text})).load("t.w")
    assert isinstance(loaded, Loaded)
    assert (step(loaded, "judge").inferred, loaded.diagnostics) == ((), ())


def test_a_source_may_switch_it_off(tmp_path: Path) -> None:
    """`infer: false` in the file interlock.yaml at the top of the source."""
    write(tmp_path, {"interlock.yaml": "infer: false\n"})
    loaded = compiled(tmp_path, judged("Judge it. Set approved."))
    assert (step(loaded, "judge").inferred, loaded.diagnostics) == ((), ())


def test_the_settings_of_a_source_are_checked(tmp_path: Path) -> None:
    write(tmp_path, {"interlock.yaml": "infer: maybe\n", "w.yaml": "id: t.w\nname: W\nversion: 1.0.0\n"})
    found = {(one.file, one.code) for one in library(tmp_path).listing().diagnostics}
    assert ("interlock.yaml", "IL102") in found


def test_a_change_of_the_settings_is_noticed(tmp_path: Path) -> None:
    hash_before = compiled(tmp_path, judged("Judge it. Set approved.")).hash
    known = library(tmp_path)
    assert known.hashes() == {"t.w": hash_before}
    write(tmp_path, {"interlock.yaml": "infer: false\n"})
    assert known.hashes() != {"t.w": hash_before}
