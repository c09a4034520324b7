"""Making sure that a person decides: a terminal, the PIN if one is set, and a plain question (rule 27)."""

from __future__ import annotations

import sys

import click

from interlock.cli.exits import CHECK_FAILED, USAGE
from interlock.cli.screen import stop
from interlock.ledger.decisions.user_pin import has_pin, pin_matches
from interlock.ledger.ledger import Ledger


def need_terminal(what: str) -> None:
    """End the command unless somebody sits at the keyboard."""
    if not sys.stdin.isatty():
        stop(USAGE, f"{what} needs a terminal, because a person must do it. Run the command in one.")


def need_pin(ledger: Ledger) -> None:
    """Ask for the PIN where one is set."""
    if not has_pin(ledger.store):
        return
    need_terminal("The PIN")
    if not pin_matches(ledger.store, click.prompt("PIN", hide_input=True, err=True)):
        stop(CHECK_FAILED, "That is not the PIN. Nothing was changed.")


def choose(options: list[str]) -> str:
    """Ask for one of the options, by its id or its number."""
    numbers = {str(target): one for target, one in enumerate(options, 1)}
    given = click.prompt("Your choice", type=click.Choice([*options, *numbers]), show_choices=False, err=True)
    return numbers.get(str(given), str(given))
