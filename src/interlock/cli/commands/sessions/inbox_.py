"""`interlock inbox`: the decisions that wait for the user."""

from __future__ import annotations

import click
import msgspec

from interlock.cli.options import json_option, with_ledger
from interlock.cli.screen import (
    WAITS,
    age,
    fit,
    inform,
    line_of,
    paint,
    paragraph,
    print_json,
    say,
    width,
)
from interlock.ledger.decisions.inbox import WaitingQuestion, inbox
from interlock.ledger.ledger import Ledger

INDENT = " " * 10


@click.command(epilog="Example: interlock inbox")
@json_option
@with_ledger
def command(ledger: Ledger, as_json: bool) -> None:
    """List the decisions that wait for you. Exits with 4 if there are any."""
    questions = inbox(ledger)
    if as_json:
        print_json({"questions": msgspec.to_builtins(questions)})
    elif not questions:
        say("No decision is waiting for you.")
    for question in () if as_json else questions:
        show_question(question)
        say()
    if questions:
        if not as_json:
            inform(f"Decide with: interlock decide {questions[0].ref}")
        raise click.exceptions.Exit(WAITS)


def show_question(question: WaitingQuestion) -> None:
    """Print a question with its options."""
    say(paint(fit(f"{question.ref}  {line_of(question.title)}", width()), "strong"))
    say(paint(f"{INDENT}{question.id}, {age(question.since)}", "quiet"))
    say(paragraph(question.message, INDENT))
    widest = max((len(option.id) for option in question.options), default=0)
    for option in question.options:
        description = f": {option.description}" if option.description else ""
        effect = f" ({option.effect})" if option.effect else ""
        under = INDENT + " " * (widest + 2)
        text = paragraph(line_of(option.label + description + effect), under).removeprefix(under)
        say(f"{INDENT}{paint(option.id.ljust(widest), 'accent')}  {text}")
