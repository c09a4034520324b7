"""`interlock inbox`: the decisions that wait for a person."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.exits import WAITS
from interlock.cli.options import json_option, print_json
from interlock.cli.reach import with_ledger
from interlock.cli.screen import age, fit, line_of, paint, paragraph, say, talk, width
from interlock.ledger.decisions.inbox import Question, inbox
from interlock.ledger.ledger import Ledger


@click.command(epilog="Example: interlock inbox")
@json_option
@with_ledger
def command(ledger: Ledger, as_json: bool) -> None:
    """List the decisions that wait for you. Exits with 4 if there are any."""
    found = inbox(ledger)
    if as_json:
        print_json({"questions": msgspec.to_builtins(found)})
    elif not found:
        say("Nothing waits for you.")
    for question in () if as_json else found:
        show(question)
        say()
    if found:
        if not as_json:
            talk(f"Decide with: interlock decide {found[0].ref}")
        raise click.exceptions.Exit(WAITS)


def show(question: Question) -> None:
    """Print a question with its options."""
    head = f"{question.ref}  {line_of(question.title)}"
    say(paint(fit(head, width()), "strong"))
    say(paint(f"          {question.id}, {age(question.since)}", "quiet"))
    say(paragraph(question.message, "          "))
    widest = max((len(option.id) for option in question.options), default=0)
    for option in question.options:
        about = f": {option.description}" if option.description else ""
        lead = f"          {paint(option.id.ljust(widest), 'accent')}  "
        say(lead + fit(line_of(option.label + about), _room(12 + widest)))


def _room(taken: int) -> int | None:
    limit = width()
    return None if limit is None else limit - taken
