"""A question as a terminal shows it: its words, what each option does, and the agent's report before it."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.cli.screen import Tone, age, clock, fit, line_of, paint, paragraph, say, width
from interlock.ledger.decisions.inbox import QuestionOption, WaitingQuestion
from interlock.ledger.decisions.substance import BAR, MORE, REPORT, Substance, report_lines, substance_lines

INDENT = " " * 10
LINES_IN_LIST = 6
LINES_ALONE = 60
TONES: Mapping[str, Tone] = {"gap": "warn", "passed": "good", "failed": "bad", "claimed": "warn"}


def show_question(
    question: WaitingQuestion, substance: Substance, *, among_others: bool = False, lines: int = LINES_ALONE
) -> None:
    """Print a question with its substance; among others of its session also where exactly it is asked."""
    say(paint(fit(f"{question.ref}  {line_of(question.title)}", width()), "strong"))
    where = f", {question.run_id}, node {question.node}" if among_others else ""
    say(paint(f"{INDENT}{question.id}{where}, {age(question.since)}", "quiet"))
    if "::" in question.key:  # in a loop the name says which round and item is meant
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
    for line in substance_lines(substance):
        say(paint(paragraph(line.text, INDENT), TONES[line.kind]))
    under = f"{INDENT}{BAR}"
    wrapped = (paragraph(line, under) or under.rstrip() for line in report_lines(substance))
    report = [row for line in wrapped for row in line.splitlines()]
    if not report:
        return
    say(paint(f"{INDENT}{REPORT}", "quiet"))
    for row in report[:most]:
        say(row)
    if len(report) > most or substance.shortened:
        say(paint(f"{INDENT}{MORE}", "quiet"))
