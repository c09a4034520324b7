"""`interlock export ID`: write a session as a bundle to import elsewhere, or as a page to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click
import msgspec

from interlock.cli.options import owner_option, session_argument, with_ledger
from interlock.cli.references import session_of
from interlock.cli.screen import CHECK_FAILED, inform, stop
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect, mark
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_html, as_markdown, banner_of

Format = Literal["json", "markdown", "html"]


@click.command(epilog="Example: interlock export hmc3gzdk --output session.json")
@session_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown", "html"]),
    default="json",
    show_default=True,
    help="json can be imported; the others are for reading.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@owner_option
@with_ledger
def command(ledger: Ledger, ref: str, form: Format, output: Path | None, owner: str) -> None:
    """Export a session. Its log and its pinned workflows are in it; tokens and keys are not."""
    session = session_of(ledger, ref, owner)
    bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
    match form:
        case "json":
            text = msgspec.json.encode(bundle) + b"\n"
        case "markdown":
            text = as_markdown(bundle).encode()
        case "html":
            text = as_html(bundle).encode()
    if output is None:
        sys.stdout.buffer.write(text)
    else:
        output.write_bytes(text)
    if banner := banner_of(bundle.session.meta):
        finding = inspect(ledger.store, session.session_id, ledger.pins)
        if finding is not None:
            mark(ledger.store, finding)  # so that no run continues from the damage (rule 44)
        stop(CHECK_FAILED, banner)
    if output is not None:
        inform(f"Wrote {output}.")
