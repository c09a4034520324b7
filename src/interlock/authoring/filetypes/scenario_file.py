"""Scenario files: what the agent and the user do in a run, and how the run must go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.filetypes.field_types import Camel, Duration, NonEmpty
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.program import entrance_gate, gates_of
from interlock.core.definition.workflow import Gate, Workflow
from interlock.core.run.preferences import Mode
from interlock.core.values import Json

ENDINGS = (".scenario.yaml", ".scenario.yml", ".scenario.json")

End = Literal["complete", "complete_with_gaps", "blocked"]


class OutputGiven(Camel, frozen=True):
    """What the agent hands in with a step."""

    notes: str = ""
    """The agent's notes."""
    artifacts: tuple[Mapping[str, Json], ...] = ()
    """The agent's artifacts, each with its `kind`."""
    context: Mapping[str, Json] = {}
    """Variables that the agent sets with the step."""


class Expected(Camel, frozen=True):
    """What must come of a run."""

    end: End = "complete"
    """How the run ends."""
    path: tuple[str, ...] | None = None
    """Ids of the steps and gates in the order of their visits, the one that blocked included; not compared if
    absent."""
    blockers: tuple[str, ...] | None = None
    """Codes of the blockers at the end; not compared if absent."""


class Polled(Camel, frozen=True):
    """An answer of one of the people who decide a gate, or time that passes before the next one."""

    by: str = ""
    """Who answers; `starter` is who started the run."""
    groups: tuple[NonEmpty, ...] = ()
    """The groups that this person belongs to."""
    option: str = ""
    """The option that is chosen."""
    after: Duration | None = None
    """Instead of an answer: how much time passes, as in `within`."""


class Scenario(Camel, frozen=True):
    """One run: what is handed in and answered, and what is expected."""

    name: NonEmpty = "scenario"
    """What the scenario shows."""
    mode: Mode = "guided"
    """How far the run goes by itself."""
    context: Mapping[str, Json] = {}
    """Variables that the run starts with."""
    answers: Mapping[str, str | tuple[str, ...]] = {}
    """Options by gate id; a list has one entry per visit. `confirm-<step>` answers a confirmation with
    `proceed` or `revise`, `choose-activity` the first question of independent activities."""
    approvals: Mapping[str, tuple[Polled, ...]] = {}
    """What people answer to a gate with `decide`, by gate id and in order. Without it the answer of `answers`
    is one that its approvers agree on."""
    outputs: Mapping[str, OutputGiven | tuple[OutputGiven, ...]] = {}
    """What the agent hands in, by step id; a list has one entry per visit."""
    inputs: Mapping[str, Json] = {}
    """Values for variables that a loop or an exit asks for."""
    checks: Mapping[str, int] = {}
    """Exit statuses by check id; nothing is run, and a check that is not named passes."""
    expect: Expected = Expected()
    """What must come of the run."""


class ScenarioSource(Camel, frozen=True):
    """A scenario file: runs of one workflow."""

    workflow: NonEmpty
    """The id of the workflow: one beside the file, else one of the library."""
    scenarios: Annotated[tuple[Scenario, ...], Meta(min_length=1)]
    """Runs to play, each from the start."""


class ScenarioFile(Struct, frozen=True):
    """A scenario file that was read, with its source locations."""

    path: Path
    source: ScenarioSource
    location: SourceLocation

    def unknown_names(self, workflow: Workflow) -> list[Diagnostic]:
        """Report steps, gates and options that the workflow does not have."""
        report, gates = Report(), _gates(workflow)
        checks = {check.id for check in workflow.checks()}
        steps = {step.id for activity in workflow.activities for step in activity.steps()}
        for index, scenario in enumerate(self.source.scenarios):
            at = self.location / "scenarios" / index
            _check_names(scenario, at, gates, steps, report)
            for name in scenario.checks.keys() - checks:
                text, fix = f"no check is called '{name}'", did_you_mean(name, checks)
                report.add("IL601", text, (at / "checks").key(name), fix)
        return list(report.diagnostics())


