"""How both session surfaces have a checkpoint answered, show its answer, and know a repeat of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlock.core.definition.workflow import Effect, Gate
from interlock.core.engine.decisions import AskedThrough, asked_through
from interlock.core.engine.gates import question_of
from interlock.core.run.commands import Terms
from interlock.core.run.events import GateResolved
from interlock.core.run.state import RunState
from interlock.core.values import Json, Variables
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import BY_ADDRESS, BY_FORM, INBOX
from interlock.surfaces.shared.workflow_shapes import effect_shape

ASKING: Mapping[AskedThrough, str] = {
    "agent": "Ask the user, then call respond_checkpoint with their option_id.",
    "form": f"Call respond_checkpoint with any of the options: {BY_FORM}",
    "address": f"Call respond_checkpoint with any of the options: {BY_ADDRESS}",
    "inbox": INBOX,
}
CHOOSE = "Nobody is asked in this mode: call respond_checkpoint with the option that fits best; it is a gap."
DECIDED = "The user has decided: call respond_checkpoint with option_id '{option}'."


class Answering(Protocol):
    """A call of `respond_checkpoint`, which answers in exactly one of three ways (rule 24)."""

    @property
    def option_id(self) -> str | None: ...
    @property
    def auto_advance(self) -> bool: ...
    @property
    def condition_not_met(self) -> bool: ...
    @property
    def note(self) -> str | None: ...
    @property
    def variables(self) -> Variables | None: ...


def resolution(answer: GateResolved) -> dict[str, Json]:
    """Return what was decided, and its effect."""
    body: dict[str, Json] = {"resolved_option": answer.option} if answer.option else {"dismissed": True}
    effect = effect_shape(Effect(answer.sets, answer.transition_to, answer.skip_activities))
    noted: dict[str, Json] = {"note": answer.note} if answer.note else {}
    return {**body, **noted, **({"effect": effect} if effect else {})}


def answering(key: str, call: Answering) -> dict[str, Json]:
    """Return what a repeated answer to an instance of a checkpoint is compared by."""
    how = {"auto_advance": call.auto_advance, "condition_not_met": call.condition_not_met}
    return {"checkpoint": key, "option": call.option_id, **how}


def repeats(answer: GateResolved, call: Answering) -> bool:
    """Say whether a call asks for exactly the answer that was recorded."""
    if call.condition_not_met:
        return answer.how == "dismissed" and call.option_id is None
    if call.auto_advance:
        return answer.how == "auto_advanced" and call.option_id is None
    return call.option_id is not None and answer.option == call.option_id


def how_to_answer(position: Position, state: RunState, gate: Gate, key: str, terms: Terms) -> str:
    """Say how the open question comes to the user in the call that answers it (rule 27)."""
    decided = position.decisions.get(question_of(position.plan, state, gate).digest)
    if decided is not None:
        return DECIDED.format(option=decided.option)
    if state.preferences.never_stops:
        return CHOOSE
    return ASKING[asked_through(state, key, terms, gate)]
