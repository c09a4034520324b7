"""`interlock decide ID OPTION`: the user answers the gate that a run waits at."""

from __future__ import annotations

import click

from interlock.cli.commands.sessions.inbox_ import show_question
from interlock.cli.interactive import choose, require_pin, require_terminal
from interlock.cli.options import session_argument, with_ledger
from interlock.cli.references import session_of, stop_with
from interlock.cli.screen import CHECK_FAILED, CONFLICT, USAGE, inform, line_of, say, stop
from interlock.ledger.decisions.inbox import decide_question, questions
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger


@click.command(epilog='Example: interlock decide hmc3gzdk accept --note "seen on staging"')
@session_argument
@click.argument("option", required=False)
@click.option("--gate", metavar="GATE", help="Which gate, if several wait.")
@click.option("--note", default="", metavar="TEXT", help="A remark to record with the decision.")
@with_ledger
def command(ledger: Ledger, ref: str, option: str | None, gate: str | None, note: str) -> None:
    """Answer the gate that a run waits at. Needs a terminal, and the PIN if one is set."""
    require_terminal("A decision")
    session = session_of(ledger, ref)
    position = ledger.position(session.session_id)
    if isinstance(position, LedgerError) and position.code == "SESSION_NOT_HEALTHY":
        stop_with(position)
    waiting = [question for question in questions(ledger, session) if gate in (None, question.id)]
    if not waiting:
        stop(CONFLICT, f"No decision is waiting in session {ref}. See `interlock inbox`.")
    if len(waiting) > 1:
        names = ", ".join(question.id for question in waiting)
        stop(USAGE, f"Several gates are waiting in session {ref}: {names}. Name one with --gate.")
    question = waiting[0]
    show_question(question)
    options = [choice.id for choice in question.options]
    if option is None:
        answer = choose(options) if options else str(click.prompt("Your answer", err=True))
    elif options and option not in options:
        stop(USAGE, f"'{option}' is not an option of '{question.id}'. Options: {', '.join(options)}.")
    elif not click.confirm(f"Decide '{option}'?", default=True, err=True):
        stop(CHECK_FAILED, "Nothing was decided.")
    else:
        answer = option
    require_pin(ledger)
    error = decide_question(ledger, question, answer, note)
    if error is not None:
        stop_with(error)
    say(f"{question.id}: {line_of(answer)}")
    inform("Recorded. The agent continues with its next call.")
