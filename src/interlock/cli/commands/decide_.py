"""`interlock decide ID OPTION`: a person answers what a run waits for."""

from __future__ import annotations

import click

from interlock.cli.commands.inbox_ import show
from interlock.cli.exits import CHECK_FAILED, CONFLICT, USAGE
from interlock.cli.person import choose, need_pin, need_terminal
from interlock.cli.reach import give_up, session_argument, session_of, with_ledger
from interlock.cli.screen import line_of, say, stop, talk
from interlock.ledger.decisions.inbox import Question, decide_question, questions
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger


@click.command(epilog='Example: interlock decide hmc3gzdk accept --note "seen on staging"')
@session_argument
@click.argument("option", required=False)
@click.option("--gate", metavar="GATE", help="Which question, where several wait.")
@click.option("--note", default="", metavar="TEXT", help="A remark to keep with the decision.")
@with_ledger
def command(ledger: Ledger, ref: str, option: str | None, gate: str | None, note: str) -> None:
    """Decide what a run waits for. Needs a terminal, and the PIN if one is set."""
    need_terminal("A decision")
    question = _question(ledger, ref, gate)
    show(question)
    if option is not None and question.options and option not in {one.id for one in question.options}:
        valid = ", ".join(one.id for one in question.options)
        stop(USAGE, f"“{option}” is no option of {question.id}. Options: {valid}.")
    chosen = option if option is not None else _answer(question)
    if option is not None and not click.confirm(f"Decide “{option}”?", default=True, err=True):
        stop(CHECK_FAILED, "Nothing was decided.")
    need_pin(ledger)
    error = decide_question(ledger, question, chosen, note)
    if error is not None:
        give_up(error)
    say(f"{question.id}: {line_of(chosen)}")
    talk("Recorded. The agent goes on with its next call.")


def _question(ledger: Ledger, ref: str, gate: str | None) -> Question:
    session = session_of(ledger, ref)
    position = ledger.position(session.session_id)
    if isinstance(position, LedgerError) and position.code == "SESSION_NOT_HEALTHY":
        give_up(position)
    found = [question for question in questions(ledger, session) if gate in (None, question.id)]
    if not found:
        stop(CONFLICT, f"Nothing waits for a decision in session {ref}. See `interlock inbox`.")
    if len(found) > 1:
        names = ", ".join(one.id for one in found)
        stop(USAGE, f"Several questions wait in session {ref}: {names}. Name one with --gate.")
    return found[0]


def _answer(question: Question) -> str:
    if question.options:
        return choose([one.id for one in question.options])
    return str(click.prompt("Your answer", err=True))
