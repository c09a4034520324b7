"""`interlock decide ID OPTION`: the user answers the gate that a run waits at."""

from __future__ import annotations

import os
from typing import NoReturn

import click

from interlock.cli.commands.sessions.inbox_ import LINES_IN_LIST, show_question
from interlock.cli.interactive import choose, require_pin, require_terminal
from interlock.cli.options import owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import CHECK_FAILED, CONFLICT, USAGE, inform, line_of, say, stop
from interlock.ledger.decisions.inbox import (
    WHAT_FOLLOWS,
    LocatedQuestion,
    WaitingQuestion,
    answer_question,
    located_questions,
)
from interlock.ledger.decisions.substance import substance_of
from interlock.ledger.ledger import Ledger

TOKEN = "INTERLOCK_TOKEN"
REMARK = "A remark for the agent (Enter for none)"


@click.command(epilog='Example: interlock decide hmc3gzdk accept --note "seen on staging"')
@session_argument
@click.argument("option", required=False)
@click.option("--run", metavar="RUN", help="Which run, by its id, if several wait.")
@click.option("--gate", metavar="GATE", help="Which gate, if several wait.")
@click.option("--node", type=int, metavar="NODE", help="Which branch, if several of a run wait at one gate.")
@click.option("--as", "approver", metavar="NAME", help="Answer as this principal; asks for its token.")
@click.option("--note", default="", metavar="TEXT", help="A remark to record with the decision.")
@owner_option
@with_ledger
def command(
    ledger: Ledger,
    ref: str,
    option: str | None,
    run: str | None,
    gate: str | None,
    node: int | None,
    approver: str | None,
    note: str,
    owner: str,
) -> None:
    """Answer the gate that a run waits at. Needs a terminal, and the PIN if one is set."""
    require_terminal("A decision")
    ledger, session = owned_session(ledger, ref, owner)
    wanted = run or (ref if ref.startswith("run_") else "")
    begins = f"run_{wanted.removeprefix('run_')}"
    waiting = [
        located
        for located in located_questions(ledger, session)
        if located.question.run_id.startswith(begins)
        and gate in (None, located.question.id)
        and node in (None, located.question.node)
    ]
    if len(waiting) != 1:
        _stop_without_one(ledger, waiting, ref)
    [located] = waiting
    question = located.question
    show_question(question, substance_of(ledger, located.position, question))
    answer = _answer(question, option)
    if option is None and not note:
        note = str(click.prompt(REMARK, default="", show_default=False, err=True))
    if approver is None:
        require_pin(ledger)
    else:
        ledger = ledger.of(ledger.owner, _identified(ledger, approver))
    is_decided = answer_question(ledger, located, answer, note, "cli")
    say(f"{question.id}: {line_of(answer)}")
    inform(f"Recorded. {WHAT_FOLLOWS[is_decided]}")


def _identified(ledger: Ledger, name: str) -> str:
    """Return the principal that a person is, by its token; the name alone proves nothing."""
    token = os.environ.get(TOKEN) or click.prompt(f"Token of {name}", hide_input=True, err=True)
    principal = ledger.principal_of(token)
    if principal is None or principal.name != name or not principal.decides:
        stop(CHECK_FAILED, f"This is not the token of an approver called {name}.")
    return name


def _stop_without_one(ledger: Ledger, waiting: list[LocatedQuestion], ref: str) -> NoReturn:
    """End the command where it is not clear which question is meant; list them if there are several."""
    if not waiting:
        stop(CONFLICT, f"No decision is waiting in session {ref}. See `interlock inbox`.")
    for each in waiting:
        substance = substance_of(ledger, each.position, each.question)
        show_question(each.question, substance, among_others=True, lines=LINES_IN_LIST)
        say()
    if len({each.question.run_id for each in waiting}) > 1:
        option = "--run"
    else:
        option = "--gate" if len({each.question.id for each in waiting}) > 1 else "--node"
    stop(USAGE, f"Several questions are waiting in session {ref}. Name one with {option}.")


def _answer(question: WaitingQuestion, option: str | None) -> str:
    """Return the answer to the question on the screen: the given option, confirmed, or what is typed."""
    options = [choice.id for choice in question.options]
    if option is None:
        return choose(options) if options else str(click.prompt("Your answer", err=True))
    if options and option not in options:
        stop(USAGE, f"'{option}' is not an option of '{question.id}'. Options: {', '.join(options)}.")
    if not click.confirm(f"Decide '{option}'?", default=True, err=True):
        stop(CHECK_FAILED, "Nothing was decided.")
    return option
