"""Scenarios: what they expect of a run, how they fail, and what they leave untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.authoring.library import Library
from interlock.authoring.simulate.scenarios import FileRun, Outcome, run_file
from support import paths
from support.authored import write
from support.cli_process import Ran, interlock

GOLDEN = paths.GOLDEN / "authoring"

FLOW = """
id: t.flow
name: Flow
version: 1.0.0
steps:
  - { id: look, title: Look, prompt: "Set `deep` in context." }
  - { id: dig, title: Dig, prompt: Dig., runCondition: { var: deep, equals: true } }
  - type: gate
    id: enough
    message: Enough?
    options:
      - { id: "yes", effect: { setVariable: { more: false } } }
      - { id: "no", effect: { setVariable: { more: true } } }
  - type: loop
    id: again
    title: Again
    loop: { type: while, condition: { var: more, equals: true }, maxIterations: 3 }
    body:
      - { id: redo, title: Redo, prompt: Redo., requireConfirmation: true }
      - id: prove
        title: Prove
        prompt: Prove.
        output: { contractRef: wr.contracts.gate_verdict }
        actions: [{ action: set, target: more }]
"""
VERDICT = {
    "kind": "wr.gate_verdict",
    "verdict": "approved",
    "confidence": "high",
    "rationale": "It was seen to work twice.",
}


def played(folder: Path, *scenarios: dict[str, Any], workflow: str = "t.flow") -> FileRun:
    text = yaml.safe_dump({"workflow": workflow, "scenarios": list(scenarios)}, sort_keys=False)
    write(folder, {"flow.yaml": FLOW, "flow.scenario.yaml": text})
    return run_file(folder / "flow.scenario.yaml", Library([]))


def one(folder: Path, **fields: Any) -> Outcome:
    found = played(folder, {"name": "it", **fields})
    assert found.diagnostics == ()
    return found.outcomes[0]


def test_a_run_takes_the_expected_path(tmp_path: Path) -> None:
    got = one(
        tmp_path,
        answers={"enough": "yes"},
        outputs={"look": {"context": {"deep": True}}},
        expect={"path": ["look", "dig", "enough"], "end": "complete"},
    )
    assert got.passed


@pytest.mark.parametrize(
    ("expect", "differs"),
    [
        ({"path": ["look", "enough"], "end": "complete"}, ()),
        ({"path": ["look", "dig", "enough"], "end": "complete"}, ("path",)),
        ({"path": ["look", "enough"], "end": "blocked"}, ("end",)),
        ({"end": "complete", "blockers": ["MISSING_REQUIRED_OUTPUT"]}, ("blockers",)),
        ({}, ()),
    ],
)
def test_only_what_is_expected_is_compared(tmp_path: Path, expect: Any, differs: tuple[str, ...]) -> None:
    assert one(tmp_path, answers={"enough": "yes"}, expect=expect).differences == differs


def test_a_gate_without_an_answer_blocks_the_run(tmp_path: Path) -> None:
    got = one(tmp_path).played
    assert (got.path, got.end, got.blockers) == (("look", "enough"), "blocked", ("USER_ONLY_DEPENDENCY",))


def test_a_missing_artifact_blocks_the_run_and_says_why(tmp_path: Path) -> None:
    got = one(tmp_path, answers={"enough": "no"}).played
    assert (got.path[-1], got.end, got.blockers) == ("prove", "blocked", ("MISSING_REQUIRED_OUTPUT",))
    assert "wr.gate_verdict" in got.reason


def test_a_list_has_one_entry_a_visit(tmp_path: Path) -> None:
    shown = {"artifacts": [VERDICT]}
    last = {"artifacts": [VERDICT], "context": {"more": False}}
    got = one(tmp_path, answers={"enough": "no"}, outputs={"prove": [shown, last]})
    assert got.played.path == ("look", "enough", "redo", "prove", "redo", "prove")
    assert got.played.end == "complete"


def test_a_list_that_is_too_short_is_reported(tmp_path: Path) -> None:
    got = one(tmp_path, answers={"enough": "no"}, outputs={"prove": [{"artifacts": [VERDICT]}]})
    assert got.played.end == "unscripted"
    assert got.played.reason == "'prove' is visited 2 times, but the list has 1"


def test_a_loop_left_at_its_limit_leaves_a_gap(tmp_path: Path) -> None:
    """Rule 30."""
    got = one(tmp_path, answers={"enough": "no"}, outputs={"prove": {"artifacts": [VERDICT]}})
    assert got.played.path.count("prove") == 3
    assert got.played.end == "complete_with_gaps"


def test_a_confirmation_can_be_answered(tmp_path: Path) -> None:
    """Rule 25."""
    got = one(
        tmp_path,
        answers={"enough": "no", "confirm-redo": ["revise", "proceed"]},
        outputs={"prove": {"artifacts": [VERDICT], "context": {"more": False}}},
    )
    assert got.played.path == ("look", "enough", "redo", "redo", "prove")


def test_a_scenario_may_choose_the_mode(tmp_path: Path) -> None:
    """Rule 27."""
    got = one(tmp_path, mode="never-stop", expect={"end": "complete_with_gaps"})
    assert got.passed


def test_coverage_counts_what_the_runs_touched(tmp_path: Path) -> None:
    found = played(tmp_path, {"name": "short", "answers": {"enough": "yes"}})
    assert {name: (share.touched, share.total) for name, share in found.coverage.items()} == {
        "steps": (1, 4),
        "gates": (1, 1),
        "options": (1, 2),
        "branches": (1, 2),
    }
    assert [str(part) for part in found.missed] == [
        "step dig",
        "option 'no' of enough",
        "loop again",
        "step redo",
        "step prove",
    ]


@pytest.mark.parametrize(
    ("fields", "line", "fix"),
    [
        ({"answers": {"enuogh": "yes"}}, 5, "did you mean 'enough'?"),
        ({"answers": {"enough": "yess"}}, 5, "did you mean 'yes'?"),
        ({"answers": {"enough": ["yes", "noo"]}}, 7, "did you mean 'no'?"),
        ({"outputs": {"dgi": {}}}, 5, "did you mean 'dig'?"),
        ({"outputs": {"xyz": {}}}, 5, "correct the name"),
        ({"expect": {"path": ["look", "digg"]}}, 7, "did you mean 'dig'?"),
    ],
)
def test_names_that_do_not_exist_are_reported_at_their_location(
    tmp_path: Path, fields: dict[str, Any], line: int, fix: str
) -> None:
    found = played(tmp_path, {"name": "it", **fields})
    assert [
        (diagnostic.code, diagnostic.line, diagnostic.next_action) for diagnostic in found.diagnostics
    ] == [("IL601", line, fix)]
    assert not found.passed


def test_an_unknown_workflow_is_reported(tmp_path: Path) -> None:
    found = played(tmp_path, {"name": "it"}, workflow="t.flwo")
    assert [(diagnostic.code, diagnostic.line, diagnostic.column) for diagnostic in found.diagnostics] == [
        ("IL512", 1, 11)
    ]


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"x.scenario.yaml": "workflow: t.flow\nscenarios: 7\n"})
    found = run_file(tmp_path / "x.scenario.yaml", Library([]))
    assert [(diagnostic.code, diagnostic.line) for diagnostic in found.diagnostics] == [("IL102", 2)]


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    folder = tmp_path / "flows"
    played(
        folder,
        {"name": "good", "answers": {"enough": "yes"}, "expect": {"path": ["look", "enough"]}},
        {"name": "wrong way", "answers": {"enough": "yes"}, "expect": {"path": ["look", "dig", "enough"]}},
        {"name": "stuck", "answers": {"enough": "no"}, "expect": {"path": ["look", "enough", "redo"]}},
    )
    return folder


def run(folder: Path, *arguments: str) -> Ran:
    return interlock(folder.parent / "data", "test", *arguments)


def test_the_command_tells_the_difference(flows: Path) -> None:
    ran = run(flows, str(flows), "--missed")
    assert ran.out.replace(str(flows), "flows") == (GOLDEN / "test.txt").read_text("utf-8")
    assert (ran.code, ran.err) == (1, "3 scenarios, 2 failed.\n")


def test_the_command_as_json(flows: Path) -> None:
    found = run(flows, str(flows), "--json").json["files"][0]
    assert [scenario["passed"] for scenario in found["scenarios"]] == [True, False, False]
    assert found["coverage"]["gates"] == {"touched": 1, "total": 1}


@pytest.mark.parametrize(("least", "code"), [("50", 0), ("51", 1)])
def test_too_little_coverage_fails(tmp_path: Path, least: str, code: int) -> None:
    played(
        tmp_path / "flows",
        {"name": "good", "answers": {"enough": "yes"}, "outputs": {"look": {"context": {"deep": True}}}},
        {"name": "short", "answers": {"enough": "yes"}},
    )
    assert (
        run(tmp_path / "flows", str(tmp_path / "flows" / "flow.yaml"), "--min-coverage", least).code == code
    )


def test_a_path_without_scenarios_is_not_found(tmp_path: Path) -> None:
    assert run(tmp_path / "x", str(tmp_path)).code == 3


def test_a_workflow_that_cannot_be_used_is_named_with_its_reason(tmp_path: Path) -> None:
    played(tmp_path, {"name": "it"})
    write(tmp_path, {"flow.yaml": FLOW.replace("equals: true } }", "eqals: true } }")})
    (found,) = run_file(tmp_path / "flow.scenario.yaml", Library([])).diagnostics
    assert found.message == "'t.flow' cannot be used: unknown operator 'eqals'"


def test_validation_looks_at_scenarios_too(tmp_path: Path) -> None:
    folder = tmp_path / "flows"
    played(folder, {"name": "it", "answers": {"enuogh": "yes"}})
    for path in (folder, folder / "flow.yaml", folder / "flow.scenario.yaml"):
        ran = interlock(tmp_path / "data", "validate", str(path))
        assert ran.code == 1
        assert f"{folder}/flow.scenario.yaml:5:5 error IL601 no gate is called 'enuogh'" in ran.out


@pytest.mark.parametrize(
    ("fields", "column", "named", "fix"),
    [
        ({"expct": {"end": "complete"}}, 3, "unknown field 'expct'", "did you mean 'expect'?"),
        ({"expect": {"ends": "complete"}}, 5, "unknown field 'ends'", "did you mean 'end'?"),
        ({"answer": {"enough": "yes"}}, 3, "unknown field 'answer'", "did you mean 'answers'?"),
        ({"outputs": {"look": {"note": "x"}}}, 7, "unknown field 'note'", "did you mean 'notes'?"),
        ({"zzz": 1}, 3, "unknown field 'zzz'", "remove it or correct its name"),
    ],
)
def test_an_unknown_field_of_a_scenario_is_an_error_with_what_was_meant(
    tmp_path: Path, fields: dict[str, Any], column: int, named: str, fix: str
) -> None:
    run = played(tmp_path, {"name": "it", **fields})
    assert (run.passed, run.outcomes) == (False, ())
    (found,) = run.diagnostics
    assert (found.code, found.severity, found.message, found.next_action) == ("IL105", "error", named, fix)
    assert found.column == column
    assert interlock(tmp_path / "data", "validate", str(tmp_path)).code == 1


def test_no_scenario_file_can_ask_for_leniency(tmp_path: Path) -> None:
    write(tmp_path, {"flow.yaml": FLOW})
    text = "$lenient: true\nworkflow: t.flow\nscenarios: [{name: it, expct: {}}]\n"
    write(tmp_path, {"flow.scenario.yaml": text})
    assert [one.code for one in run_file(tmp_path / "flow.scenario.yaml", Library([])).diagnostics] == [
        "IL105"
    ]


def test_a_file_of_answers_for_simulate_is_as_strict(tmp_path: Path) -> None:
    write(tmp_path, {"flow.yaml": FLOW, "answers.yaml": "answer: {enough: 'yes'}\n"})
    ran = interlock(
        *(tmp_path / "data", "simulate", str(tmp_path / "flow.yaml")),
        *("--answers", str(tmp_path / "answers.yaml")),
    )
    assert (ran.code, "did you mean 'answers'" in ran.err) == (2, True)
