"""`interlock keys`: the keys that sign tokens, by their public names. No secret is ever shown."""

from __future__ import annotations

from typing import Any

import click

from interlock.cli.exits import CHECK_FAILED
from interlock.cli.options import config_of, data_options, json_option, print_json
from interlock.cli.screen import say, stop
from interlock.ledger.tokens.keyring import Keyring, KeyringFixed, Keys


@click.group()
def command() -> None:
    """Show or rotate the keys that sign tokens."""


@command.command(epilog="Example: interlock keys show")
@data_options
@json_option
def show(as_json: bool, **where: Any) -> None:
    """Show the names of the keys in use."""
    _print(_keys(where).keyring(), as_json)


@command.command(epilog="Example: interlock keys rotate")
@data_options
@json_option
def rotate(as_json: bool, **where: Any) -> None:
    """Sign with a new key; tokens of the one before stay valid until the next rotation."""
    try:
        keyring = _keys(where).rotate()
    except KeyringFixed as error:
        stop(CHECK_FAILED, f"{error}.")
    _print(keyring, as_json)


def _keys(where: dict[str, Any]) -> Keys:
    return Keys(config_of(**where).folder)


def _print(keyring: Keyring, as_json: bool) -> None:
    previous = keyring.previous.id if keyring.previous else None
    if as_json:
        print_json({"current": keyring.current.id, "previous": previous})
        return
    say(f"current   {keyring.current.id}")
    say(f"previous  {previous or 'none'}")
