"""The bundled activity workflows: they load cleanly, stay within their budgets, and every choice matters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.conditions import variables_of
from interlock.core.definition.workflow import (
    Action,
    Activity,
    DocumentKind,
    Gate,
    Loop,
    Step,
    Workflow,
    walk,
)
from support.harness import compile_cache

COUNTS = {"meta": 3, "work-package": 11, "work-packages": 7}  # by the document, without a short route
SHORT_ROUTES = {"work-package": "small-change", "work-packages": "single-package"}
META_SKILLS = {
    "activity-resolution",
    "workflow-execution",
    "session-protocol",
    "execute-activity",
    "orchestrator-management",
    "worker-management",
}
SKILL_FIELDS = {
    "id", "version", "capability", "description", "inputs", "protocol", "tools", "state", "interpretation",
    "rules", "errors", "resources", "output",
}  # fmt: skip
TOOL_FIELDS = {"when", "params", "returns", "next", "action", "usage", "preserve"}
ERROR_FIELDS = {"cause", "recovery", "detection", "resolution", "note"}
TOOLS = {
    "list_workflows", "start_session", "get_workflow_status", "get_workflow", "next_activity", "get_activity",
    "yield_checkpoint", "resume_checkpoint", "present_checkpoint", "respond_checkpoint", "get_checkpoint",
    "get_skills", "get_skill", "get_resource",
}  # fmt: skip
LIBRARY = Library([BUNDLED], compile_cache())

every = pytest.mark.parametrize("name", COUNTS)
sequential = pytest.mark.parametrize("name", ["work-package", "work-packages"])


@cache
def loaded(name: str) -> Loaded:
    found = LIBRARY.load(name)
    assert isinstance(found, Loaded), found
    return found


def compiled(name: str) -> Workflow:
    return loaded(name).workflow


def gates(name: str) -> list[Gate]:
    return [gate for activity in compiled(name).activities for gate in activity.gates()]


def steps(name: str) -> list[Step]:
    return [step for activity in compiled(name).activities for step in activity.steps()]


def loops(name: str) -> list[Loop]:
    found = (item for activity in compiled(name).activities for item in walk(activity.items))
    return [item for item in found if isinstance(item, Loop)]


def sets(name: str) -> Iterator[Action]:
    for activity in compiled(name).activities:
        yield from (item for item in activity.entry_actions if item.action == "set")
    for step in steps(name):
        yield from (item for item in step.actions if item.action == "set")


def texts(name: str) -> Iterator[str]:
    """What an agent or a user reads with variables worked in."""
    yield from (fragment.text for step in steps(name) for fragment in step.prompt)
    yield from (gate.message for gate in gates(name))


def shown_variables(name: str) -> set[str]:
    return {found for text in texts(name) for found in re.findall(r"\{\{([a-z_]+)\}\}", text)}


def conditions_of(activity: Activity) -> Iterator[str]:
    for exit_ in activity.transitions:
        yield from variables_of(exit_.condition)
    for decision in activity.decisions:
        for branch in decision.branches:
            yield from variables_of(branch.condition)
    for item in walk(activity.items):
        yield from variables_of(item.condition)
        if isinstance(item, Loop):
            yield from (*variables_of(item.break_condition), item.items or "")


def deciding_variables(name: str) -> set[str]:
    found = {item for activity in compiled(name).activities for item in conditions_of(activity) if item}
    return found | {mode.activation_variable for mode in compiled(name).modes}


def references(name: str, kind: DocumentKind) -> dict[str, int]:
    """The workflow's documents of a kind, with their bytes as they are sent."""
    found = loaded(name)
    return {
        document.ref: len(found.text(document.digest).encode())
        for document in found.workflow.documents
        if document.kind == kind and "/" not in document.ref
    }


def skill_files() -> list[Any]:
    return [
        pytest.param(yaml.safe_load(path.read_text("utf-8")), id=f"{path.parts[-3]}/{path.stem}")
        for name in COUNTS
        for path in sorted((BUNDLED.path / name / "skills").glob("*.yaml"))
    ]


def nothings(value: object) -> Iterator[object]:
    match value:
        case None | "":
            yield value
        case Mapping():
            yield from (found for item in value.values() for found in nothings(item))
        case list():
            yield from (found for item in value for found in nothings(item))


@every
def test_it_loads_without_a_single_diagnostic(name: str) -> None:
    assert loaded(name).diagnostics == ()


@every
def test_it_has_as_many_activities_as_documented_and_a_short_route(name: str) -> None:
    ids = [activity.id for activity in compiled(name).activities]
    assert len(ids) == COUNTS[name] + (name in SHORT_ROUTES)
    assert SHORT_ROUTES.get(name, ids[0]) in ids


def test_the_activities_of_meta_are_independent_entries() -> None:
    workflow = compiled("meta")
    assert [activity.id for activity in workflow.activities] == [
        "start-workflow",
        "resume-workflow",
        "end-workflow",
    ]
    assert workflow.initial == "start-workflow"
    for activity in workflow.activities:
        assert activity.problem
        assert activity.recognition
        assert (activity.primary_skill, activity.transitions) == ("workflow-execution", ())


def test_no_recognition_pattern_of_meta_leads_to_two_activities() -> None:
    patterns = [item.casefold() for activity in compiled("meta").activities for item in activity.recognition]
    assert len(set(patterns)) == len(patterns)


