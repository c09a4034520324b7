"""Runs scenario files against their workflows: the path of each run, and what none of them touched."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic
from interlock.authoring.filetypes.scenario_file import Expected, ScenarioFile, read_scenarios
from interlock.authoring.library import Library, Loaded
from interlock.authoring.simulate.coverage import CoveragePart, Measure, Share, coverage_parts, shares
from interlock.authoring.simulate.play import Played, play
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.sources import HEADS
from interlock.authoring.text.locations import Location
from interlock.core.definition.program import Plan


class Outcome(Struct, frozen=True):
    """One scenario: what was expected, what happened, and where it is written."""

    name: str
    location: Location
    expected: Expected
    played: Played

    @property
    def differences(self) -> tuple[str, ...]:
        """The names of the expectations that were not met."""
        expected, played = self.expected, self.played
        differs = {
            "path": expected.path is not None and expected.path != played.path,
            "end": expected.end != played.end,
            "blockers": expected.blockers is not None and expected.blockers != played.blockers,
        }
        return tuple(name for name in differs if differs[name])

    @property
    def passed(self) -> bool:
        return not self.differences


class FileRun(Struct, frozen=True):
    """One scenario file; if it has diagnostics, nothing was run."""

    file: Path
    workflow: str
    diagnostics: tuple[Diagnostic, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    coverage: dict[Measure, Share] = {}
    missed: tuple[CoveragePart, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.diagnostics and all(outcome.passed for outcome in self.outcomes)


def run_file(path: Path, library: Library) -> FileRun:
    """Run the scenarios of one file; their workflow is beside it or in the library."""
    read = read_scenarios(path)
    if not isinstance(read, ScenarioFile):
        return FileRun(path, "", tuple(read))
    loaded = _workflow_of(read, library)
    if isinstance(loaded, Diagnostic):
        return FileRun(path, read.source.workflow, (loaded,))
    if unknown := read.unknown_names(loaded.workflow):
        return FileRun(path, read.source.workflow, tuple(unknown))
    plan, every = Plan(loaded.workflow), coverage_parts(loaded.workflow)
    outcomes = [
        Outcome(
            scenario.name,
            (read.location / "scenarios" / index).located(),
            scenario.expect,
            play(plan, loaded.hash, scenario),
        )
        for index, scenario in enumerate(read.source.scenarios)
    ]
    seen = {part for outcome in outcomes for part in outcome.played.parts}
    missed = tuple(part for part in every if part not in seen)
    return FileRun(path, loaded.workflow.id, (), tuple(outcomes), shares(every, seen), missed)


def check_file(path: Path, library: Library) -> list[Diagnostic]:
    """Check a scenario file without running it; diagnostics of the workflow are not repeated."""
    read = read_scenarios(path)
    if not isinstance(read, ScenarioFile):
        return read
    loaded = _workflow_of(read, library)
    if isinstance(loaded, Diagnostic):
        return [loaded] if loaded.code == ABSENT else []
    return read.unknown_names(loaded.workflow)


def _workflow_of(read: ScenarioFile, library: Library) -> Loaded | Diagnostic:
    """Load the workflow of the scenarios, or report at its name why that is impossible.

    It is the file with the same name, any other in the folder that has the id, or one of the library.
    """
    path, workflow_id = read.path, read.source.workflow
    stem = path.name.split(".scenario.")[0]
    twins = [path.with_name(f"{stem}{ending}") for ending in (".yaml", ".yml", ".json")]
    for candidate in (*twins, path.with_name(stem), *(path.parent / head for head in HEADS), path.parent):
        if not candidate.exists():
            continue
        loaded = Library([source_at(candidate)]).load(workflow_id)
        if isinstance(loaded, Loaded) or loaded.code != ABSENT:
            break
    else:
        loaded = library.load(workflow_id)
    if isinstance(loaded, Loaded):
        return loaded
    location, message = (read.location / "workflow").located(), loaded.message
    if loaded.code != ABSENT:
        message = f"'{workflow_id}' cannot be used: {message}"
    return replace(loaded, message=message, file=read.path.name, line=location.line, column=location.column)
