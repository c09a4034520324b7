"""`interlock inbox`: the decisions that wait for the user."""

from __future__ import annotations

from collections import Counter

import click
import msgspec

from interlock.cli.commands.sessions.question_text import INDENT, LINES_IN_LIST, show_question
from interlock.cli.options import EVERYBODY, json_option, owner_option, with_ledger
from interlock.cli.screen import WAITS, counted, inform, paint, print_json, say
from interlock.core.principals import LOCAL
from interlock.ledger.decisions.inbox import asking_sessions, waiting_questions
from interlock.ledger.decisions.substance import substance_of
from interlock.ledger.ledger import Ledger

SHOWN = 20


@click.command(epilog="Example: interlock inbox --oldest --limit 5")
@click.option("--limit", type=click.IntRange(1), metavar="N", help=f"How many to show; default: {SHOWN}.")
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="How many to leave out first.")
@click.option("--oldest", is_flag=True, help="Start with what has waited longest.")
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, limit: int | None, offset: int, oldest: bool, owner: str, as_json: bool) -> None:
    """List the decisions that wait for you. Exits with 4 if there are any.

    With --json all of them are listed, unless --limit is given.
    """
    asking = asking_sessions(ledger, None if owner == EVERYBODY else owner)
    asked = list(waiting_questions(ledger.of(owner, LOCAL.name), asking if oldest else asking[::-1]))
    end = offset + limit if limit else None if as_json else offset + SHOWN
    shown = asked[offset:end]
    if as_json:
        print_json(
            {
                "questions": [{"owner": whose, **msgspec.to_builtins(each)} for whose, each in shown],
                "total": len(asked),
            }
        )
    elif not asked:
        say("No decision is waiting for you.")
    waiting = Counter(question.session_id for _, question in asked)
    for whose, question in () if as_json else shown:
        if whose != LOCAL.name:
            say(paint(f"{INDENT}of {whose}", "quiet"))
        of_owner = ledger.of(whose, LOCAL.name)
        position = of_owner.position(question.session_id, question.node)
        substance = substance_of(of_owner, position, question)
        among_others = waiting[question.session_id] > 1
        show_question(question, substance, among_others=among_others, lines=LINES_IN_LIST)
        say()
    if asked:
        if not as_json and shown:
            if len(shown) < len(asked):
                last = offset + len(shown)
                inform(f"Shown: {offset + 1} to {last} of {counted(len(asked), 'question')}.")
                if last < len(asked):
                    inform(f"More: interlock inbox --offset {last}{' --oldest' * oldest}")
            whose, first = shown[0]
            of_owner_option = f" --owner {whose}" if whose != LOCAL.name else ""
            inform(f"Decide with: interlock decide {first.ref}{of_owner_option}")
        raise click.exceptions.Exit(WAITS)
