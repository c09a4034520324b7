"""Asking the user through the client: the model writes tool arguments, it does not write these answers.

Declining and cancelling are no answer; the run then waits as it would with a client that cannot ask.
"""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.program import confirmation
from interlock.core.definition.workflow import UserInput
from interlock.core.engine.decide import decide
from interlock.core.engine.gates import shown
from interlock.core.engine.requirements import input_id
from interlock.core.run.commands import AcknowledgeStep, Decision
from interlock.core.run.outcomes import Decided, NeedAnswer, NeedStep
from interlock.core.run.reasons import BlockerCode
from interlock.core.values import Json
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call, Form
from interlock.surfaces.elicitation import CHOICE, gate_question


def question(at: Position, command: AcknowledgeStep) -> Ask | None:
    """What the user must be asked before this acknowledgement can pass; None when nothing is."""
    if at.state.preferences.never_stops or command.terms.decisions == "agent":
        return None
    pending = at.awaited
    if isinstance(pending, NeedAnswer):
        return None if pending.gate.id in command.decisions else gate_question(at, pending.gate)
    decided = decide(at.plan, at.state, replace(command, reports=False))
    if not isinstance(pending, NeedStep) or not isinstance(decided, Decided):
        return None
    if decided.blockers:
        return _inputs(at, pending, decided)
    asked = decided.awaited
    if isinstance(asked, NeedAnswer) and asked.confirms is not None and asked.confirms.id == pending.step.id:
        return gate_question(at, asked.gate)
    return None


def _inputs(at: Position, need: NeedStep, decided: Decided) -> Ask | None:
    """Ask for what only the user can give, if nothing else keeps the step from passing."""
    if any(one.code is not BlockerCode.USER_ONLY_DEPENDENCY for one in decided.blockers):
        return None
    questions = {input_id(need.step, one): _input(one) for one in need.step.user_input}
    return Ask(questions, need.key) if questions else None


def _input(need: UserInput) -> Form:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {CHOICE: {"type": "string", "description": need.question}},
        "required": [CHOICE],
    }
    return Form(need.question, schema)


def answered(call: Call, at: Position) -> dict[str, Decision]:
    """The user's answers, bound to the question that is pending now (rule 26)."""
    if call.asked is None:
        return {}
    pending = at.awaited
    bound = {shown(pending.gate)} if isinstance(pending, NeedAnswer) else _bound(pending)
    if call.asked not in bound:
        return {}
    found = {}
    for name, answer in call.answers.items():
        choice = answer.content.get(CHOICE)
        if answer.action == "accept" and isinstance(choice, str):
            note = answer.content.get("note")
            found[name] = Decision(
                choice, "elicitation", call.client.name, note if isinstance(note, str) else ""
            )
    return found


def _bound(pending: object) -> set[str]:
    if not isinstance(pending, NeedStep):
        return set()
    return {pending.key, shown(confirmation(pending.step))}
