"""`interlock test PATH…`: play the scenarios beside the workflows, and measure what they touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from interlock.authoring.filetypes.scenario_file import scenario_files
from interlock.authoring.simulate.scenarios import FileRun, Outcome, run_file
from interlock.cli.compose import library_of
from interlock.cli.exits import CHECK_FAILED, NOT_FOUND
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import line_of, paint, say, stop, talk
from interlock.core.values import Json

ARROW = " → "


@click.command(epilog="Example: interlock test ./flows --min-coverage 90")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option("--min-coverage", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail below this.")
@click.option("--missed", is_flag=True, help="List what no scenario touches.")
@data_options
@json_option
def command(
    paths: tuple[str, ...],
    min_coverage: float | None,
    missed: bool,
    data_dir: str | None,
    project: str | None,
    workflows: tuple[str, ...],
    as_json: bool,
) -> None:
    """Play scenario files through the engine, without an agent."""
    library = library_of(config_of(data_dir, project, workflows))
    tested = [run_file(file, library) for file in _files(paths)]
    if as_json:
        print_json({"files": [_as_json(one) for one in tested]})
    else:
        for one in tested:
            _show(one, missed)
        talk(_summary(tested))
    short = [one for one in tested if min_coverage is not None and _least(one) < min_coverage]
    for one in short:
        talk(f"{one.file}: {_least(one):.0f}% is below the {min_coverage:g}% that was asked for.")
    if short or not all(one.passed for one in tested):
        raise click.exceptions.Exit(CHECK_FAILED)


def _files(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        files = scenario_files(Path(path).expanduser()) if Path(path).exists() else []
        if not files:
            stop(NOT_FOUND, f"there is no scenario file (*.scenario.yaml) at {path}.")
        found += files
    return list(dict.fromkeys(found))


def _least(one: FileRun) -> float:
    return min((share.percent for share in one.coverage.values()), default=0.0)


def _show(tested: FileRun, missed: bool) -> None:
    for diagnostic in tested.diagnostics:
        say(f"{tested.file}:{diagnostic.line}:{diagnostic.column} {diagnostic.code} {diagnostic.message}")
        say(f"  fix: {diagnostic.next_action}")
    if tested.diagnostics:
        return
    good = sum(one.passed for one in tested.outcomes)
    say(f"{paint(tested.workflow, 'strong')}  {good} of {len(tested.outcomes)} scenarios pass")
    for one in tested.outcomes:
        for line in () if one.passed else _difference(tested.file, one):
            say(line)
    shares = (f"{name} {share.touched}/{share.total}" for name, share in tested.coverage.items())
    say(f"  {paint('coverage', 'quiet')}  {', '.join(shares)}")
    if missed:
        for part in tested.missed:
            say(f"  {paint('missed', 'warn')}    {part}")


def _difference(file: Path, one: Outcome) -> Iterator[str]:
    yield f"  {paint('FAIL', 'bad')} {file}:{one.location.line}:{one.location.column} {line_of(one.name)}"
    expected, played = one.expected, one.played
    if "path" in one.differences and expected.path is not None:
        same = _common(expected.path, played.path)
        yield f"    as far as  {ARROW.join(expected.path[:same]) or '(nothing)'}"
        yield f"    expected   {ARROW.join(expected.path[same:]) or '(nothing more)'}"
        yield f"    actual     {ARROW.join(played.path[same:]) or '(nothing more)'}"
    if "end" in one.differences:
        yield f"    end        expected {expected.end}, actual {played.end}"
    if "blockers" in one.differences:
        yield f"    blockers   expected {_list(expected.blockers or ())}, actual {_list(played.blockers)}"
    if played.reason and played.end != expected.end:
        yield f"    because    {line_of(played.reason)}"


def _list(words: Sequence[str]) -> str:
    return ", ".join(words) or "none"


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((target for target, (one, other) in pairs if one != other), min(len(left), len(right)))


def _summary(tested: Sequence[FileRun]) -> str:
    outcomes = [outcome for one in tested for outcome in one.outcomes]
    failed = sum(not one.passed for one in outcomes)
    unread = sum(bool(one.diagnostics) for one in tested)
    files = f", {unread} file{'s' * (unread != 1)} could not be used" if unread else ""
    return f"{len(outcomes)} scenario{'s' * (len(outcomes) != 1)}, {failed} failed{files}."


def _as_json(one: FileRun) -> Json:
    return {
        "file": one.file.as_posix(),
        "workflow": one.workflow,
        "passed": one.passed,
        "problems": [
            {"code": each.code, "message": each.message, "line": each.line, "column": each.column}
            for each in one.diagnostics
        ],
        "scenarios": [_outcome(outcome) for outcome in one.outcomes],
        "coverage": {
            name: {"touched": share.touched, "total": share.total} for name, share in one.coverage.items()
        },
        "missed": [str(part) for part in one.missed],
    }


def _outcome(one: Outcome) -> Json:
    played = one.played
    return {
        "name": one.name,
        "line": one.location.line,
        "passed": one.passed,
        "differences": list(one.differences),
        "path": list(played.path),
        "end": played.end,
        "blockers": list(played.blockers),
        "reason": played.reason,
    }
