"""`interlock signing`: the key that signs statements. Its public part is shown, never the secret."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.cli.config import Config
from interlock.cli.options import with_config
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
@with_config
def create(config: Config, key_file: Path | None) -> None:
    """Make a key, where there is none."""
    path = _path(config, key_file)
    say(create_key(path).id)
    inform(f"Its public key is in {public_file(path)}: give it to those who check.")


@command.command(epilog="Example: interlock signing show > signer.pub.pem")
@key_option
@with_config
def show(config: Config, key_file: Path | None) -> None:
    """Print the public keys, the newest first; earlier ones check what they have signed."""
    say(public_pem(_path(config, key_file)).decode().rstrip("\n"))


@command.command(epilog="Example: interlock signing rotate")
@key_option
@with_config
def rotate(config: Config, key_file: Path | None) -> None:
    """Replace the key. What the earlier one has signed stays valid by its public key."""
    path = _path(config, key_file)
    say(rotate_key(path).id)
    inform(f"Give {public_file(path)} to those who check. A statement that the new key should sign too:")
    inform("  interlock attest --add-signature FILE")


def _path(config: Config, key_file: Path | None) -> Path:
    return key_file or config.folder / "keys" / FILE
