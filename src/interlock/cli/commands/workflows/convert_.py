"""`interlock convert PATH`: turn step JSON, a TOON folder or Markdown into YAML that people edit."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.convert import ConversionRefused, Converted, convert, write_files
from interlock.cli.screen import CHECK_FAILED, CONFLICT, NOT_FOUND, USAGE, inform, line_of, say, stop


@click.command(epilog="Example: interlock convert review.json --id team.review --to ./flows")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option(
    "--to", "target", metavar="DIR", type=click.Path(path_type=Path), help="The folder to write to."
)
@click.option("--id", "new_id", metavar="ID", help="A namespaced id for a step workflow.")
@click.option("--section", metavar="TITLE", help="Of a Markdown file: only the section of this title.")
def command(path: Path, target: Path | None, new_id: str | None, section: str | None) -> None:
    """Convert a workflow to YAML. Without --to, a single file is printed.

    PATH is step JSON, a folder in TOON, or Markdown: a SKILL.md, a slash command, or an AGENTS.md. Of
    Markdown, numbered headings and lists become steps, and a gate is put where the text asks for approval.
    Read the result, and what is listed as not mapped, before you use it.
    """
    if not path.exists():
        stop(NOT_FOUND, f"There is no file or folder {path}.")
    converted = convert(path, new_id, section)
    if isinstance(converted, ConversionRefused):
        stop(CHECK_FAILED, f"{converted.reason}.")
    if target is None:
        if converted.folder:
            stop(USAGE, "A folder needs --to DIR, the folder to write to.")
        click.echo("".join(converted.files.values()), nl=False)
        _list_notes(converted)
        return
    written = write_files(converted.files, target)
    if isinstance(written, ConversionRefused):
        stop(CONFLICT, f"{written.reason}; nothing was written. Choose another --to.")
    for file in written:
        say(str(file))
    _list_notes(converted)


def _list_notes(converted: Converted) -> None:
    for note in converted.notes:
        inform(line_of(note))
