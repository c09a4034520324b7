"""Questions as forms for the user: the model writes tool arguments, it does not write these answers.

The core says what to ask. What a call has asked so far travels with it, so that the same command can be
decided again with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Option
from interlock.core.run.commands import Answerable, Decision
from interlock.core.run.outcomes import Ask
from interlock.core.run.questions import Question
from interlock.core.values import Json, cut
from interlock.ledger.decoders import LazyDecoder
from interlock.surfaces.call import Call, Elicit, Form, FormAnswer

CHOICE = "choice"
MOST_OF_TITLE = 400  # bytes
LEAST_OF_DESCRIPTION = 40

AnyAnswerable = TypeVar("AnyAnswerable", bound=Answerable)


class Asked(Struct, frozen=True):
    """What a call has asked so far: the questions of its last forms, and the answers before, by digest."""

    last: Mapping[str, str] = {}
    answers: Mapping[str, FormAnswer] = {}


_asked = LazyDecoder(Asked)


def form(question: Question) -> Form:
    """Put a question as a form: one choice among its options with their effects, or free text."""
    choice: dict[str, Json] = {"type": "string"}
    if question.options:
        choice["oneOf"] = [{"const": option.id, "title": _title(option)} for option in question.options]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {CHOICE: choice, "note": {"type": "string"}},
        "required": [CHOICE],
    }
    return Form(question.text, schema)


def _title(option: Option) -> str:
    """Return an option on one line; a long description is cut, what the option does never is."""
    effect = f" ({text})" if (text := effect_text(option.effect)) else ""
    room = MOST_OF_TITLE - len((option.label + effect).encode())
    about = cut(" ".join((option.description or "").split()), max(room, LEAST_OF_DESCRIPTION), "…")
    return f"{option.label}: {about}{effect}" if about else f"{option.label}{effect}"


def elicit(ask: Ask, call: Call) -> Elicit:
    """Put the questions of the core as forms; the answers are bound to what is shown (rule 26)."""
    asked = Asked({question.id: question.digest for question in ask.questions}, _answers(call))
    forms = {question.id: form(question) for question in ask.questions}
    return Elicit(forms, msgspec.json.encode(asked).decode())


def answered(command: AnyAnswerable, call: Call) -> AnyAnswerable:
    """Return the command with whether the user can be asked, and with what the user answered so far."""
    answers = _answers(call)
    decisions = {digest: decision for digest in answers if (decision := _decision(answers[digest], call))}
    return replace(
        command,
        asks_by="elicitation" if call.client.can_elicit else None,
        decisions={**command.decisions, **decisions},
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