def scenario_files(path: Path) -> list[Path]:
    """Return the scenario files of a path: itself, those in its folder, or those beside its workflow."""
    if path.is_dir() and (inside := [file for ending in ENDINGS for file in path.rglob(f"*{ending}")]):
        return sorted(inside)
    if not path.is_dir() and path.name.endswith(ENDINGS):
        return [path]
    beside = path if path.name not in ("", "..") else path.resolve()
    stem = beside.name if beside.is_dir() else beside.stem
    return [file for ending in ENDINGS if (file := beside.parent / f"{stem}{ending}").is_file()]


def read_scenarios(path: Path) -> ScenarioFile | list[Diagnostic]:
    """Read a scenario file, or report why it cannot be used."""
    report = Report()
    parsed = SourceReader(path.parent, report, {}).parsed(path)
    source = read_as(ScenarioSource, parsed.value, SourceLocation(parsed), report) if parsed else None
    if source is None or parsed is None or report.diagnostics():
        return list(report.diagnostics())
    return ScenarioFile(path, source, SourceLocation(parsed))


def read_answers(path: Path) -> Scenario | list[Diagnostic]:
    """Read one scenario: the first of a scenario file, or a file that holds nothing but one."""
    report = Report()
    parsed = SourceReader(path.parent, report, {}).parsed(path)
    scenario: Scenario | None = None
    if parsed is not None and isinstance(parsed.value, Mapping) and "scenarios" in parsed.value:
        source = read_as(ScenarioSource, parsed.value, SourceLocation(parsed), report)
        scenario = source.scenarios[0] if source else None
    elif parsed is not None:
        scenario = read_as(Scenario, parsed.value, SourceLocation(parsed), report)
    return list(report.diagnostics()) or scenario or []


def _gates(workflow: Workflow) -> dict[str, Gate]:
    """Return every gate by its id: declared ones, confirmations, and the choice of an activity."""
    gates = [gate for activity in workflow.activities for gate in gates_of(activity)]
    if workflow.initial is None:
        gates.append(entrance_gate(workflow))
    return {gate.id: gate for gate in gates}


def _check_names(
    scenario: Scenario, at: SourceLocation, gates: Mapping[str, Gate], steps: set[str], report: Report
) -> None:
    for name, answer in scenario.answers.items():
        answers = at / "answers"
        if (gate := gates.get(name)) is None:
            fix = did_you_mean(name, gates)
            report.add("IL601", f"no gate is called '{name}'", answers.key(name), fix)
        elif isinstance(answer, str):
            _check_option(gate, answer, answers / name, report)
        else:
            for index, option in enumerate(answer):
                _check_option(gate, option, answers / name / index, report)
    for name, polled in scenario.approvals.items():
        gate, approvals = gates.get(name), at / "approvals"
        if gate is None or gate.decide is None:
            report.add("IL601", f"no gate with decide is called '{name}'", approvals.key(name))
            continue
        for index, entry in enumerate(polled):
            if entry.after is None:
                _check_option(gate, entry.option, approvals / name / index, report)
    for name in scenario.outputs:
        if name not in steps:
            fix = did_you_mean(name, steps)
            report.add("IL601", f"no step is called '{name}'", (at / "outputs").key(name), fix)
    for index, name in enumerate(scenario.expect.path or ()):
        if name not in steps and name not in gates:
            fix = did_you_mean(name, [*steps, *gates])
            report.add("IL601", f"no step or gate is called '{name}'", at / "expect" / "path" / index, fix)


def _check_option(gate: Gate, option_id: str, at: SourceLocation, report: Report) -> None:
    if gate.option(option_id) is None:
        fix = did_you_mean(option_id, [option.id for option in gate.options])
        report.add("IL601", f"'{gate.id}' has no option '{option_id}'", at, fix)
