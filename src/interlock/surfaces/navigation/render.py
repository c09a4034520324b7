"""The consistent response of the navigation tools: where the run stands, and what can be done from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.criteria import requirement
from interlock.core.definition.prompts import interpolate, step_prompt
from interlock.core.definition.workflow import Activity, Gate, Loop, Trigger, walk
from interlock.core.engine.moves import Decisions, Move, Moves, moves
from interlock.core.run.commands import Terms
from interlock.core.run.outcomes import NeedAnswer, NeedInput, NeedLoop, NeedStep, Notice
from interlock.core.run.reasons import ContextKey, ContractPointer
from interlock.core.values import Json
from interlock.ledger.runs.position import View
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.call import Reply

_NAMES = {
    "complete_step": "step",
    "respond_to_checkpoint": "checkpoint",
    "transition": "activity",
    "advance_loop": "loop",
}

_encode = msgspec.json.Encoder().encode


class Landscape(Struct, frozen=True):
    """A view, and what decides what is open in it: the user's terms and answers, the workflows there are."""

    view: View
    terms: Terms
    decisions: Decisions = {}
    startable: Callable[[str], bool] = bool
    handle: bytes = b""

    @property
    def activity(self) -> Activity | None:
        return self.view.plan.workflow.activity(self.view.state.activity)


def recorded(here: Landscape, message: str) -> bytes:
    """Render a response with a slot for its state, ready to be recorded."""
    return _encode(body(here, message))


def again(view: View) -> bytes:
    """Render a lost response once more; its message is the situation, the words of the call being gone."""
    here = Landscape(view, Terms())
    return recorded(here, situated(here))


def replied(encoded: bytes) -> Reply:
    """The same JSON as text and as structure."""
    return Reply(encoded.decode(), msgspec.Raw(encoded))


def shown(value: dict[str, Json]) -> Reply:
    """What a reading tool answers."""
    return replied(_encode(value))


def body(here: Landscape, message: str) -> dict[str, Json]:
    """The JSON of a response."""
    view = here.view
    told: dict[str, Json] = {
        "success": True,
        "position": position(here),
        "message": message,
        "availableActions": _actions(here),
        "checkpoint": checkpoint_of(here),
        "state": slot("nav", view.node),
    }
    if view.state.finished:
        told["status"] = "completed"
    if view.state.children:
        told["children"] = [{"workflow": name} for name in view.state.children.values()]
    if view.notices:
        told["warnings"] = [_warning(one) for one in view.notices]
    return told


def _warning(notice: Notice) -> dict[str, Json]:
    return {"code": notice.code, "message": notice.message}


def position(here: Landscape) -> dict[str, Json]:
    """Where the run stands: workflow, activity, step and the innermost loop."""
    activity = here.activity
    return {
        "workflow": here.view.plan.workflow.id,
        "activity": None if activity is None else {"id": activity.id, "name": activity.name},
        "step": _step(here, activity),
        "loop": _loop(here, activity),
    }


def _step(here: Landscape, activity: Activity | None) -> dict[str, Json] | None:
    need = here.view.awaited
    step = (
        need.step if isinstance(need, NeedStep) else need.confirms if isinstance(need, NeedAnswer) else None
    )
    if step is None or activity is None:
        return None
    index = next(n for n, one in enumerate(activity.steps()) if one.id == step.id)
    scope = here.view.plan.scope(here.view.state.variables)
    return {"id": step.id, "index": index, "name": interpolate(step.title, scope)}


def _loop(here: Landscape, activity: Activity | None) -> dict[str, Json] | None:
    frames = here.view.state.frames
    if not frames or activity is None:
        return None
    frame = frames[-1]
    loop = next(item for item in walk(activity.items) if isinstance(item, Loop) and item.id == frame.loop)
    told: dict[str, Json] = {"id": loop.id, "name": loop.title, "iteration": frame.iteration + 1}
    told["total"] = frame.total
    if frame.iteration < len(frame.items):
        told["item"] = frame.items[frame.iteration]
    return told


def checkpoint_of(here: Landscape) -> dict[str, Json] | None:
    """The open question, if there is one."""
    need = here.view.awaited
    if not isinstance(need, NeedAnswer):
        return None
    scope = here.view.plan.scope(here.view.state.variables)
    return {
        "id": need.gate.id,
        "name": need.gate.name,
        "message": interpolate(need.gate.message, scope),
        "options": _options(need.gate),
    }


def _options(gate: Gate) -> list[Json]:
    told: list[Json] = []
    for option in gate.options:
        about = {"description": option.description} if option.description else {}
        told.append({"id": option.id, "label": option.label, **about})
    return told


def _actions(here: Landscape) -> dict[str, Json]:
    found = moves(here.view.plan, here.view.state, here.terms, here.decisions)
    return {
        "required": [_offer(here, move) for move in found.required],
        "optional": [*(_offer(here, move) for move in found.optional), *_reading(here, found)],
        "blocked": [_refused(move) for move in found.blocked],
    }


def _offer(here: Landscape, move: Move) -> dict[str, Json]:
    offer: dict[str, Json] = {"action": move.action, _NAMES[move.action]: move.target}
    if move.options:
        offer["options"] = list(move.options)
    if move.items is not None:
        offer["loop_items"] = f"a list: {move.items}"
    if move.variables:
        offer["variables"] = list(move.variables)
    if move.needs:
        offer["needs"] = [_need(one) for one in _needs(here, move)]
    if move.condition:
        offer["condition"] = move.condition
    return {**offer, "description": _description(here, move)}


