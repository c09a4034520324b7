"""Questions as forms for the user: the model writes tool arguments, it does not write these answers."""

from __future__ import annotations

from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Option
from interlock.core.engine.gates import Question
from interlock.core.run.commands import Decision
from interlock.core.values import Json
from interlock.surfaces.call import Ask, Call, Form, FormAnswer

CHOICE = "choice"


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
    effect = effect_text(option.effect)
    return f"{option.label} ({effect})" if effect else option.label


def ask_for(*questions: Question) -> Ask:
    """Ask the user; the answers are bound to the questions as they are shown (rule 26)."""
    digests = " ".join(question.digest for question in questions)
    return Ask({question.id: form(question) for question in questions}, digests)


def answer_to(question: Question, call: Call) -> Decision | None:
    """The user's own answer to exactly this question; declining and cancelling are none."""
    answer: FormAnswer | None = call.answers.get(question.id)
    if not was_asked(question, call) or answer is None or answer.action != "accept":
        return None
    choice, note = answer.content.get(CHOICE), answer.content.get("note")
    if not isinstance(choice, str):
        return None
    return Decision(choice, "elicitation", call.client.name, note if isinstance(note, str) else "")


def was_asked(question: Question, call: Call) -> bool:
    """Say whether this call follows an `Ask` of exactly this question."""
    return call.asked is not None and question.digest in call.asked.split()
