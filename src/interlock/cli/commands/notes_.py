"""`interlock notes ID`: what was noted along the way, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from interlock.cli.options import json_option, print_json
from interlock.cli.reach import give_up, session_argument, session_of, with_ledger
from interlock.cli.screen import line_of, markdown
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import Notes, notes_of


@click.command(epilog="Example: interlock notes hmc3gzdk > handover.md")
@session_argument
@click.option(
    "--node", type=int, metavar="N", help="The branch that ends here, instead of the preferred tip."
)
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, node: int | None, as_json: bool) -> None:
    """Print the notes of a branch as Markdown."""
    found = notes_of(ledger, session_of(ledger, ref), node)
    if isinstance(found, LedgerError):
        give_up(found)
    elif as_json:
        print_json(msgspec.to_builtins(found))
    else:
        markdown("\n\n".join(_parts(found)))


def _parts(found: Notes) -> Iterator[str]:
    yield f"# {line_of(found.title)}"
    if found.workflow_id:
        yield f"Workflow {found.workflow_id}, session {found.session_id}."
    yield from found.session
    for entry in found.entries:
        yield f"## {entry.step}"
        yield entry.notes
    if not found.entries and not found.session:
        yield "Nothing was noted yet."
