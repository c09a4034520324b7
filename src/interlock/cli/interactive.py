"""Require a person: a terminal, the PIN if one is set, and a choice typed by hand (rule 27)."""

from __future__ import annotations

import sys

import click

from interlock.cli.screen import CHECK_FAILED, USAGE, inform, line_of, stop
from interlock.ledger.decisions.user_pin import has_pin, pin_matches
from interlock.ledger.ledger import Ledger


def require_terminal(action: str) -> None:
    """End the command unless stdin is a terminal."""
    if not sys.stdin.isatty():
        stop(USAGE, f"{action} needs a terminal, because only a person may do it. Run the command in one.")


def require_pin(ledger: Ledger) -> None:
    """Ask for the PIN of who gives the command, if one is set, and end the command if it is wrong."""
    if not has_pin(ledger.store, ledger.principal):
        return
    require_terminal("The PIN")
    if not pin_matches(ledger.store, ledger.principal, click.prompt("PIN", hide_input=True, err=True)):
        stop(CHECK_FAILED, "That is not the PIN. Nothing was changed.")


def choose(options: list[str]) -> str:
    """Ask for one of the options, by its id, or by its number as it is listed.

    Where an option's own id is a number, a number is that id and never a place in the list.
    """
    has_numbers = any(option.isdecimal() for option in options)
    by_number = {} if has_numbers else {str(number): option for number, option in enumerate(options, 1)}
    listed = (f"{number} = {line_of(option)}" for number, option in by_number.items())
    inform(", ".join(listed if by_number else map(line_of, options)))
    choice = click.prompt(
        "Your choice", type=click.Choice([*options, *by_number]), show_choices=False, err=True
    )
    return by_number.get(str(choice), str(choice))
