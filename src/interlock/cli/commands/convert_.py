"""`interlock convert PATH`: step JSON or a TOON folder, in the form that people edit."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, convert, write_files
from interlock.cli.exits import CHECK_FAILED, CONFLICT, NOT_FOUND, USAGE
from interlock.cli.screen import say, stop, talk


@click.command(epilog="Example: interlock convert review.json --id team.review --to ./flows")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--to", "target", metavar="DIR", type=click.Path(path_type=Path), help="Where to write.")
@click.option("--id", "new_id", metavar="ID", help="A namespaced id for a step workflow.")
def command(path: Path, target: Path | None, new_id: str | None) -> None:
    """Convert a workflow to YAML; a single file is printed unless --to names a folder."""
    if not path.exists():
        stop(NOT_FOUND, f"there is no file or folder {path}.")
    made = convert(path, new_id)
    if isinstance(made, ConversionRefused):
        stop(CHECK_FAILED, f"{made.reason}.")
    if target is None:
        if made.folder:
            stop(USAGE, "a folder needs --to DIR, the folder to write.")
        click.echo("".join(made.files.values()), nl=False)
        return
    written = write_files(made.files, target)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written.")
    for one in written:
        say(str(one))
    for note in made.notes:
        talk(note)
