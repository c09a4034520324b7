"""`interlock notes ID`: the notes of a branch, as Markdown."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import line_of, markdown, print_json
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import notes_of


@click.command(epilog="Example: interlock notes hmc3gzdk > handover.md")
@session_argument
@click.option(
    "--node", type=int, metavar="N", help="The branch that ends at this node; default: the preferred tip."
)
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, node: int | None, owner: str, as_json: bool) -> None:
    """Print the notes of a branch as Markdown."""
    notes = notes_of(*owned_session(ledger, ref, owner), node)
    if as_json:
        print_json(msgspec.to_builtins(notes))
        return
    paragraphs = [f"# {line_of(notes.title)}"]
    if notes.workflow_id:
        paragraphs.append(f"Workflow {notes.workflow_id}, session {notes.session_id}.")
    paragraphs += notes.session
    for entry in notes.entries:
        paragraphs += (f"## {entry.step}", entry.notes) if entry.step else (entry.notes,)
    if notes.gap_list:
        paragraphs += ("## Gaps", "\n".join(f"- {line_of(gap.text)}" for gap in notes.gap_list))
    if not notes.entries and not notes.session:
        paragraphs.append("No notes yet.")
    markdown("\n\n".join(paragraphs))
