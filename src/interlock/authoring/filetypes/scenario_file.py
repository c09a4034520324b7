"""Scenario files: the agent's and the person's part in a run, and the way it must take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.filetypes.step_file import Camel, Word
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.core.definition.program import confirmation
from interlock.core.definition.workflow import Gate, Workflow
from interlock.core.engine.gates import entrance_gate
from interlock.core.run.preferences import Mode
from interlock.core.values import Json

ENDINGS = (".scenario.yaml", ".scenario.yml", ".scenario.json")

End = Literal["complete", "complete_with_gaps", "blocked"]


class OutputGiven(Camel, frozen=True):
    """What the agent hands in with a step."""

    notes: str = ""
    artifacts: tuple[Mapping[str, Json], ...] = ()
    context: Mapping[str, Json] = {}


class Expected(Camel, frozen=True):
    """What must come of it; what is left out is not looked at."""

    end: End = "complete"
    path: tuple[str, ...] | None = None
    blockers: tuple[str, ...] | None = None


class Scenario(Camel, frozen=True):
    """One run. A list among the answers or outputs has one entry a visit."""

    name: Word = "scenario"
    mode: Mode = "guided"
    context: Mapping[str, Json] = {}
    answers: Mapping[str, str | tuple[str, ...]] = {}
    outputs: Mapping[str, OutputGiven | tuple[OutputGiven, ...]] = {}
    inputs: Mapping[str, Json] = {}
    expect: Expected = Expected()


class ScenarioSource(Camel, frozen=True):
    workflow: Word
    scenarios: Annotated[tuple[Scenario, ...], Meta(min_length=1)]


class ScenarioFile(Struct, frozen=True):
    """A file that was read, and still knows its places."""

    path: Path
    source: ScenarioSource
    location: SourceLocation

    def faults(self, workflow: Workflow) -> list[Diagnostic]:
        """Report names that the workflow does not have."""
        report = Report()
        gates, steps = _gates(workflow), {one.id for each in workflow.activities for one in each.steps()}
        for index, scenario in enumerate(self.source.scenarios):
            _check_names(scenario, self.location / "scenarios" / index, gates, steps, report)
        return list(report.diagnostics())


def scenario_files(path: Path) -> list[Path]:
    """The scenario files that a path stands for: itself, its folder's, or those beside its workflow."""
    if path.is_dir():
        inside = [one for ending in ENDINGS for one in path.rglob(f"*{ending}")]
        return sorted(inside) or _beside(path.parent, path.name)
    return [path] if path.name.endswith(ENDINGS) else _beside(path.parent, path.stem)


def _beside(folder: Path, stem: str) -> list[Path]:
    return [one for ending in ENDINGS if (one := folder / f"{stem}{ending}").is_file()]


def read_scenarios(path: Path) -> ScenarioFile | list[Diagnostic]:
    """Read a scenario file, or report why it cannot be used."""
    report = Report()
    parsed = SourceReader(path.parent, report, {}).parsed(path)
    source = read_as(ScenarioSource, parsed.value, SourceLocation(parsed), report) if parsed else None
    if source is None or parsed is None:
        return list(report.diagnostics())
    return ScenarioFile(path, source, SourceLocation(parsed))


def read_answers(path: Path) -> Scenario | list[Diagnostic]:
    """Read one script: the first of a scenario file, or an object with context, answers and outputs."""
    report = Report()
    parsed = SourceReader(path.parent, report, {}).parsed(path)
    if parsed is not None and (script := _script(parsed, report)) is not None:
        return script
    return list(report.diagnostics())


def _script(parsed: Parsed, report: Report) -> Scenario | None:
    if isinstance(parsed.value, Mapping) and "scenarios" in parsed.value:
        source = read_as(ScenarioSource, parsed.value, SourceLocation(parsed), report)
        return source.scenarios[0] if source else None
    return read_as(Scenario, parsed.value, SourceLocation(parsed), report)


def _gates(workflow: Workflow) -> dict[str, Gate]:
    """Every gate by its id: declared ones, confirmations, and the choice of an activity."""
    found = {gate.id: gate for activity in workflow.activities for gate in activity.gates()}
    for activity in workflow.activities:
        confirmed = [confirmation(step) for step in activity.steps() if step.confirm is not False]
        found |= {gate.id: gate for gate in confirmed}
    if workflow.initial is None:
        gate = entrance_gate(workflow)
        found[gate.id] = gate
    return found


def _check_names(
    scenario: Scenario, at: SourceLocation, gates: Mapping[str, Gate], steps: set[str], report: Report
) -> None:
    for name, answer in scenario.answers.items():
        if (gate := gates.get(name)) is None:
            report.add(
                "IL601", f"no gate is called '{name}'", (at / "answers").key(name), did_you_mean(name, gates)
            )
            continue
        _check_options(gate, answer, at / "answers" / name, report)
    for name in scenario.outputs:
        if name not in steps:
            report.add(
                "IL601", f"no step is called '{name}'", (at / "outputs").key(name), did_you_mean(name, steps)
            )
    for index, name in enumerate(scenario.expect.path or ()):
        if name not in steps and name not in gates:
            fix = did_you_mean(name, [*steps, *gates])
            report.add("IL601", f"no step or gate is called '{name}'", at / "expect" / "path" / index, fix)


def _check_options(gate: Gate, answer: str | tuple[str, ...], at: SourceLocation, report: Report) -> None:
    for location, option in _each(answer, at):
        if gate.option(option) is None:
            fix = did_you_mean(option, [one.id for one in gate.options])
            report.add("IL601", f"'{gate.id}' has no option '{option}'", location, fix)


def _each(answer: str | tuple[str, ...], at: SourceLocation) -> Iterator[tuple[SourceLocation, str]]:
    if isinstance(answer, str):
        yield at, answer
        return
    yield from ((at / index, option) for index, option in enumerate(answer))
