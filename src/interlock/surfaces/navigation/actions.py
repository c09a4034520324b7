"""From an action to a command, and from its outcome to a message."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias, assert_never

import msgspec

from interlock.core.engine.acknowledge import GAPS, resolves_gaps
from interlock.core.run.commands import (
    AbandonRun,
    AcknowledgeStep,
    AdvanceLoop,
    EnterActivity,
    ResolveCheckpoint,
    Terms,
)
from interlock.core.run.notices import Notice
from interlock.core.run.output import Output
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Json
from interlock.ledger.runs.position import Position, View
from interlock.surfaces.navigation.params import NavAction
from interlock.surfaces.navigation.render import completed

Action: TypeAlias = AcknowledgeStep | ResolveCheckpoint | EnterActivity | AdvanceLoop | AbandonRun

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "complete_step": ("step_id",),
    "respond_to_checkpoint": ("checkpoint_id", "option_id"),
    "transition": ("activity_id",),
    "advance_loop": ("loop_id",),
    "abandon": ("note",),
}
_TAKES: Mapping[str, tuple[str, ...]] = {"respond_to_checkpoint": ("note",), "advance_loop": ("loop_items",)}
_OF_ONE_ACTION = (*dict.fromkeys(name for names in _NEEDS.values() for name in names), "loop_items")


def missing_parameters(params: NavAction) -> list[str]:
    """Name the parameters that the action needs and does not have.

    A question that lacks what it shows is sent that instead of an option.
    """
    sent = ("option_id",) if params.variables or params.reask else ()
    return [name for name in _NEEDS[params.action] if getattr(params, name) is None and name not in sent]


def unread_parameters(params: NavAction) -> list[Notice]:
    """Say which parameters were sent that belong to other actions."""
    read = (*_NEEDS[params.action], *_TAKES.get(params.action, ()))
    unread = [name for name in _OF_ONE_ACTION if name not in read and getattr(params, name) is not None]
    text = f"Not read by {params.action}: {', '.join(unread)}."
    return [Notice("ARGUMENTS_IGNORED", text)] if unread else []


def identity_of(params: NavAction, output: Output) -> dict[str, Json]:
    """Return what an action is known by: the same again from the same state is a replay (rule 9).

    What is only sent beside does not count, but a gap that is closed after the end does: nothing else would
    tell two of them apart.
    """
    ids = {name: getattr(params, name) for name in _NEEDS[params.action] if name != "note"}
    known: dict[str, Json] = {name: value for name, value in ids.items() if value is not None}
    if params.reask:
        known["reask"] = list(params.reask)
    if resolves_gaps(output):
        known["gaps"] = msgspec.to_builtins(output.of_kind(*GAPS))
    return {"action": params.action, **known}


def request_of(params: NavAction) -> dict[str, Json]:
    """Return all that was sent, without the state."""
    names = (*_NEEDS[params.action], "loop_items", "variables", "reask", "output", "note")
    arguments = {name: getattr(params, name) for name in names}
    return {
        "action": params.action,
        **{name: value for name, value in arguments.items() if value is not None},
    }


def attempt_of(request: Mapping[str, Json]) -> int:
    """Return the attempt of a request: 52 bits, which every JSON reader keeps exactly; never 0."""
    digest = sha256(msgspec.json.encode(request, order="deterministic")).digest()
    return (int.from_bytes(digest[:8], "big") >> 12) or 1


def command_of(
    params: NavAction, position: Position, output: Output, terms: Terms, now: int, client: str
) -> Action:
    """Return the command that the action stands for; its parameters have been checked."""
    variables = params.variables or {}
    match params.action:
        case "complete_step":
            return AcknowledgeStep(
                policy=NAVIGATION,
                now=now,
                terms=terms,
                output=output,
                variables=variables,
                step=params.step_id,
                decisions=position.decisions,
                reports=False,
                client=client,
                abandons=params.abandon_children,
                reask=params.reask or {},
            )
        case "respond_to_checkpoint":
            return ResolveCheckpoint(
                policy=NAVIGATION,
                now=now,
                terms=terms,
                channel="agent",
                gate=params.checkpoint_id,
                option=params.option_id,
                client=client,
                note=params.note or "",
                variables=variables,
                decisions=position.decisions,
                abandons=params.abandon_children,
                reask=params.reask or {},
            )
        case "transition":
            return EnterActivity(
                policy=NAVIGATION,
                now=now,
                terms=terms,
                target=params.activity_id or "",
                variables=variables,
                decisions=position.decisions,
                client=client,
                abandons=params.abandon_children,
                reask=params.reask or {},
            )
        case "advance_loop":
            return AdvanceLoop(
                policy=NAVIGATION,
                now=now,
                terms=terms,
                loop=params.loop_id or "",
                items=None if params.loop_items is None else tuple(params.loop_items),
                variables=variables,
                abandons=params.abandon_children,
                reask=params.reask or {},
                decisions=position.decisions,
            )
        case "abandon":
            return AbandonRun(now, "agent", client, (params.note or "").strip(), params.variables or {})
        case _:
            assert_never(params.action)


def done_message(params: NavAction, view: View) -> str:
    """Say what the action did. One that asks again does nothing else (rule 26)."""
    if params.reask and params.action != "abandon":
        opened = view.state.visit.open
        return f"Checkpoint '{opened.gate}' is asked again" if opened else "The question is asked again"
    match params.action:
        case "complete_step":
            text = f"Completed step '{params.step_id}'"
        case "respond_to_checkpoint":
            text = f"Responded to checkpoint '{params.checkpoint_id}' with '{params.option_id}'"
            if params.option_id is None:
                text = f"Checkpoint '{params.checkpoint_id}' is asked now"
        case "transition":
            text = f"Transitioned to activity '{params.activity_id}'"
            if not view.state.finished and view.state.visit.activity != params.activity_id:
                text = "What these variables decide comes first; take one of availableActions"
        case "advance_loop":
            frame = next((frame for frame in view.state.visit.frames if frame.loop == params.loop_id), None)
            text = f"Loop '{params.loop_id}' ended without another round; take one of availableActions"
            if frame is not None and frame.iteration == 0:
                text = f"Started loop '{params.loop_id}'"
            elif frame is not None:
                text = f"Advanced loop '{params.loop_id}' to iteration {frame.iteration + 1}"
        case "abandon":
            assert view.state.abandoned is not None, "the action has given the run up"
            text = f"The run was {view.state.abandoned.text}"
        case _:
            assert_never(params.action)
    if not view.state.finished:
        return text
    ended = f". {completed(view)}" if view.state.abandoned is None else ""
    back = ". Go on with the parent's state" if view.session.parent_session else ""
    return f"{text}{ended}{back}"
