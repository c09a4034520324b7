"""`interlock import FILE`: import a session from a bundle, which is checked before anything is stored."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interlock.cli.options import json_option, with_ledger
from interlock.cli.screen import CHECK_FAILED, NOT_FOUND, line_of, print_json, say, stop
from interlock.ledger.ledger import Ledger
from interlock.ledger.transfer.bundle import BundleRefused, read_bundle
from interlock.ledger.transfer.export_import import import_bundle


@click.command(epilog="Example: interlock import session.json")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@json_option
@with_ledger
def command(ledger: Ledger, file: Path, as_json: bool) -> None:
    """Import a session, and continue its runs here. If its id exists, the import gets a new one.

    Its runs keep their terms where those are tighter than yours, and get yours otherwise.
    """
    if str(file) != "-" and not file.exists():
        stop(NOT_FOUND, f"There is no file {file}.")
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    bundle = read_bundle(raw)
    if isinstance(bundle, BundleRefused):
        if as_json:
            print_json({"imported": False, "code": bundle.code, "message": bundle.message})
        stop(CHECK_FAILED, f"{bundle.code}: {bundle.message} {bundle.suggestion}")
    session = import_bundle(ledger, bundle)
    original_id = bundle.session.meta.session_id
    if as_json:
        print_json({"imported": True, "sessionId": session.session_id, "importedFrom": original_id})
        return
    say(f"Imported '{line_of(session.title)}' as {session.session_id}.")
    if session.session_id != original_id:
        say(f"{original_id} exists in this store already; it was not changed.")
