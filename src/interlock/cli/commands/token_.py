"""`interlock token inspect TOKEN`: what a token leads to. The secret in it is never shown."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, print_json
from interlock.cli.reach import give_up, with_ledger
from interlock.cli.screen import clock, line_of, say
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.inspect import Disclosed, disclose
from interlock.ledger.tokens.tokens import NAMES

LABELS = {
    "sid": "session",
    "run": "run",
    "wf": "workflow",
    "v": "workflow version",
    "status": "status",
    "act": "activity",
    "seq": "visit",
    "node": "node",
    "attempt": "attempt",
    "used": "used",
    "aid": "agent",
    "bcp": "open checkpoint",
    "skill": "last skill",
    "cond": "last condition",
    "psid": "parent session",
    "pwf": "parent workflow",
    "pv": "parent version",
    "pact": "parent activity",
}


@click.group()
def command() -> None:
    """Look into tokens."""


@command.command(epilog="Example: interlock token inspect st.v1.…")
@click.argument("token")
@json_option
@with_ledger
def inspect(ledger: Ledger, token: str, as_json: bool) -> None:
    """Show what a token leads to, without its secret."""
    found = disclose(ledger, token.strip())
    if isinstance(found, LedgerError):
        give_up(found)
    elif as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _show(found)


def _show(found: Disclosed) -> None:
    fields = msgspec.to_builtins(found)
    name = next(text for kind, text in NAMES.items() if kind == found.kind)
    say(f"{name}, version {found.version}")
    for key, label in LABELS.items():
        if key in fields:
            say(f"  {label:<18} {line_of(_word(fields[key]))}")
    if found.ts:
        say(f"  {'session begun':<18} {clock(found.ts)}")


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
