"""`interlock validate PATH…`: report every error in workflow files, with its location and a fix."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from os.path import realpath  # goes through a circle of links, where resolve raises
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from interlock.authoring.diagnostics.codes import CODES
from interlock.authoring.diagnostics.diagnostic import Severity, diagnostic_json
from interlock.authoring.diagnostics.sarif import sarif_of
from interlock.authoring.filetypes.scenario_file import scenario_files
from interlock.authoring.library import Diagnostic, Library
from interlock.authoring.simulate.scenarios import check_file
from interlock.authoring.sources.sources import Source, units
from interlock.authoring.sources.stamps import fingerprint
from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.options import json_option, paths_argument, with_config
from interlock.cli.references import source_of
from interlock.cli.screen import (
    CHECK_FAILED,
    NOT_FOUND,
    OK,
    USAGE,
    Tone,
    counted,
    inform,
    line_of,
    paint,
    print_json,
    say,
    stop,
)

PAUSE_SECONDS = 0.3
SEVERITY_TONES: dict[Severity, Tone] = {"error": "bad", "warning": "warn", "info": "quiet"}


class Checked(Struct, frozen=True):
    """One path: how many usable workflows it holds, and the diagnostics."""

    workflows: int
    diagnostics: tuple[Diagnostic, ...]


@click.command(epilog="Example: interlock validate ./flows")
@paths_argument
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "sarif"]),
    default="text",
    show_default=True,
    help="sarif: for code scanning tools.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@json_option
@with_config
def command(
    config: Config,
    paths: tuple[str, ...],
    strict: bool,
    form: str,
    watch: bool,
    as_json: bool,
) -> None:
    """Check workflow files. Each error is shown with its location and a fix."""
    if not watch:
        raise click.exceptions.Exit(_report(paths, config, strict, form, as_json))
    if as_json or form != "text":
        stop(USAGE, "--watch prints text. Leave out --json and --format.")
    with suppress(KeyboardInterrupt):
        _watch(paths, lambda: _report(paths, config, strict, form, as_json))


def _watch(paths: Sequence[str], check: Callable[[], object]) -> None:
    """Check, and check again after each change of a file."""
    roots = [source_of(path).path for path in paths]
    while True:
        checked = _state_of(roots)
        with suppress(click.exceptions.Exit):  # a file is gone, as while an editor replaces it; that was said
            check()
        inform("Watching for changes. Press Ctrl-C to stop.")
        while _state_of(roots) == checked:
            time.sleep(PAUSE_SECONDS)
        say("")


def _state_of(roots: Sequence[Path]) -> str:
    """Return one word for the state of all files below the paths; a file also has its scenarios beside it."""
    folders = [root if root.is_dir() else root.parent for root in roots]
    return fingerprint([*roots, *(path for folder in folders for path in folder.rglob("*"))])


def _report(paths: Sequence[str], config: Config, strict: bool, form: str, as_json: bool) -> int:
    """Check the paths once, print what was found, and return the exit code."""
    results = list(_checked(paths, config))
    diagnostics = list(dict.fromkeys(diagnostic for result in results for diagnostic in result.diagnostics))
    usable = sum(result.workflows for result in results)
    if not usable and not diagnostics:
        stop(NOT_FOUND, f"There is no workflow in {', '.join(paths)}.")
    if form == "sarif":
        print_json(sarif_of(diagnostics))
    elif as_json:
        print_json({"workflows": usable, "problems": list(map(diagnostic_json, diagnostics))})
    else:
        for diagnostic in diagnostics:
            location = paint(f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}", "strong")
            severity = paint(f"{diagnostic.severity} {diagnostic.code}", SEVERITY_TONES[diagnostic.severity])
            say(f"{location} {severity} {line_of(diagnostic.message)}")
            if diagnostic.next_action:
                say(f"  {paint('fix:', 'accent')} {line_of(diagnostic.next_action)}")
        errors = sum(diagnostic.severity == "error" for diagnostic in diagnostics)
        warnings = sum(diagnostic.severity == "warning" for diagnostic in diagnostics)
        counts = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        counts = counts if errors or warnings else "no errors"
        inform(f"{counted(usable, 'workflow')} usable, {counts}.")
    failing = ("error", "warning") if strict else ("error",)
    return CHECK_FAILED if any(diagnostic.severity in failing for diagnostic in diagnostics) else OK


def _checked(paths: Sequence[str], config: Config) -> Iterator[Checked]:
    sources = [source_of(path) for path in paths]
    library = library_of(config)
    known = {entry.id for entry in library.listing().entries}
    for source in sources:
        scenarios = [path for path in scenario_files(source.path) if not path.is_symlink()]
        in_scenarios = [
            msgspec.structs.replace(diagnostic, file=path.as_posix())
            for path in scenarios
            for diagnostic in check_file(path, library)
        ]
        if source.path in scenarios:
            yield Checked(1, tuple(in_scenarios))
            continue
        listing = Library([source]).listing(known)
        # Name files by their path from the working directory instead of their path in the source.
        in_workflows = [
            msgspec.structs.replace(
                diagnostic,
                file=(source.root / diagnostic.file if diagnostic.file else source.path).as_posix(),
            )
            for diagnostic in listing.diagnostics
        ]
        shadowing = _shadowing(source, library)
        yield Checked(len(listing.entries), (*in_workflows, *shadowing, *in_scenarios))


def _shadowing(source: Source, library: Library) -> Iterator[Diagnostic]:
    """Report files here that hide a workflow of another source, or that one hides."""
    inside, home = {realpath(unit.path) for unit in units(source)}, source.path.resolve()
    is_known = any(home.is_relative_to(known.path.resolve()) for known in library.sources)
    listing = (library if is_known else Library([*library.sources, source])).listing()
    for shadowed in listing.shadowed:
        both = Path(shadowed.path), Path(shadowed.by_path)
        path = next((path for path in both if realpath(path) in inside), None)
        if path is not None and realpath(both[0]) != realpath(both[1]):
            kind = CODES["IL407"]
            yield Diagnostic(
                kind.code,
                shadowed.message,
                kind.next_action,
                path.as_posix(),
                1,
                1,
                kind.severity,
                shadowed.workflow_id,
            )
