"""`interlock inbox`: the decisions that wait for the user, and each of them as a terminal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import click
import msgspec

from interlock.cli.options import EVERYBODY, json_option, owner_option, with_ledger
from interlock.cli.screen import (
    WAITS,
    Tone,
    age,
    clock,
    counted,
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
from interlock.ledger.decisions.inbox import (
    QuestionOption,
    WaitingQuestion,
    asking_sessions,
    waiting_questions,
)
from interlock.ledger.decisions.substance import (
    BAR,
    MORE,
    REPORT,
    Substance,
    report_lines,
    substance_lines,
    substance_of,
)
from interlock.ledger.ledger import Ledger

SHOWN = 20
INDENT = " " * 10
LINES_IN_LIST = 6
LINES_ALONE = 60
TONES: Mapping[str, Tone] = {"gap": "warn", "passed": "good", "failed": "bad", "claimed": "warn"}


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
        listed = [{"owner": whose, **msgspec.to_builtins(question)} for whose, question in shown]
        print_json({"questions": listed, "total": len(asked)})
    elif asked:
        waiting = Counter(question.session_id for _, question in asked)
        for whose, question in shown:
            _show_waiting(
                ledger.of(whose, LOCAL.name), question, among_others=waiting[question.session_id] > 1
            )
        _say_how_to_go_on(shown, len(asked), offset, oldest)
    else:
        say("No decision is waiting for you.")
    if asked:
        raise click.exceptions.Exit(WAITS)


def _show_waiting(ledger: Ledger, question: WaitingQuestion, *, among_others: bool) -> None:
    """Print a question of the list with its substance, and whose it is if it is not the local user's."""
    if ledger.owner != LOCAL.name:
        say(paint(f"{INDENT}of {ledger.owner}", "quiet"))
    position = ledger.position(question.session_id, question.node)
    substance = substance_of(ledger, position, question)
    show_question(question, substance, among_others=among_others, lines=LINES_IN_LIST)
    say()


def _say_how_to_go_on(
    shown: Sequence[tuple[str, WaitingQuestion]], total: int, offset: int, oldest: bool
) -> None:
    """Say which part of the list this is, and how to decide the first question of it."""
    if not shown:
        return
    last = offset + len(shown)
    if len(shown) < total:
        inform(f"Shown: {offset + 1} to {last} of {counted(total, 'question')}.")
    if last < total:
        inform(f"More: interlock inbox --offset {last}{' --oldest' * oldest}")
    whose, first = shown[0]
    of_owner = f" --owner {whose}" if whose != LOCAL.name else ""
    inform(f"Decide with: interlock decide {first.ref}{of_owner}")


def show_question(
    question: WaitingQuestion, substance: Substance, *, among_others: bool = False, lines: int = LINES_ALONE
) -> None:
    """Print a question with its substance; among others of its session also where exactly it is asked."""
    say(paint(fit(f"{question.ref}  {line_of(question.title)}", width()), "strong"))
    where = f", {question.run_id}, node {question.node}" if among_others else ""
    say(paint(f"{INDENT}{question.id}{where}, {age(question.since)}", "quiet"))
    if question.key != question.id:  # in a loop the name says which round and item is meant
        say(paragraph(line_of(question.name), INDENT))
    say(paragraph(question.message, INDENT))
    widest = max((len(option.id) for option in question.options), default=0)
    for option in question.options:
        under = INDENT + " " * (widest + 2)
        text = paragraph(option_text(option, substance), under).removeprefix(under)
        say(f"{INDENT}{paint(option.id.ljust(widest), 'accent')}  {text}")
    if question.decide is not None:
        say(paragraph(line_of(question.decide.text), INDENT))
    if question.decide is not None and question.decide.until:
        then = f"; then {question.decide.then}" if question.decide.then else ""
        say(f"{INDENT}Until {clock(question.decide.until)}{then}.")
    elif question.default:
        say(f"{INDENT}Without an answer: {question.default}, from {clock(question.default_at)} on.")
    _show_report(substance, lines)


def option_text(option: QuestionOption, substance: Substance) -> str:
    """Say what an option is, what it does, and what comes then."""
    description = f": {option.description}" if option.description else ""
    effect = f" ({option.effect})" if option.effect else ""
    pending = next((each.pending for each in substance.follows if each.option == option.id), None)
    if pending is None:
        following = ""
    else:
        following = f"; then: {pending.title}" if pending.title else "; then the run is complete"
    return line_of(f"{option.label}{description}{effect}{following}")


def _show_report(substance: Substance, most: int) -> None:
    lines, reported, under = substance_lines(substance), report_lines(substance), f"{INDENT}{BAR}"
    for line in lines:
        say(paint(paragraph(line.text, INDENT), TONES[line.kind]))
    wrapped = [paragraph(line, under) or under.rstrip() for line in reported]
    report = [row for line in wrapped for row in line.splitlines()]
    if not report:
        return
    say(paint(f"{INDENT}{REPORT}", "quiet"))
    for row in report[:most]:
        say(row)
    if len(report) > most or substance.shortened:
        say(paint(f"{INDENT}{MORE}", "quiet"))
