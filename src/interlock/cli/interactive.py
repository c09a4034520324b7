"""Require a person: a terminal, the PIN if one is set, and a choice typed by hand (rule 27)."""

from __future__ import annotations

import sys

import click

from interlock.cli.screen import CHECK_FAILED, USAGE, stop
from interlock.ledger.decisions.user_pin import has_pin, pin_matches
from interlock.ledger.ledger import Ledger


def require_terminal(action: str) -> None:
    """End the command unless stdin is a terminal."""
    if not sys.stdin.isatty():
        stop(USAGE, f"{action} needs a terminal, because only a person may do it. Run the command in one.")


def require_pin(ledger: Ledger) -> None:
    """Ask for the PIN if one is set, and end the command if it is wrong."""
    if not has_pin(ledger.store, ledger.owner):
        return
    require_terminal("The PIN")
    if not pin_matches(ledger.store, ledger.owner, click.prompt("PIN", hide_input=True, err=True)):
        stop(CHECK_FAILED, "That is not the PIN. Nothing was changed.")


def choose(options: list[str]) -> str:
    """Ask for one of the options, by its id or its number."""
    by_number = {str(number): option for number, option in enumerate(options, 1)}
    choice = click.prompt(
        "Your choice", type=click.Choice([*options, *by_number]), show_choices=False, err=True
    )
    return by_number.get(str(choice), str(choice))
