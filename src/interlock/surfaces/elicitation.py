"""Questions as forms or addresses for the user: the model writes tool arguments, not these answers.

The core says what to ask. What a call has asked so far travels with it, so that the same command can be
decided again with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Option
from interlock.core.run.channels import Channel
from interlock.core.run.commands import Answerable, CheckResult, Command, Decision, Terms
from interlock.core.run.outcomes import Ask, Decided, Refusal, RunChecks
from interlock.core.run.questions import Question
from interlock.core.values import Json, cut
from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Address, Call, Elicit, Form, FormAnswer, Wait

CHOICE = "choice"
CHECK_MARGIN = 60.0  # seconds, to look at the files before and after, and to end what hangs
MOST_OF_TITLE = 400  # bytes
LEAST_OF_DESCRIPTION = 40

AnyAnswerable = TypeVar("AnyAnswerable", bound=Answerable)


class Asked(Struct, frozen=True):
    """What a call has asked so far: the questions of its last forms, and the answers before, by digest."""

    last: Mapping[str, str] = {}
    answers: Mapping[str, FormAnswer] = {}


_asked = LazyDecoder(Asked)


def form(question: Question, substance: str) -> Form:
    """Put a question as a form: its substance, then a choice among options with their effects, or text."""
    choice: dict[str, Json] = {"type": "string"}
    if question.options:
        choice["oneOf"] = [{"const": option.id, "title": _title(option)} for option in question.options]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {CHOICE: choice, "note": {"type": "string"}},
        "required": [CHOICE],
    }
    return Form(f"{question.text}\n\n{substance}" if substance else question.text, schema)


def _title(option: Option) -> str:
    """Return an option on one line; a long description is cut, what the option does never is."""
    effect = f" ({text})" if (text := effect_text(option.effect)) else ""
    room = MOST_OF_TITLE - len((option.label + effect).encode())
    about = cut(" ".join((option.description or "").split()), max(room, LEAST_OF_DESCRIPTION), "…")
    return f"{option.label}: {about}{effect}" if about else f"{option.label}{effect}"


def terms_of(terms: Terms, call: Call) -> Terms:
    """Return the terms of a run with the channel by which a call on it can ask the user.

    Where only the user's own channels count, a form would not; an address leads to one of them.
    """
    by_form: Channel | None = "elicitation" if call.client.can_elicit else None
    return replace(terms, asks_by="inbox" if call.console and terms.decisions == "user" else by_form)


def decided_with_user(
    ledger: Ledger, position: Position, command: Command, call: Call
) -> Decided | Refusal | Elicit | Wait:
    """Decide a command with what the user has answered in this call.

    Ask first what the core asks, and run the checks that it needs.
    """
    if not isinstance(command, Answerable):
        return position.decide_unasked(command)
    command = _answered(command, call)
    decided = position.decide(command)
    while isinstance(decided, RunChecks):
        results = _results(ledger, position, decided, call)
        if isinstance(results, Wait):
            return results
        command = replace(command, checked=(*command.checked, *results))
        decided = position.decide(command)
    return _elicit(decided, position, command, call) if isinstance(decided, Ask) else decided


def _results(
    ledger: Ledger, position: Position, checks: RunChecks, call: Call
) -> tuple[CheckResult, ...] | Wait:
    """Return what came of the checks, run one after the other, or wait for the one that runs."""
    from interlock.ledger.runs.check_runs import check_result  # late: most workflows have no checks

    results: list[CheckResult] = []
    for due in checks.checks:
        result = check_result(ledger, position, due, may_wait=call.may_wait)
        if result is None:
            return Wait(due.check.timeout + CHECK_MARGIN, f"Running check '{due.check.id}'", works=True)
        results.append(result)
    return tuple(results)


def _elicit(ask: Ask, position: Position, command: Answerable, call: Call) -> Elicit:
    """Put the questions of the core; the answers are bound to what is shown (rule 26)."""
    from interlock.ledger.decisions.substance import substance_of_call, substance_text  # late: few calls ask

    substance = substance_text(substance_of_call(position, command)) if ask.by != "inbox" else ""
    asked = Asked({question.id: question.digest for question in ask.questions}, _answers(call))
    questions = {
        question.id: address(question, call.console, position.session_id)
        if ask.by == "inbox"
        else form(question, substance)
        for question in ask.questions
    }
    return Elicit(questions, msgspec.json.encode(asked).decode())


def address(question: Question, console: str, session_id: str) -> Address:
    """Name where the question waits in the console."""
    query = urlencode({"session": session_id, "shown": question.digest})
    return Address(question.text, f"{console}/inbox?{query}")


def _answered(command: AnyAnswerable, call: Call) -> AnyAnswerable:
    """Return the command with what the user has answered so far."""
    answers = _answers(call)
    decisions = {digest: decision for digest in answers if (decision := _decision(answers[digest], call))}
    return replace(
        command,
        decisions={**decisions, **command.decisions},  # what a person has recorded is stronger than a form
        declined=tuple(digest for digest in answers if digest not in decisions),
    )


def _answers(call: Call) -> dict[str, FormAnswer]:
    """Return the user's reactions to all forms of this call, by the digest of their question."""
    if call.asked is None:
        return {}
    try:
        asked = _asked.decode(call.asked.encode())
    except msgspec.DecodeError:
        return {}
    declined = FormAnswer("cancel")
    last = {digest: call.answers.get(name, declined) for name, digest in asked.last.items()}
    return {**asked.answers, **last}


def _decision(answer: FormAnswer, call: Call) -> Decision | None:
    choice, note = answer.content.get(CHOICE), answer.content.get("note")
    if answer.action != "accept" or not isinstance(choice, str):
        return None
    return Decision(choice, "elicitation", call.client.name, note if isinstance(note, str) else "")
