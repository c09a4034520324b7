"""`interlock init DIR`: create a workflow that validates, with scenarios that pass."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, write_files
from interlock.authoring.found_checks import checks_file, proposed_checks
from interlock.authoring.starters import Starter, started, suggested_id
from interlock.cli.compose import CHECKS_FILE
from interlock.cli.screen import CONFLICT, NOT_FOUND, USAGE, inform, say, stop


@click.command(epilog="Example: interlock init ./flows --id team.release")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--id",
    "workflow_id",
    metavar="ID",
    help="Such as team.release, or release for activities; default: made from DIR.",
)
@click.option(
    "--template",
    type=click.Choice(["steps", "activities"]),
    default="steps",
    show_default=True,
    help="A list of steps, or a folder of activities.",
)
@click.option(
    "--checks", "defines_checks", is_flag=True, help="Instead, propose the checks of the project in DIR."
)
def command(folder: Path, workflow_id: str | None, template: Starter, defines_checks: bool) -> None:
    """Create a workflow in a folder, or define a project's checks."""
    if defines_checks:
        _define_checks(folder)
        return
    files = started(template, workflow_id or suggested_id(folder, template))
    if isinstance(files, ConversionRefused):
        stop(USAGE, f"{files.reason} (--id).")
    written = write_files(files, folder)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written. Choose another --id or folder.")
    for path in written:
        say(str(path))
    inform(f"Next: interlock validate {folder} && interlock test {folder}")


def _define_checks(folder: Path) -> None:
    """Write what workflows mean by `tests`, `lint` and `build` in this project, as far as it can be seen."""
    path, checks = folder / CHECKS_FILE, proposed_checks(folder)
    if path.exists():
        stop(CONFLICT, f"{path} is there already; nothing was written.")
    if not checks:
        stop(NOT_FOUND, f"Nothing in {folder} looks like tests, a linter or a build. Write {path} by hand.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(checks_file(checks), encoding="utf-8")
    say(str(path))
    for name, run in checks.items():
        say(f"  {name}: {run}")
    inform("Look at them, then let the server run them: interlock trust --project DIR")
