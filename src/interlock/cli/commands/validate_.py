"""`interlock validate PATH…`: every fault of the files, at its place, with its mend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from interlock.authoring.diagnostics.diagnostic import Severity
from interlock.authoring.filetypes.scenario_file import scenario_files
from interlock.authoring.library import Diagnostic, Library
from interlock.authoring.simulate.scenarios import check_file
from interlock.authoring.sources.sources import Source
from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.exits import CHECK_FAILED, NOT_FOUND
from interlock.cli.given import paths_argument, source_of
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import Tone, line_of, paint, say, stop, talk
from interlock.core.values import Json

SEVERITY_TONES: dict[Severity, Tone] = {"error": "bad", "warning": "warn"}


class Checked(Struct, frozen=True):
    """One path: how many workflows it holds that can be used, and what is wrong."""

    workflows: int
    diagnostics: tuple[Diagnostic, ...]


@click.command(epilog="Example: interlock validate ./flows")
@paths_argument
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@data_options
@json_option
def command(
    paths: tuple[str, ...],
    strict: bool,
    data_dir: str | None,
    project: str | None,
    workflows: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check workflow files, and say where each fault is and how to mend it."""
    checked = list(_checked(paths, config_of(data_dir, project, workflows)))
    diagnostics = list(dict.fromkeys(diagnostic for one in checked for diagnostic in one.diagnostics))
    count = sum(one.workflows for one in checked)
    if not count and not diagnostics:
        stop(NOT_FOUND, f"there is no workflow in {', '.join(paths)}.")
    if as_json:
        print_json({"workflows": count, "problems": [_fields(one) for one in diagnostics]})
    else:
        _show(count, diagnostics)
    if any(strict or one.severity == "error" for one in diagnostics):
        raise click.exceptions.Exit(CHECK_FAILED)


def _checked(paths: Sequence[str], config: Config) -> Iterator[Checked]:
    sources = [source_of(path) for path in paths]
    library = library_of(config)
    known = {entry.id for entry in library.listing().entries}
    for source in sources:
        scenarios = [path for path in scenario_files(source.path) if not path.is_symlink()]
        faults = [_named(one, path) for path in scenarios for one in check_file(path, library)]
        if source.path in scenarios:
            yield Checked(1, tuple(faults))
            continue
        found = Library([source]).listing(known)
        placed = [_placed(one, source) for one in found.diagnostics]
        yield Checked(len(found.entries), (*placed, *faults))


def _named(diagnostic: Diagnostic, path: Path) -> Diagnostic:
    return msgspec.structs.replace(diagnostic, file=path.as_posix())


def _placed(diagnostic: Diagnostic, source: Source) -> Diagnostic:
    """The same problem, its file named from where the reader stands."""
    shown = source.root / diagnostic.file if diagnostic.file else source.path
    return msgspec.structs.replace(diagnostic, file=shown.as_posix())


def _fields(one: Diagnostic) -> Json:
    return {
        "file": one.file,
        "line": one.line,
        "column": one.column,
        "code": one.code,
        "severity": one.severity,
        "message": one.message,
        "fix": one.next_action,
        "workflowId": one.workflow_id,
    }


def _show(count: int, diagnostics: Sequence[Diagnostic]) -> None:
    for one in diagnostics:
        where = f"{one.file}:{one.line}:{one.column}"
        say(
            f"{paint(where, 'strong')} {paint(one.code, SEVERITY_TONES[one.severity])} {line_of(one.message)}"
        )
        if one.next_action:
            say(f"  {paint('fix:', 'accent')} {line_of(one.next_action)}")
    talk(_summary(count, diagnostics))


def _summary(count: int, diagnostics: Sequence[Diagnostic]) -> str:
    errors = sum(one.severity == "error" for one in diagnostics)
    usable = f"{count} workflow{'s' * (count != 1)} usable"
    if not diagnostics:
        return f"{usable}, no faults."
    return f"{usable}, {_counted(errors, 'error')}, {_counted(len(diagnostics) - errors, 'warning')}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