def test_meta_has_the_skills_that_the_documents_name() -> None:
    assert set(references("meta", "skill")) == META_SKILLS


@sequential
def test_other_workflows_borrow_the_roles_from_meta(name: str) -> None:
    """Rule 36."""
    assert compiled(name).primary_skill == "orchestrator-management"
    borrowed = {document.ref for document in compiled(name).documents if document.kind == "skill"}
    assert {"orchestrator-management", "execute-activity"} <= borrowed
    assert not (BUNDLED.path / name / "skills").joinpath("execute-activity.yaml").exists()


def test_the_bootstrap_names_tools_that_exist() -> None:
    text = (BUNDLED.path / "meta/resources/00-bootstrap.md").read_text("utf-8")
    called = set(re.findall(r"`([a-z]+_[a-z_]+)(?:\(|`)", text))
    parameters = {"agent_id", "workflow_id", "session_token", "parent_session_token", "activity_id"}
    parameters |= {"checkpoint_handle", "option_id", "resource_index", "step_manifest", "checkpoint_id"}
    assert called - parameters == TOOLS


def test_the_bootstrap_fits_in_3_kb() -> None:
    assert references("meta", "resource")["00"] <= 3 * 1024


@every
def test_skills_and_activities_fit_in_4_kb(name: str) -> None:
    assert {ref: size for ref, size in references(name, "skill").items() if size > 4096} == {}
    files = (BUNDLED.path / name / "activities").iterdir()
    assert {file.name for file in files if len(file.read_bytes()) > 4096} == set()


@pytest.mark.parametrize("skill", skill_files())
def test_a_skill_has_the_documented_fields_and_no_empty_ones(skill: dict[str, Any]) -> None:
    assert set(skill) <= SKILL_FIELDS
    assert {"id", "version", "capability", "protocol", "errors"} <= set(skill)
    assert all(set(item) <= TOOL_FIELDS for item in skill.get("tools", {}).values())
    assert all(set(error) <= ERROR_FIELDS for error in skill["errors"].values())
    assert all(isinstance(item, str) for phase in skill["protocol"].values() for item in phase)
    assert list(nothings(skill)) == []


@every
def test_every_skill_and_resource_of_its_own_is_referred_to(name: str) -> None:
    activities = compiled(name).activities
    used = {ref for activity in activities for ref in (activity.primary_skill, *activity.supporting_skills)}
    used |= {step.skill for step in steps(name)} | {compiled(name).primary_skill}
    universal = META_SKILLS if name == "meta" else set()
    assert set(references(name, "skill")) - universal <= used
    wanted = {ref for skill in skill_files() for ref in skill.values[0].get("resources", ())}
    read_by_the_server = {"00"} if name == "meta" else set()
    full = {ref if name != "meta" else f"meta/{ref}": ref for ref in references(name, "resource")}
    assert {ref for known, ref in full.items() if known not in wanted} <= read_by_the_server


@every
def test_ids_of_steps_and_gates_are_unique_in_the_workflow(name: str) -> None:
    ids = [item.id for item in (*steps(name), *gates(name))]
    assert len(set(ids)) == len(ids)


@every
def test_every_gate_comes_before_a_step(name: str) -> None:
    """Rule 23."""
    known = {step.id for step in steps(name)}
    assert all(gate.bound_to in known for gate in gates(name))


@every
def test_every_option_has_a_consequence(name: str) -> None:
    read = deciding_variables(name) | shown_variables(name)
    for gate in gates(name):
        for option in gate.options:
            assert option.effect.transition_to or set(option.effect.set_variables) & read, (
                gate.id,
                option.id,
            )


@every
def test_options_of_a_gate_differ_in_what_they_do(name: str) -> None:
    for gate in gates(name):
        effects = [option.effect for option in gate.options]
        assert all(effects.count(effect) == 1 for effect in effects), gate.id


@every
def test_what_is_read_is_declared_and_set_by_something(name: str) -> None:
    read = deciding_variables(name) | shown_variables(name)
    declared = {variable.name for variable in compiled(name).variables}
    written = {item.target for item in sets(name)} | {loop.item_var for loop in loops(name)}
    written |= {key for gate in gates(name) for option in gate.options for key in option.effect.set_variables}
    defaults = {variable.name for variable in compiled(name).variables if variable.has_default}
    assert read <= declared
    assert read <= written | defaults


@every
def test_a_step_says_what_the_variable_that_it_produces_should_hold(name: str) -> None:
    """Rule 19."""
    assert [item.target for item in sets(name) if not item.has_value and not item.message] == []


@sequential
def test_every_activity_but_the_last_has_a_default_transition(name: str) -> None:
    """Rule 21: no choice of variables leaves a run stuck."""
    *others, last = compiled(name).activities
    assert all([exit_.default for exit_ in other.transitions].count(True) == 1 for other in others)
    assert last.transitions == ()


def test_the_parent_passes_on_and_takes_back_what_both_declare() -> None:
    """Rule 35."""
    triggers = [trigger for step in steps("work-packages") for trigger in step.triggers]
    parent = {variable.name for variable in compiled("work-packages").variables}
    assert [trigger.workflow for trigger in triggers] == ["work-package"] * 2
    for trigger in triggers:
        child = {variable.name for variable in compiled(trigger.workflow).variables}
        assert {*trigger.pass_context, "outcome", "pr_url"} <= parent & child
