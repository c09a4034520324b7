"""Answered checkpoints as both session surfaces tell them, and when a second answer is only a repeat."""

from __future__ import annotations

from typing import Protocol

from interlock.core.definition.workflow import Effect
from interlock.core.run.events import GateResolved
from interlock.core.values import Json
from interlock.surfaces.shared.written import effect_shape


class Resolving(Protocol):
    """The three ways to answer, of which a call names exactly one (rule 24)."""

    @property
    def option_id(self) -> str | None: ...
    @property
    def auto_advance(self) -> bool: ...
    @property
    def condition_not_met(self) -> bool: ...


def resolution(answer: GateResolved) -> dict[str, Json]:
    """What was decided, and what that has done."""
    body: dict[str, Json] = {"resolved_option": answer.option} if answer.option else {"dismissed": True}
    effect = effect_shape(Effect(answer.sets, answer.transition_to, answer.skip_activities))
    return {**body, "effect": effect} if effect else body


def repeats(answer: GateResolved, asked: Resolving) -> bool:
    """Say whether a call asks for exactly the answer that was recorded."""
    if asked.condition_not_met:
        return answer.how == "dismissed" and asked.option_id is None
    if asked.auto_advance:
        return answer.how == "auto_advanced" and asked.option_id is None
    return asked.option_id is not None and answer.option == asked.option_id
