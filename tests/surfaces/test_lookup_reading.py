"""The lookup surface: what it shows of a workflow, and the schemas of its answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from interlock.authoring.library import BUNDLED, Library, Source
from interlock.surfaces.lookup import LookupSurface
from support.corpus import needs_corpus
from support.harness import compile_cache
from support.lookup_client import (
    Ask,
    document,
    lookup_client,
    loop,
    save,
    step,
)
from support.paths import CORPUS


@pytest.fixture(scope="module")
def ask_bundled() -> Ask:
    return lookup_client(Library([BUNDLED], compile_cache()))


def test_the_list_shows_ids_with_dashes_and_the_category(tmp_path: Path) -> None:
    library = save(
        tmp_path,
        document(step("one"), id="team.a_b", category="ops"),
        document(step("one"), id="team.c", tags=["first", "second"]),
        document(step("one"), id="team.d"),
    )
    entries = lookup_client(library)("workflow_list")["workflows"]
    assert [(entry["id"], entry["category"]) for entry in entries] == [
        ("team-a-b", "ops"),
        ("team-c", "first"),
        ("team-d", "general"),
    ]
    assert entries[0].keys() == {"id", "name", "description", "category", "version"}


@pytest.mark.parametrize("spelling", ["team.some_flow", "team-some-flow", "team.some-flow", "team_some_flow"])
def test_ids_are_taken_in_both_forms(ask_about: Callable[..., Ask], spelling: str) -> None:
    """Rule 38."""
    ask = ask_about(step("do_this"), step("then"))
    assert ask("workflow_get", id=spelling)["id"] == "team-some-flow"
    assert ask("workflow_get", id=spelling)["steps"][0]["id"] == "do-this"
    for done in ("do_this", "do-this"):
        answer = ask("workflow_next", workflowId=spelling, completedSteps=[done], currentStep=done)
        assert answer["step"]["id"] == "then"


def test_two_ids_that_look_the_same_are_still_distinguished(tmp_path: Path) -> None:
    """Rule 38: a collision is a diagnostic; the written ids work, and so do those that are listed."""
    ask = lookup_client(
        save(tmp_path, document(step("one"), id="team.a_b"), document(step("two"), id="team.a-b"))
    )
    assert ask("workflow_get", id="team.a_b")["steps"][0]["id"] == "one"
    assert ask("workflow_get", id="team.a-b")["steps"][0]["id"] == "two"
    listed = [entry["id"] for entry in ask("workflow_list")["workflows"]]
    assert sorted(listed) == ["team-a-b", "team-a-b-2"]
    assert [ask("workflow_get", id=id)["steps"][0]["id"] for id in sorted(listed)] == ["two", "one"]


def test_a_workflow_comes_back_as_it_was_written(ask_about: Callable[..., Ask]) -> None:
    rules = [
        {"type": "contains", "value": "plan", "message": "name the plan"},
        {"or": [{"type": "regex", "pattern": "a+", "flags": "i", "message": "an a"},
                {"not": {"type": "length", "min": 2, "max": 9, "message": "short"}}]},
    ]  # fmt: skip
    condition = {"and": [{"var": "x", "gte": 2}, {"not": {"var": "y", "equals": "no"}}, {"var": "z"}]}
    steps = [
        step("one", requireConfirmation=True, runCondition=condition),
        step("two", requireConfirmation={"var": "risk", "in": ["high"]}),
        loop(
            "each", [step("inner", requireConfirmation=False)], type="forEach", items="list", itemVar="item"
        ),
    ]
    lists = {"preconditions": ["p"], "clarificationPrompts": ["c"], "metaGuidance": ["m"]}
    got = ask_about(*steps, **lists)("workflow_get", id="team-some-flow")
    assert got["steps"][0] == steps[0]
    assert got["steps"][1] == steps[1]
    assert got["steps"][2] == steps[2]
    assert {name: got[name] for name in lists} == lists
    judged = ask_about(step("one", validationCriteria=rules))("workflow_get", id="team-some-flow")
    assert judged["steps"][0]["validationCriteria"] == rules


def test_conditional_pieces_of_a_prompt_keep_their_order(ask_about: Callable[..., Ask]) -> None:
    fragments = [{"text": "Only fast.", "when": {"var": "fast", "equals": True}}]
    ask = ask_about(step("one", promptFragments=fragments, guidance=["Be brief"]))
    shown = ask("workflow_get", id="team-some-flow")["steps"][0]
    assert shown["promptFragments"] == fragments
    assert "Only fast." not in shown["prompt"]
    offered = ask("workflow_next", workflowId="team-some-flow", completedSteps=[], context={"fast": True})
    assert "Be brief" in offered["guidance"]["prompt"]
    assert offered["guidance"]["prompt"].endswith("Only fast.")


def test_metadata_and_preview_leave_the_steps_out(ask_about: Callable[..., Ask]) -> None:
    hidden = step("hidden", runCondition={"var": "x", "equals": 1})
    ask = ask_about(hidden, step("shown"), loop("each", [step("inner")], type="for", count=2))
    metadata = ask("workflow_get", id="team-some-flow", mode="metadata")
    preview = ask("workflow_get", id="team-some-flow", mode="preview")
    assert "steps" not in metadata | preview
    assert metadata["totalSteps"] == preview["totalSteps"] == 3
    assert preview["firstStep"]["id"] == "shown"
    assert preview.keys() - metadata.keys() == {"firstStep"}


@pytest.mark.parametrize(
    ("source", "least"),
    [
        pytest.param(BUNDLED, 9, id="bundled"),
        pytest.param(Source("configured", CORPUS / "activities"), 5, id="activities", marks=needs_corpus),
        pytest.param(Source("configured", CORPUS / "steps", "corpus"), 18, id="steps", marks=needs_corpus),
        pytest.param(Source("configured", CORPUS / "steps-v1", "older"), 4, id="older", marks=needs_corpus),
    ],
)
def test_every_workflow_fits_the_schema_and_is_a_workflow_again(source: Source, least: int) -> None:
    ask = lookup_client(Library([source]))
    surface = LookupSurface(Library([]))
    schema = surface.tools["workflow_get"].output_schema
    fits = jsonschema_rs.validator_for(msgspec.to_builtins(schema))
    entries = ask("workflow_list")["workflows"]
    assert len(entries) >= least
    for entry in entries:
        for mode in ({}, {"mode": "metadata"}, {"mode": "preview"}):
            fits.validate(msgspec.to_builtins(ask("workflow_get", id=entry["id"], **mode)))
        whole = ask("workflow_get", id=entry["id"])
        verdict = ask("workflow_validate_json", workflowJson=msgspec.json.encode(whole).decode())
        assert verdict["issues"] == []


def test_the_schema_of_a_workflow_is_strict() -> None:
    schema = LookupSurface(Library([])).tools["workflow_get"].output_schema
    fits = jsonschema_rs.validator_for(msgspec.to_builtins(schema))
    good = document(step("one"), loop("two", [step("three")], type="for", count=2), id="a-b")
    assert fits.is_valid(good)
    assert not fits.is_valid(document(step("one", runCondition={"x": 1}), id="a-b"))
    assert not fits.is_valid(document(loop("two", [{"id": "three"}], type="for"), id="a-b"))
    assert not fits.is_valid({"id": "a-b", "name": "A", "description": ""})


def test_the_listed_examples_fit_their_own_schemas() -> None:
    for tool in LookupSurface(Library([])).tools.values():
        if tool.examples:
            asked, answered = tool.examples["request"], tool.examples["response"]
            params = msgspec.to_builtins(asked)["params"]
            jsonschema_rs.validate(msgspec.to_builtins(tool.argument_schema()), params)
            jsonschema_rs.validate(msgspec.to_builtins(tool.output_schema), msgspec.to_builtins(answered))


def test_every_answer_fits_its_output_schema(ask_bundled: Ask) -> None:
    tools = LookupSurface(Library([])).tools
    first = ask_bundled("workflow_next", workflowId="wr-feature", completedSteps=[])["step"]["id"]
    asked = [
        ("workflow_list", {}),
        ("workflow_next", {"workflowId": "wr-feature", "completedSteps": []}),
        ("workflow_validate", {"workflowId": "wr-feature", "stepId": first, "output": "x"}),
        ("workflow_validate_json", {"workflowJson": "{"}),
    ]
    for name, params in asked:
        answer = msgspec.to_builtins(ask_bundled(name, **params))
        jsonschema_rs.validate(msgspec.to_builtins(tools[name].output_schema), answer)
