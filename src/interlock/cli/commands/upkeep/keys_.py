"""`interlock keys`: rotate the keys that sign tokens. Their public names are shown, never the secrets."""

from __future__ import annotations

from typing import Any

import click

from interlock.cli.config import Config
from interlock.cli.options import json_option, with_config
from interlock.cli.screen import CHECK_FAILED, CONFLICT, inform, print_json, say, stop
from interlock.ledger.tokens.keyring import Keyring, KeyringFixed, Keys, RotationOutOfOrder


class KeyCommands(click.Group):
    """The commands, which all say the same of a keyring that they cannot change."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyringFixed as error:
            stop(CHECK_FAILED, f"{error}.")
        except RotationOutOfOrder as error:
            stop(CONFLICT, f"{error}.")


@click.group(cls=KeyCommands)
def command() -> None:
    """Show or rotate the keys that sign tokens.

    A rotation is prepare, activate, retire, without a restart: servers that read the same file see each step
    at their next call.
    """


@command.command(epilog="Example: interlock keys show")
@json_option
@with_config
def show(config: Config, as_json: bool) -> None:
    """Show the names of the keys in use; make the keyring where there is none."""
    _show(Keys(config.folder).keyring(), as_json)


@command.command(epilog="Example: interlock keys prepare")
@json_option
@with_config
def prepare(config: Config, as_json: bool) -> None:
    """Add a new key that servers know and do not sign with yet."""
    _show(Keys(config.folder).prepare(), as_json)
    inform("Next, once every server has the new file: interlock keys activate")


@command.command(epilog="Example: interlock keys activate")
@json_option
@with_config
def activate(config: Config, as_json: bool) -> None:
    """Sign with the prepared key. Tokens of the previous one stay valid until it is retired."""
    _show(Keys(config.folder).activate(), as_json)
    inform("Next, when running work has had time for new tokens: interlock keys retire")


@command.command(epilog="Example: interlock keys retire")
@json_option
@with_config
def retire(config: Config, as_json: bool) -> None:
    """Refuse the tokens of the previous key. No session is lost: to resume one gives new tokens."""
    _show(Keys(config.folder).retire(), as_json)


def _show(keyring: Keyring, as_json: bool) -> None:
    keys = {"current": keyring.current, "prepared": keyring.prepared, "previous": keyring.previous}
    if as_json:
        print_json({name: key.id if key else None for name, key in keys.items()})
        return
    for name, key in keys.items():
        say(f"{name:<8}  {key.id if key else 'none'}")
