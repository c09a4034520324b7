"""`interlock token inspect TOKEN`: show what a token points to. Its secret is never shown."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, with_ledger
from interlock.cli.screen import clock, line_of, print_json, say
from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.inspect import disclose
from interlock.ledger.tokens.tokens import NAMES

HANDLE_NAME = "a checkpoint handle (ses.v1.…), which answers one question and is not a session token"
LABELS = {
    "checkpoint": "checkpoint",
    "answer": "answer",
    "sid": "session",
    "run": "run",
    "wf": "workflow",
    "v": "workflow version",
    "status": "status",
    "act": "activity",
    "node": "node",  # the seq of the documents
    "attempt": "attempt",
    "used": "used",
    "aid": "agent",
    "bcp": "open checkpoint",
    "skill": "last skill",
    "cond": "last condition",
    "pcp": "pending checkpoints",
    "psid": "parent session",
    "pwf": "parent workflow",
    "pv": "parent version",
    "pact": "parent activity",
}


@click.group()
def command() -> None:
    """Inspect tokens."""


@command.command(epilog="Example: interlock token inspect st.v1.…")
@click.argument("token")
@json_option
@with_ledger
def inspect(ledger: Ledger, token: str, as_json: bool) -> None:
    """Show what a token points to, without its secret."""
    disclosed = disclose(ledger, token.strip())
    fields = msgspec.to_builtins(disclosed)
    if as_json:
        print_json(fields)
        return
    name = next(text for kind, text in NAMES.items() if kind == disclosed.kind)
    say(f"{HANDLE_NAME if disclosed.checkpoint else name}, version {disclosed.version}")
    for key, label in LABELS.items():
        if key in fields:
            value = fields[key]
            text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
            say(f"  {label:<18} {line_of(text)}")
    if disclosed.ts:
        say(f"  {'session started':<18} {clock(disclosed.ts)}")
