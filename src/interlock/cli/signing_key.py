"""What commands sign with and what they sign: a key file, a sound log; and the public keys they believe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from interlock.authoring.sources.atomic_write import replace_file
from interlock.cli.references import session_named
from interlock.cli.screen import CHECK_FAILED, inform, stop
from interlock.ledger.evidence.signing import FILE, SigningKey, load_key, public_file
from interlock.ledger.evidence.standalone import Log, RecordUnreadable, public_keys
from interlock.ledger.evidence.statements import stored_log
from interlock.ledger.evidence.verification import verified_session
from interlock.ledger.ledger import Ledger

key_option = click.option(
    "--key",
    "key_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The signing key; default: the one of `interlock signing create`.",
)
out_option = click.option(
    "--out", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
)


def signing_key(ledger: Ledger, key_file: Path | None) -> SigningKey:
    """Return the key that a command signs with."""
    return load_key(key_file or ledger.keys.folder / FILE)


def trusted_keys(ledger: Ledger, files: Sequence[Path]) -> dict[str, bytes]:
    """Return the public keys of these files by their names; without files, this installation's own."""
    own = public_file(ledger.keys.folder / FILE)
    try:
        read = [public_keys(path.read_bytes()) for path in files or ([own] if own.exists() else [])]
    except (RecordUnreadable, ValueError) as error:
        stop(CHECK_FAILED, f"A file of public keys cannot be read: {error}.")
    return {name: key for keys in read for name, key in keys.items()}


def sound_log(ledger: Ledger, ref: str, owner: str) -> Log:
    """Return the log of a session, or end the command if something is wrong with it."""
    session_id = session_named(ledger, ref, owner).session_id
    if wrong := verified_session(ledger, session_id).wrong:
        stop(CHECK_FAILED, f"{session_id} is not signed: {'; '.join(wrong)}. Run `interlock verify {ref}`.")
    return stored_log(ledger.store, session_id)


def write_out(body: bytes, out: Path | None) -> None:
    """Write a result to a file, or to stdout."""
    if out is None:
        sys.stdout.buffer.write(body)
        return
    replace_file(out, body, mode=0o644)
    inform(f"Wrote {out}.")
