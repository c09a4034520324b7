"""`interlock attest ID`: a signed statement of a session, for people who were not there."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.authoring.sources.atomic_write import replace_file
from interlock.cli.options import optional_session_argument, owner_option, with_ledger
from interlock.cli.screen import CHECK_FAILED, USAGE, inform, stop
from interlock.cli.signing_key import key_option, out_option, signing_key, sound_log, write_out
from interlock.ledger.evidence.standalone import RecordUnreadable
from interlock.ledger.evidence.statements import VERIFIER, attestation, envelope, with_signature
from interlock.ledger.ledger import Ledger


@click.command(epilog="Example: interlock attest hmc3gzdk --out attestation.json")
@optional_session_argument
@key_option
@out_option
@click.option(
    "--add-signature",
    "signed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add a signature to this statement instead, beside those that it has.",
)
@click.option("--verifier", is_flag=True, help="Print the verifier instead: one file of Python.")
@owner_option
@with_ledger
def command(
    ledger: Ledger,
    ref: str | None,
    key_file: Path | None,
    out: Path | None,
    signed: Path | None,
    verifier: bool,
    owner: str,
) -> None:
    """Sign a statement of a session: in-toto in DSSE, Ed25519.

    It lists workflows, decisions with who, channel and strength, checks, reports, gaps, and the head of the
    log. A session with something wrong is not signed.
    """
    if [ref is not None, signed is not None, verifier].count(True) != 1:
        stop(USAGE, "Name a session, or say --add-signature FILE or --verifier.")
    if verifier:
        write_out(VERIFIER.read_bytes(), out)
    elif signed is not None:
        _add_signature(ledger, signed, key_file)
    elif ref is not None:
        key = signing_key(ledger, key_file)
        write_out(envelope(attestation(sound_log(ledger, ref, owner)), key) + b"\n", out)


def _add_signature(ledger: Ledger, signed: Path, key_file: Path | None) -> None:
    key = signing_key(ledger, key_file)
    try:
        body = with_signature(signed.read_bytes(), key)
    except RecordUnreadable as error:
        stop(CHECK_FAILED, f"{signed}: {error}.")
    replace_file(signed, body + b"\n")
    inform(f"Signed {signed} with {key.id}.")
