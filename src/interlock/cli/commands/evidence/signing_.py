"""`interlock signing`: the key that signs statements. Its public part is shown, never the secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interlock.cli.options import config_of, data_options
from interlock.cli.screen import inform, say
from interlock.cli.signing_key import key_option
from interlock.ledger.evidence.signing import FILE, create_key, public_file, public_pem, rotate_key


@click.group()
def command() -> None:
    """Make, show or rotate the key that signs statements.

    Tokens have keys of their own: see `interlock keys`.
    """


@command.command(epilog="Example: interlock signing create")
@key_option
@data_options
def create(key_file: Path | None, **data: Any) -> None:
    """Make a key, where there is none."""
    path = _path(key_file, data)
    say(create_key(path).id)
    inform(f"Its public key is in {public_file(path)}: give it to those who check.")


@command.command(epilog="Example: interlock signing show > signer.pub.pem")
@key_option
@data_options
def show(key_file: Path | None, **data: Any) -> None:
    """Print the public keys, the newest first; earlier ones check what they have signed."""
    say(public_pem(_path(key_file, data)).decode().rstrip("\n"))


@command.command(epilog="Example: interlock signing rotate")
@key_option
@data_options
def rotate(key_file: Path | None, **data: Any) -> None:
    """Replace the key. What the earlier one has signed stays valid by its public key."""
    path = _path(key_file, data)
    say(rotate_key(path).id)
    inform(f"Give {public_file(path)} to those who check. A statement that the new key should sign too:")
    inform("  interlock attest --add-signature FILE")


def _path(key_file: Path | None, data: dict[str, Any]) -> Path:
    return key_file or config_of(**data).folder / "keys" / FILE
