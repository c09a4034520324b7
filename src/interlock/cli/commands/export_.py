"""`interlock export ID`: a session as a bundle to import elsewhere, or as a page to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from interlock.cli.exits import CHECK_FAILED
from interlock.cli.reach import session_argument, session_of, with_ledger
from interlock.cli.screen import stop, talk
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect, mark
from interlock.ledger.transfer.bundle import Bundle
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
@with_ledger
def command(ledger: Ledger, ref: str, form: Format, output: Path | None) -> None:
    """Write a session to a file that travels. It holds no token."""
    session = session_of(ledger, ref)
    bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
    _write(_printed(bundle, form), output)
    if banner := banner_of(bundle.session.meta):
        _mark(ledger, session.session_id)
        stop(CHECK_FAILED, banner)
    if output is not None:
        talk(f"Wrote {output}.")


def _printed(bundle: Bundle, form: Format) -> str:
    match form:
        case "markdown":
            return as_markdown(bundle)
        case "html":
            return as_html(bundle)
        case "json":
            import msgspec

            return msgspec.json.encode(bundle).decode() + "\n"


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(text.encode())
    else:
        output.write_bytes(text.encode())


def _mark(ledger: Ledger, session_id: str) -> None:
    """Whoever finds damage says so, and no run goes on from it (rule 44)."""
    found = inspect(ledger.store, session_id, ledger.pins)
    if found is not None:
        mark(ledger.store, found)
