"""`interlock init DIR`: create a workflow that validates, with scenarios that pass."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, write_files
from interlock.authoring.starters import Starter, started, suggested_id
from interlock.cli.screen import CONFLICT, USAGE, inform, say, stop


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
def command(folder: Path, workflow_id: str | None, template: Starter) -> None:
    """Create a new workflow in a folder."""
    files = started(template, workflow_id or suggested_id(folder, template))
    if isinstance(files, ConversionRefused):
        stop(USAGE, f"{files.reason} (--id).")
    written = write_files(files, folder)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written. Choose another --id or folder.")
    for path in written:
        say(str(path))
    inform(f"Next: interlock validate {folder} && interlock test {folder}")