class _Need(Struct, frozen=True, omit_defaults=True):
    """Something that must come with the action, by parameter, and a value that would do."""

    parameter: str
    message: str
    example: Json = None


def _needs(here: Landscape, move: Move) -> Iterator[_Need]:
    for blocker in move.needs:
        if isinstance(blocker.pointer, ContextKey):
            yield _Need("variables", blocker.message, blocker.example)
        elif isinstance(blocker.pointer, ContractPointer) or blocker.example is not None:
            yield _Need("output.artifacts", blocker.message, blocker.example)
        else:
            yield _Need("output.notesMarkdown", _criteria(here) or blocker.message)


def _criteria(here: Landscape) -> str:
    need = here.view.awaited
    criteria = need.step.criteria if isinstance(need, NeedStep) else None
    return requirement(criteria) if criteria is not None else ""


def _need(need: _Need) -> dict[str, Json]:
    told: dict[str, Json] = {"parameter": need.parameter, "message": need.message}
    return told if need.example is None else {**told, "example": need.example}


def _description(here: Landscape, move: Move) -> str:
    match move.action:
        case "complete_step":
            return _prompt(here)
        case "respond_to_checkpoint":
            return "Put the checkpoint to the user and pass on the option that was chosen."
        case "transition":
            return _way(here, move)
        case "advance_loop":
            return _round(here)
        case _:
            assert_never(move.action)


def _prompt(here: Landscape) -> str:
    view = here.view
    assert isinstance(view.awaited, NeedStep)
    scope = view.plan.scope(view.state.variables)
    workflow = view.plan.workflow
    return step_prompt(view.awaited.step, scope, view.state.preferences, workflow.capabilities)


def _way(here: Landscape, move: Move) -> str:
    workflow = here.view.plan.workflow
    target = workflow.activity(move.target)
    if target is None:
        return "End the workflow."
    about = target.problem or target.description or ""
    if here.view.state.activity is None:
        return f"Begin with “{target.name}”. {about}".strip()
    claim = f" By taking it you state that {move.condition}." if move.condition else ""
    return f"Go on to “{target.name}”.{claim}"


def _round(here: Landscape) -> str:
    need = here.view.awaited
    if isinstance(need, NeedInput):
        return f"{need.message} Send it in variables."
    assert isinstance(need, NeedLoop)
    if need.needs_items:
        return f"Start loop “{need.loop.title}”: send its list as loop_items."
    verb = "Start" if need.iteration == 0 else f"Go on to iteration {need.iteration + 1} of"
    total = f" ({need.total} iterations)" if need.total is not None else ""
    return f"{verb} loop “{need.loop.title}”{total}."


def _refused(move: Move) -> dict[str, Json]:
    told: dict[str, Json] = {"action": move.action, _NAMES[move.action]: move.target, "reason": move.reason}
    return {**told, "variables": list(move.variables)} if move.variables else told


def _reading(here: Landscape, found: Moves) -> Iterator[Json]:
    """What an agent may want to read or start beside the work itself."""
    workflow, activity = here.view.plan.workflow, here.activity
    if activity is None or here.view.state.finished:
        return
    need = here.view.awaited
    step = need.step if isinstance(need, NeedStep) else None
    skill = (step.skill if step else None) or activity.primary_skill
    if skill and any(one.kind == "skill" and one.ref == skill for one in workflow.documents):
        yield {"action": "get_skill", "skill_id": skill, "workflow_id": workflow.id}
    for index in (one.ref for one in workflow.documents if one.kind == "resource" and "/" not in one.ref):
        yield {"action": "get_resource", "workflow_id": workflow.id, "index": index}
        break
    for trigger in (*activity.triggers, *(step.triggers if step else ())):
        if here.startable(trigger.workflow):
            yield _triggered(here, trigger)


def _triggered(here: Landscape, trigger: Trigger) -> dict[str, Json]:
    about = trigger.description or f"Run “{trigger.workflow}” as a child of this run."
    parent = slot("nav", here.view.node)
    return {
        "action": "nav_start",
        "workflow_id": trigger.workflow,
        "parent_state": parent,
        "description": about,
    }


def situated(here: Landscape) -> str:
    """One line that says where the run stands."""
    target = position(here)
    return " | ".join(_situated(here, target)) or "Choose an activity to begin with"


def _situated(here: Landscape, target: dict[str, Json]) -> Iterator[str]:
    if here.view.state.finished:
        yield f"Workflow '{here.view.plan.workflow.name}' is completed"
    activity, step, loop = here.activity, target["step"], target["loop"]
    if activity is not None:
        yield f"Activity: {activity.name}"
    if isinstance(step, dict):
        yield f"Step {step['index'] + 1}: {step['name']}"
    if isinstance(loop, dict):
        total = f" of {loop['total']}" if loop["total"] is not None else ""
        yield f"Loop: {loop['name']} (iteration {loop['iteration']}{total})"
    question = checkpoint_of(here)
    if question is not None:
        yield f"Checkpoint: {question['message']}"
