"""`interlock convert PATH`: turn step JSON or a TOON folder into YAML that people edit."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, convert, write_files
from interlock.cli.screen import CHECK_FAILED, CONFLICT, NOT_FOUND, USAGE, inform, say, stop


@click.command(epilog="Example: interlock convert review.json --id team.review --to ./flows")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option(
    "--to", "target", metavar="DIR", type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option("--id", "new_id", metavar="ID", help="A namespaced id for a step workflow.")
def command(path: Path, target: Path | None, new_id: str | None) -> None:
    """Convert a workflow to YAML. Without --to, a single file is printed."""
    if not path.exists():
        stop(NOT_FOUND, f"There is no file or folder {path}.")
    converted = convert(path, new_id)
    if isinstance(converted, ConversionRefused):
        stop(CHECK_FAILED, f"{converted.reason}.")
    if target is None:
        if converted.folder:
            stop(USAGE, "A folder needs --to DIR, the folder to write to.")
        click.echo("".join(converted.files.values()), nl=False)
        return
    written = write_files(converted.files, target)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written. Choose another --to.")
    for file in written:
        say(str(file))
    for note in converted.notes:
        inform(note)
