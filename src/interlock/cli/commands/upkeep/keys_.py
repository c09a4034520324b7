"""`interlock keys`: the public names of the keys that sign tokens. Secrets are never shown."""

from __future__ import annotations

from typing import Any

import click

from interlock.cli.options import config_of, data_options, json_option
from interlock.cli.screen import CHECK_FAILED, print_json, say, stop
from interlock.ledger.tokens.keyring import Keyring, KeyringFixed, Keys


@click.group()
def command() -> None:
    """Show or rotate the keys that sign tokens."""


@command.command(epilog="Example: interlock keys show")
@json_option
@data_options
def show(as_json: bool, **data: Any) -> None:
    """Show the names of the keys in use."""
    _show(Keys(config_of(**data).folder).keyring(), as_json)


@command.command(epilog="Example: interlock keys rotate")
@json_option
@data_options
def rotate(as_json: bool, **data: Any) -> None:
    """Sign with a new key. Tokens of the previous key stay valid until the next rotation."""
    try:
        keyring = Keys(config_of(**data).folder).rotate()
    except KeyringFixed as error:
        stop(CHECK_FAILED, f"{error}.")
    _show(keyring, as_json)


def _show(keyring: Keyring, as_json: bool) -> None:
    previous = keyring.previous.id if keyring.previous else None
    if as_json:
        print_json({"current": keyring.current.id, "previous": previous})
        return
    say(f"current   {keyring.current.id}")
    say(f"previous  {previous or 'none'}")
