"""`interlock test PATH…`: play the scenarios of workflows through the engine, and measure their coverage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click

from interlock.authoring.diagnostics.diagnostic import diagnostic_json
from interlock.authoring.filetypes.scenario_file import scenario_files
from interlock.authoring.simulate.scenarios import FileRun, Outcome, run_file
from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.options import json_option, with_config
from interlock.cli.screen import (
    CHECK_FAILED,
    NOT_FOUND,
    counted,
    inform,
    line_of,
    paint,
    print_json,
    say,
    stop,
)
from interlock.core.values import Json

ARROW = " → "


@click.command(epilog="Example: interlock test ./flows --min-coverage 90")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--min-coverage", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail below this coverage."
)
@click.option("--missed", is_flag=True, help="List what no scenario covers.")
@json_option
@with_config
def command(
    config: Config,
    paths: tuple[str, ...],
    min_coverage: float | None,
    missed: bool,
    as_json: bool,
) -> None:
    """Play scenario files through the engine, without an agent."""
    library = library_of(config)
    files: list[Path] = []
    for path in paths:
        if not Path(path).expanduser().exists():
            stop(NOT_FOUND, f"There is no file or folder {path}.")
        scenarios = scenario_files(Path(path).expanduser())
        if not scenarios:
            example = "`interlock init DIR` writes an example"
            stop(NOT_FOUND, f"There is no scenario file (NAME.scenario.yaml) in {path}; {example}.")
        files += scenarios
    runs = [run_file(file, library) for file in dict.fromkeys(files)]
    if as_json:
        print_json({"files": [_as_json(run) for run in runs]})
    else:
        for run in runs:
            _show(run, missed)
        outcomes = [outcome for run in runs for outcome in run.outcomes]
        failed = sum(not outcome.passed for outcome in outcomes)
        unusable = sum(bool(run.diagnostics) for run in runs)
        remark = f", {counted(unusable, 'file')} could not be used" if unusable else ""
        inform(f"{counted(len(outcomes), 'scenario')}, {failed} failed{remark}.")
    low = False
    for run in runs:
        coverage = min((share.percent for share in run.coverage.values()), default=0.0)
        if min_coverage is not None and coverage < min_coverage:
            inform(f"{run.file}: coverage {coverage:.0f}% is below the minimum of {min_coverage:g}%.")
            low = True
    if low or not all(run.passed for run in runs):
        raise click.exceptions.Exit(CHECK_FAILED)


def _show(run: FileRun, missed: bool) -> None:
    for diagnostic in run.diagnostics:
        say(f"{run.file}:{diagnostic.line}:{diagnostic.column} {diagnostic.code} {diagnostic.message}")
        say(f"  fix: {diagnostic.next_action}")
    if run.diagnostics:
        return
    passed = sum(outcome.passed for outcome in run.outcomes)
    say(f"{paint(run.workflow, 'strong')}  {passed} of {len(run.outcomes)} scenarios pass")
    for outcome in run.outcomes:
        for line in () if outcome.passed else _difference(run.file, outcome):
            say(line)
    shares = (f"{name} {share.touched}/{share.total}" for name, share in run.coverage.items())
    say(f"  {paint('coverage', 'quiet')}  {', '.join(shares)}")
    if missed:
        for part in run.missed:
            say(f"  {paint('missed', 'warn')}    {part}")


def _difference(file: Path, outcome: Outcome) -> Iterator[str]:
    location = f"{file}:{outcome.location.line}:{outcome.location.column}"
    yield f"  {paint('FAIL', 'bad')} {location} {line_of(outcome.name)}"
    expected, played = outcome.expected, outcome.played
    if "path" in outcome.differences and expected.path is not None:
        pairs = zip(expected.path, played.path, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        yield f"    as far as  {ARROW.join(expected.path[:same]) or '(nothing)'}"
        yield f"    expected   {ARROW.join(expected.path[same:]) or '(nothing more)'}"
        yield f"    actual     {ARROW.join(played.path[same:]) or '(nothing more)'}"
    if "end" in outcome.differences:
        yield f"    end        expected {expected.end}, actual {played.end}"
    if "blockers" in outcome.differences:
        wanted, actual = (", ".join(codes) or "none" for codes in (expected.blockers or (), played.blockers))
        yield f"    blockers   expected {wanted}, actual {actual}"
    if played.reason and played.end != expected.end:
        yield f"    because    {line_of(played.reason)}"


def _as_json(run: FileRun) -> Json:
    return {
        "file": run.file.as_posix(),
        "workflow": run.workflow,
        "passed": run.passed,
        "problems": list(map(diagnostic_json, run.diagnostics)),
        "scenarios": [
            {
                "name": outcome.name,
                "line": outcome.location.line,
                "passed": outcome.passed,
                "differences": list(outcome.differences),
                "path": list(outcome.played.path),
                "end": outcome.played.end,
                "blockers": list(outcome.played.blockers),
                "reason": outcome.played.reason,
            }
            for outcome in run.outcomes
        ],
        "coverage": {
            name: {"touched": share.touched, "total": share.total} for name, share in run.coverage.items()
        },
        "missed": [str(part) for part in run.missed],
    }
