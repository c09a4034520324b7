"""`interlock inbox`: the decisions that wait for the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click
import msgspec

from interlock.cli.options import EVERYBODY, json_option, owner_option, with_ledger
from interlock.cli.screen import (
    WAITS,
    age,
    clock,
    fit,
    inform,
    line_of,
    paint,
    paragraph,
    print_json,
    say,
    width,
)
from interlock.core.principals import LOCAL
from interlock.ledger.decisions.inbox import WaitingQuestion, everyones_inbox, inbox
from interlock.ledger.ledger import Ledger

INDENT = " " * 10


@click.command(epilog="Example: interlock inbox")
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, owner: str, as_json: bool) -> None:
    """List the decisions that wait for you. Exits with 4 if there are any."""
    asked = list(_asked(ledger, owner))
    if as_json:
        print_json({"questions": [{"owner": whose, **msgspec.to_builtins(each)} for whose, each in asked]})
    elif not asked:
        say("No decision is waiting for you.")
    waiting = Counter(question.session_id for _, question in asked)
    for whose, question in () if as_json else asked:
        if whose != LOCAL.name:
            say(paint(f"{INDENT}of {whose}", "quiet"))
        show_question(question, among_others=waiting[question.session_id] > 1)
        say()
    if asked:
        if not as_json:
            whose, first = asked[0]
            of_owner = f" --owner {whose}" if whose != LOCAL.name else ""
            inform(f"Decide with: interlock decide {first.ref}{of_owner}")
        raise click.exceptions.Exit(WAITS)


def _asked(ledger: Ledger, owner: str) -> Iterator[tuple[str, WaitingQuestion]]:
    """Yield what waits in the sessions of an owner, or of everybody, with the owner's name."""
    if owner == EVERYBODY:
        yield from everyones_inbox(ledger)
    else:
        yield from ((owner, question) for question in inbox(ledger.of(owner, LOCAL.name)))


def show_question(question: WaitingQuestion, *, among_others: bool = False) -> None:
    """Print a question with its options; among others of its session also where exactly it is asked."""
    say(paint(fit(f"{question.ref}  {line_of(question.title)}", width()), "strong"))
    where = f", {question.run_id}, node {question.node}" if among_others else ""
    say(paint(f"{INDENT}{question.id}{where}, {age(question.since)}", "quiet"))
    if "::" in question.key:  # in a loop the name says which round and item is meant
        say(paragraph(line_of(question.name), INDENT))
    say(paragraph(question.message, INDENT))
    widest = max((len(option.id) for option in question.options), default=0)
    for option in question.options:
        description = f": {option.description}" if option.description else ""
        effect = f" ({option.effect})" if option.effect else ""
        under = INDENT + " " * (widest + 2)
        text = paragraph(line_of(option.label + description + effect), under).removeprefix(under)
        say(f"{INDENT}{paint(option.id.ljust(widest), 'accent')}  {text}")
    if question.decide is not None:
        say(paragraph(line_of(question.decide.text), INDENT))
    if question.decide is not None and question.decide.until:
        then = f"; then {question.decide.then}" if question.decide.then else ""
        say(f"{INDENT}Until {clock(question.decide.until)}{then}.")
    elif question.default:
        say(f"{INDENT}Without an answer: {question.default}, from {clock(question.default_at)} on.")
