"""Answered checkpoints as both session surfaces show them, and when a second answer is only a repeat."""

from __future__ import annotations

from typing import Protocol

from interlock.core.definition.workflow import Effect
from interlock.core.run.events import GateResolved
from interlock.core.values import Json, Variables
from interlock.surfaces.shared.workflow_shapes import effect_shape


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
