"""Checks in files: compiled in every format, drawn, simulated, and played by scenarios."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from interlock.authoring.compile.items.checks import defined
from interlock.authoring.found_checks import checks_file, proposed_checks
from interlock.authoring.graph.model import drawing_of
from interlock.authoring.library import BUNDLED, Library, Loaded, Source
from interlock.authoring.simulate.findings import simulate
from interlock.authoring.simulate.scenarios import run_file
from interlock.authoring.text.yaml_plain import read_plain
from interlock.core.definition.checks import CommandCheck, Expectation
from interlock.core.definition.conditions import Compare
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import step_prompt
from interlock.core.definition.workflow import Gate, Step, walk
from interlock.core.run.state import RunState
from support.harness import compile_cache

FILE = """
id: team.work
name: Work
version: 1.0.0
steps:
  - id: build
    title: Build
    prompt: Build it.
    checks:
      - {id: tests, run: "pytest -q 'a b'", in: app, timeout: 9, when: {var: code, equals: true},
         expect: {exit: 1, stdout: passed, files: [out.txt]}}
      - lint
  - {id: review, type: gate, message: "Is it right? {{checks.tests}}", options: [{id: ok}]}
"""
GATED = """
id: team.gated
name: Gated
version: 1.0.0
steps:
  - {id: build, title: Build, prompt: Build it.}
  - id: review
    type: gate
    message: Is it right?
    options: [{id: ok}]
    checks: [{id: tests, run: make test}]
"""
SCENARIOS = """
workflow: team.gated
scenarios:
  - {name: passes, answers: {review: ok}, expect: {path: [build, check-review, review]}}
  - {name: fails, checks: {tests: 2}, expect: {end: blocked, path: [build, check-review]}}
"""


def loaded(tmp_path: Path, text: str, name: str) -> Loaded:
    (tmp_path / f"{name}.yaml").write_text(text)
    found = Library([Source("configured", tmp_path)]).load(f"team.{name}")
    assert isinstance(found, Loaded), found
    return found


def test_a_check_has_all_of_its_fields(tmp_path: Path) -> None:
    workflow = loaded(tmp_path, FILE, "work").workflow
    step = workflow.activities[0].items[0]
    assert isinstance(step, Step)
    expected = Expectation(1, "passed", ("out.txt",))
    condition = Compare("code", "equals", True)
    tests = CommandCheck("tests", "pytest -q 'a b'", "app", 9, expected, condition)
    assert step.checks == (tests, CommandCheck("lint"))


def test_step_json_and_activity_files_have_checks_too(tmp_path: Path) -> None:
    check = {"id": "tests", "run": "make test"}
    step = {"id": "build", "title": "Build", "prompt": "Build it.", "checks": [check]}
    raw = {"id": "team.json", "name": "W", "description": "D", "version": "1.0.0", "steps": [step]}
    (tmp_path / "json.json").write_bytes(msgspec.json.encode(raw))
    folder = tmp_path / "flow"
    (folder / "activities").mkdir(parents=True)
    (folder / "workflow.yaml").write_text("id: flow\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n")
    (folder / "activities" / "a.yaml").write_text(
        "id: a\nname: A\nsteps:\n"
        "  - {id: s, name: S, description: Do it., checks: [{id: tests, run: make test}]}\n"
    )
    library = Library([Source("configured", tmp_path)])
    for name in ("team.json", "flow"):
        found = library.load(name)
        assert isinstance(found, Loaded), found
        assert list(found.workflow.checks()) == [CommandCheck("tests", "make test")]


def test_the_checks_of_a_gate_are_a_step_before_it_and_the_question_shows_them(tmp_path: Path) -> None:
    _, step, gate = loaded(tmp_path, GATED, "gated").workflow.activities[0].items
    assert isinstance(step, Step)
    assert isinstance(gate, Gate)
    assert (step.id, [check.run for check in step.checks]) == ("check-review", ["make test"])
    assert gate.message == "Is it right?\ntests: {{checks.tests}}"


LISTED = """
id: a
name: A
steps:
  - {id: build, name: Build, description: Build it.}
  - {id: ship, name: Ship, description: Ship it., checkpoint: review}
loops:
  - id: parts
    type: while
    condition: {type: simple, variable: more, operator: "==", value: true}
    steps: [{id: part, name: Part, description: Do a part.}]
    checkpoints:
      - {id: each, name: Each, message: Next?, options: [{id: ok}], checks: [{id: lint, run: make lint}]}
checkpoints:
  - {id: review, name: R, message: Is it right?, options: [{id: ok}], checks: [{id: tests, run: make test}]}
