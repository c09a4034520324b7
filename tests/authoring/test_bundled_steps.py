"""The bundled step workflows: they load cleanly, stay within their budgets, and are covered by scenarios.

A scenario is played by the engine itself, as an agent at the execution surface would.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import yaml

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.simulate.scenarios import run_file
from interlock.core.definition.conditions import variables_of
from interlock.core.definition.expressions import ARTIFACTS, RESERVED, artifact_name, variables_in
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow, walk
from interlock.core.json_schema import violations
from support.harness import compile_cache

EXPECTED = (
    "bug_investigation",
    "code_review",
    "documentation",
    "feature",
    "incident_review",
    "refactoring",
    "release",
    "research",
    "small_task",
    "test_writing",
)
ENDS = {"complete", "complete_with_gaps", "blocked"}
LIBRARY = Library([BUNDLED], compile_cache())
every = pytest.mark.parametrize("name", EXPECTED)


@cache
def loaded(name: str) -> Loaded:
    found = LIBRARY.load(f"wr.{name}")
    assert isinstance(found, Loaded), found
    return found


def compiled(name: str) -> Workflow:
    return loaded(name).workflow


def budget(name: str) -> int:
    return 3 * 1024 if name == "small_task" else 8 * 1024


@cache
def raw(file: str) -> Any:
    return yaml.safe_load((BUNDLED.path / file).read_text("utf-8"))


def scenarios(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = raw(f"{name}.scenario.yaml")["scenarios"]
    return found


def items(name: str) -> tuple[Item, ...]:
    return tuple(walk(compiled(name).activities[0].items))


def steps(name: str) -> dict[str, Step]:
    return {item.id: item for item in items(name) if isinstance(item, Step)}


def gates(name: str) -> dict[str, Gate]:
    return {item.id: item for item in items(name) if isinstance(item, Gate)}


def texts(name: str) -> Iterator[str]:
    """Everything that a run delivers as instructions, each item once."""
    yield from compiled(name).rules
    for step in steps(name).values():
        yield from (fragment.text for fragment in step.prompt)
    for gate in gates(name).values():
        yield gate.message
        for option in gate.options:
            yield option.label + (option.description or "")


def read_variables(name: str) -> set[str]:
    """The variables that something later depends on: conditions, loops, prompts, user input."""
    found: set[str] = set()
    for item in items(name):
        match item:
            case Step():
                confirm = None if isinstance(item.confirm, bool) else item.confirm
                found.update(*map(variables_of, (item.condition, confirm)))
                found.update(entry.key for entry in item.user_input if entry.key)
            case Gate():
                found.update(variables_of(item.condition))
            case Loop():
                found.update(*map(variables_of, (item.condition, item.run_condition)))
                found.update([item.items] if item.items else [])
    for text in texts(name):
        found.update(re.findall(r"\{\{([A-Za-z0-9.]+)\}\}", text))
    return {path.split(".")[0] for path in found}


def chosen(scenario: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The options that a scenario takes at the gates on its path."""
    for gate, answer in scenario.get("answers", {}).items():
        visits = scenario["expect"]["path"].count(gate)
        options = answer if isinstance(answer, list) else [answer]
        yield from ((gate, option) for option in options[:visits])


def test_the_library_holds_the_ten_workflows_three_folders_and_routines() -> None:
    files = {f"{name}{end}" for name in EXPECTED for end in (".yaml", ".scenario.yaml")}
    assert {item.name for item in BUNDLED.path.glob("*.yaml")} == files
    folders = {item.name for item in BUNDLED.path.iterdir() if item.is_dir()}
    assert folders == {"meta", "work-package", "work-packages", "routines"}


@every
def test_it_is_named_after_its_file(name: str) -> None:
    assert compiled(name).id == f"wr.{name}"


@every
def test_it_loads_without_a_single_warning(name: str) -> None:
    assert loaded(name).diagnostics == ()


@every
def test_its_instructions_stay_within_the_budget(name: str) -> None:
    assert sum(len(text.encode()) for text in texts(name)) <= budget(name)


@every
def test_every_declared_variable_is_read(name: str) -> None:
    declared = {variable.name for variable in compiled(name).variables}
    assert declared - read_variables(name) == set()


@every
def test_every_variable_read_is_declared_or_belongs_to_a_loop(name: str) -> None:
    declared = {variable.name for variable in compiled(name).variables}
    loops = [item for item in items(name) if isinstance(item, Loop)]
    assert read_variables(name) - {*RESERVED} <= declared | {loop.item_var or "" for loop in loops}


@every
def test_every_option_sets_what_something_reads(name: str) -> None:
    for gate in gates(name).values():
        for option in gate.options:
            assert set(option.effect.set_variables) & read_variables(name), (gate.id, option.id)


@every
def test_variables_that_no_gate_sets_are_asked_for_in_a_prompt(name: str) -> None:
    written = {
        key for gate in gates(name).values() for option in gate.options for key in option.effect.set_variables
    }
    prose = "\n".join(texts(name))
    unasked = [
        variable.name for variable in compiled(name).variables if f"`{variable.name}` in context" not in prose
    ]
    assert set(unasked) <= written


@every
def test_a_step_declares_that_it_sets_what_its_text_asks_for_and_a_condition_reads(name: str) -> None:
    """Rule 31: so the step is not done without it."""
    decisive = Plan(compiled(name)).decisive
    for step in steps(name).values():
        prose = "\n".join(fragment.text for fragment in step.prompt)
        asked = set(re.findall(r"[Ss]et `(\w+)` in context", prose))
        assert asked & set(decisive) <= {action.produces for action in step.actions}, step.id


