"""`interlock init DIR`: a new workflow that already validates and has scenarios that pass."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, write_files
from interlock.authoring.starters import Starter, started, suggested_id
from interlock.cli.exits import CONFLICT, USAGE
from interlock.cli.screen import say, stop, talk


@click.command(epilog="Example: interlock init ./flows --id team.release")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--id", "workflow_id", metavar="ID", help="Such as team.release; by default the folder's name.")
@click.option("--template", type=click.Choice(["steps", "activities"]), default="steps", help="Which form.")
def command(folder: Path, workflow_id: str | None, template: Starter) -> None:
    """Begin a new workflow in a folder."""
    files = started(template, workflow_id or suggested_id(folder, template))
    if isinstance(files, ConversionRefused):
        stop(USAGE, f"{files.reason} (--id).")
    written = write_files(files, folder)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written.")
    for path in written:
        say(str(path))
    talk(f"Next: interlock validate {folder}, then interlock test {folder}.")