"""


def test_listed_gates_have_their_checks_before_them_wherever_they_are_put(tmp_path: Path) -> None:
    folder = tmp_path / "flow"
    (folder / "activities").mkdir(parents=True)
    (folder / "workflow.yaml").write_text("id: flow\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n")
    (folder / "activities" / "a.yaml").write_text(LISTED)
    found = Library([Source("configured", tmp_path)]).load("flow")
    assert isinstance(found, Loaded), found
    names = [item.id for item in walk(found.workflow.activities[0].items)]
    assert names == ["build", "check-review", "review", "ship", "parts", "part", "check-each", "each"]
    assert [check.run for check in found.workflow.checks()] == ["make test", "make lint"]
    assert "tests: {{checks.tests}}" in found.workflow.activities[0].items[2].message


def test_a_project_gives_named_checks_their_command(tmp_path: Path) -> None:
    workflow = loaded(tmp_path, FILE, "work").workflow
    given = defined(
        workflow, {"lint": CommandCheck("lint", "ruff check ."), "other": CommandCheck("other", "x")}
    )
    assert [check.run for check in given.checks()] == ["pytest -q 'a b'", "ruff check ."]


def test_a_step_is_drawn_with_its_checks(tmp_path: Path) -> None:
    card = drawing_of(loaded(tmp_path, FILE, "work").workflow).cards[0]
    assert "checked by pytest -q 'a b' and 1 more" in card.rows[0].note


def test_a_workflow_with_checks_is_simulated_to_its_end(tmp_path: Path) -> None:
    assert simulate(loaded(tmp_path, GATED, "gated").workflow).sound


def test_scenarios_say_how_checks_end(tmp_path: Path) -> None:
    (tmp_path / "gated.yaml").write_text(GATED)
    (tmp_path / "gated.scenario.yaml").write_text(SCENARIOS)
    ran = run_file(tmp_path / "gated.scenario.yaml", Library([]))
    assert not ran.diagnostics
    assert [outcome.differences for outcome in ran.outcomes] == [(), ()]


def test_a_changed_definition_of_the_project_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "work.yaml").write_text(FILE)
    checks = tmp_path / ".interlock" / "checks.yaml"
    checks.parent.mkdir()
    library = Library([Source("configured", tmp_path / "flows")], tmp_path / "cache", checks=checks)

    def lint() -> str:
        found = library.load("team.work")
        assert isinstance(found, Loaded), found
        assert found.hash == library.hashes()["team.work"]
        return next(check.run for check in found.workflow.checks() if check.id == "lint")

    assert lint() == ""
    checks.write_text("lint: ruff check .\n")
    assert lint() == "ruff check ."
    checks.write_text("lint: {run: make lint, in: app}\n")
    assert lint() == "make lint"
    checks.write_text("lint: 'a \"'\n")
    broken = library.load("team.work")
    assert not isinstance(broken, Loaded)
    assert broken.code == "IL520"


def test_checks_are_proposed_from_what_lies_in_a_project(tmp_path: Path) -> None:
    assert proposed_checks(tmp_path) == {}
    (tmp_path / "Cargo.toml").write_text("[package]\n")
    assert proposed_checks(tmp_path) == {"tests": "cargo test", "build": "cargo build"}
    (tmp_path / "package.json").write_text('{"scripts": {"test": "vitest", "lint": "eslint"}}')
    assert proposed_checks(tmp_path) == {"tests": "npm test", "lint": "npm run lint", "build": "cargo build"}
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n[tool.ruff]\n")
    assert proposed_checks(tmp_path)["tests"] == "pytest -q"
    (tmp_path / "Makefile").write_text("CHECK := 1\ntest:\n\tpytest\n")
    assert proposed_checks(tmp_path)["tests"] == "make test"
    assert read_plain(checks_file({"tests": "make test"})) == {"tests": "make test"}


@pytest.mark.parametrize(
    "name", ["small_task", "feature", "bug_investigation", "refactoring", "test_writing"]
)
def test_bundled_workflows_name_the_tests_of_a_project(tmp_path: Path, name: str) -> None:
    """Without a definition the result is only claimed, and the prompt says so."""
    checks = tmp_path / "checks.yaml"
    library = Library([BUNDLED], compile_cache(), checks=checks)
    for defined_as in ("", "pytest -q"):
        if defined_as:
            checks.write_text(f"tests: {defined_as}\n")
        found = library.load(f"wr.{name}")
        assert isinstance(found, Loaded), found
        plan = Plan(found.workflow)
        (step, *_) = [it for activity in found.workflow.activities for it in activity.steps() if it.checks]
        assert {check.run for check in found.workflow.checks()} == {defined_as}
        said = f"- tests: `{defined_as}`" if defined_as else "what you report is your claim: tests."
        assert said in step_prompt(plan, RunState(), step)
