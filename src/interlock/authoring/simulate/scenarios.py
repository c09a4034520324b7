"""Runs scenario files against their workflows: which way each run took, and what none of them touched."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.filetypes.scenario_file import Expected, ScenarioFile, read_scenarios
from interlock.authoring.library import Library, Loaded
from interlock.authoring.simulate.coverage import CoveragePart, Measure, Share, parts_of, shares
from interlock.authoring.simulate.play import Played, play
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.sources import HEADS
from interlock.authoring.text.locations import Location
from interlock.core.definition.program import Plan

UNKNOWN = "IL512"  # the diagnostic of a workflow that no source has


class Outcome(Struct, frozen=True):
    """One scenario: what was expected, what came of it, and where it is written."""

    name: str
    location: Location
    expected: Expected
    played: Played

    @property
    def differences(self) -> tuple[str, ...]:
        """The expectations that were not met."""
        want, got = self.expected, self.played
        found = [
            ("path", want.path is not None and want.path != got.path),
            ("end", want.end != got.end),
            ("blockers", want.blockers is not None and want.blockers != got.blockers),
        ]
        return tuple(name for name, differs in found if differs)

    @property
    def passed(self) -> bool:
        return not self.differences


class FileRun(Struct, frozen=True):
    """One scenario file. With problems, nothing was run."""

    file: Path
    workflow: str
    diagnostics: tuple[Diagnostic, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    coverage: dict[Measure, Share] = {}
    missed: tuple[CoveragePart, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.diagnostics and all(one.passed for one in self.outcomes)


def run_file(path: Path, library: Library) -> FileRun:
    """Run the scenarios of one file; their workflow lies beside it, or in the library."""
    read = read_scenarios(path)
    if not isinstance(read, ScenarioFile):
        return FileRun(path, "", tuple(read))
    loaded = _workflow_of(read, library)
    if isinstance(loaded, Diagnostic):
        return FileRun(path, read.source.workflow, (loaded,))
    if unknown := read.unknown_names(loaded.workflow):
        return FileRun(path, read.source.workflow, tuple(unknown))
    return _played(read, loaded)


def check_file(path: Path, library: Library) -> list[Diagnostic]:
    """Say what is wrong with a scenario file, without running it; faults of the workflow are its own."""
    read = read_scenarios(path)
    if not isinstance(read, ScenarioFile):
        return read
    loaded = _workflow_of(read, library)
    if isinstance(loaded, Diagnostic):
        return [loaded] if loaded.code == UNKNOWN else []
    return read.unknown_names(loaded.workflow)


def _workflow_of(read: ScenarioFile, library: Library) -> Loaded | Diagnostic:
    """The workflow that the scenarios are about, or the reason why there is none, at its place."""
    wanted = read.source.workflow
    found = _beside(read.path, wanted) or library.load(wanted)
    if isinstance(found, Loaded):
        return found
    location = (read.location / "workflow").located()
    message = found.message if found.code == UNKNOWN else f"'{wanted}' cannot be used: {found.message}"
    return replace(found, message=message, file=read.path.name, line=location.line, column=location.column)


def _beside(path: Path, workflow_id: str) -> Loaded | Diagnostic | None:
    """The workflow of the same name beside the file, or anything in its folder that has the id."""
    stem = path.name.split(".scenario.")[0]
    heads = [path.parent / head for head in HEADS]
    twins = [path.with_name(f"{stem}{ending}") for ending in (".yaml", ".yml", ".json")]
    for one in (*twins, path.with_name(stem), *heads, path.parent):
        found = Library([source_at(one)]).load(workflow_id) if one.exists() else None
        if isinstance(found, Loaded) or (found is not None and found.code != UNKNOWN):
            return found
    return None


def _played(read: ScenarioFile, loaded: Loaded) -> FileRun:
    plan, every = Plan(loaded.workflow), parts_of(loaded.workflow)
    outcomes = [
        Outcome(
            scenario.name,
            (read.location / "scenarios" / index).located(),
            scenario.expect,
            play(plan, loaded.hash, scenario),
        )
        for index, scenario in enumerate(read.source.scenarios)
    ]
    seen = {part for one in outcomes for part in one.played.parts}
    missed = tuple(part for part in every if part not in seen)
    return FileRun(read.path, loaded.workflow.id, (), tuple(outcomes), shares(every, seen), missed)