@every
def test_the_values_of_a_deciding_variable_are_a_closed_list(name: str) -> None:
    """Those that conditions happen to compare with are not all that the author means."""
    plan = Plan(compiled(name))
    for variable in plan.workflow.variables:
        choices = plan.choices(variable.name)
        assert choices.closed or not choices.values, variable.name


@every
def test_its_scenarios_name_only_what_exists(name: str) -> None:
    assert raw(f"{name}.scenario.yaml")["workflow"] == f"wr.{name}"
    for scenario in scenarios(name):
        assert set(scenario) <= {"name", "context", "answers", "outputs", "expect"}
        assert set(scenario["expect"]["path"]) <= {*steps(name), *gates(name)}
        assert set(scenario.get("outputs", {})) <= set(steps(name))
        assert scenario["expect"]["end"] in ENDS
        for gate, option in chosen(scenario):
            assert gates(name)[gate].option(option) is not None


@every
def test_it_has_a_short_route(name: str) -> None:
    """At most four steps and one gate, for work that needs no more."""
    titled = "accepted at once" if name == "small_task" else "the short route"
    (route,) = [scenario["expect"] for scenario in scenarios(name) if scenario["name"] == titled]
    assert route["end"] == "complete"
    assert len([item for item in route["path"] if item in steps(name)]) <= 4
    assert len([item for item in route["path"] if item in gates(name)]) <= 1


@every
def test_a_question_about_a_result_shows_the_result(name: str) -> None:
    """The person who accepts a result reads in the question what was found."""
    blind = [gate.id for gate in gates(name).values() if "{{" not in gate.message and gate.condition is None]
    assert blind == []


@pytest.mark.parametrize("workflow_id", [entry.id for entry in LIBRARY.listing().entries])
def test_a_question_quotes_only_what_the_contract_of_an_artifact_requires(workflow_id: str) -> None:
    """A report that passed its contract leaves no hole in the question about it."""
    found = LIBRARY.load(workflow_id)
    assert isinstance(found, Loaded), found
    for activity in found.workflow.activities:
        required = dict(required_fields(activity.steps()))
        for path in questioned(activity.items):
            base, _, quoted = path.partition(".")
            name, _, field = quoted.partition(".")
            assert base != ARTIFACTS or field in required[name], path


def required_fields(handing_in: Iterable[Step]) -> Iterator[tuple[str, set[str]]]:
    """Yield the artifacts that steps must hand in, each with the fields that its contract requires."""
    for step in handing_in:
        for contract in step.contracts:
            if contract.required:
                yield artifact_name(contract.artifact), set(contract.schema["required"])


def questioned(asking: Sequence[Item]) -> Iterator[str]:
    """Yield the paths that the questions to the user show."""
    for item in walk(asking):
        if isinstance(item, Gate):
            yield from item.shown_paths()
        elif isinstance(item, Step):
            yield from (path for need in item.user_input for path in variables_in(need.question))


@every
def test_its_scenarios_have_names_of_their_own(name: str) -> None:
    names = [scenario["name"] for scenario in scenarios(name)]
    assert len(set(names)) == len(names)


@every
def test_its_scenarios_visit_every_step_and_take_every_option(name: str) -> None:
    visited = {item for scenario in scenarios(name) for item in scenario["expect"]["path"]}
    taken = {pair for scenario in scenarios(name) for pair in chosen(scenario)}
    assert visited == {*steps(name), *gates(name)}
    assert taken == {(gate.id, option.id) for gate in gates(name).values() for option in gate.options}


@every
def test_what_has_a_condition_is_also_passed_by_in_a_finished_run(name: str) -> None:
    finished = [
        scenario["expect"]["path"] for scenario in scenarios(name) if scenario["expect"]["end"] != "blocked"
    ]
    for item in (*steps(name).values(), *gates(name).values()):
        if item.condition is not None:
            assert any(item.id not in path for path in finished), item.id


@every
def test_each_required_artifact_is_missed_once(name: str) -> None:
    """A contract that no scenario runs into might as well not be there."""
    blocked_at = {
        scenario["expect"]["path"][-1]
        for scenario in scenarios(name)
        if scenario["expect"]["end"] == "blocked"
    }
    demanding = {
        step.id for step in steps(name).values() if step.contracts or step.criteria or step.user_input
    }
    assert demanding <= blocked_at


@every
def test_artifacts_of_its_scenarios_pass_their_contracts(name: str) -> None:
    for scenario in scenarios(name):
        for step_id, given in scenario.get("outputs", {}).items():
            for visit in given if isinstance(given, list) else [given]:
                for artifact in visit.get("artifacts", ()):
                    assert faults(steps(name)[step_id], artifact) == []


def faults(step: Step, artifact: Mapping[str, Any]) -> list[str]:
    contract = next(contract for contract in step.contracts if contract.artifact == artifact["kind"])
    return violations(contract.schema, artifact)


@every
def test_the_engine_takes_the_paths_that_its_scenarios_expect(name: str) -> None:
    tested = run_file(BUNDLED.path / f"{name}.scenario.yaml", LIBRARY)
    assert tested.diagnostics == ()
    assert {outcome.name: outcome.differences for outcome in tested.outcomes if not outcome.passed} == {}


@every
def test_its_scenarios_leave_nothing_untouched(name: str) -> None:
    assert run_file(BUNDLED.path / f"{name}.scenario.yaml", LIBRARY).missed == ()
