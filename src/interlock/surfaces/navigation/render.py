"""The consistent response of the navigation tools: where the run is, and what can be done from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.conditions import Scope
from interlock.core.definition.criteria import requirement
from interlock.core.definition.prompts import effect_text, interpolate, step_prompt, text_of
from interlock.core.definition.workflow import Activity, Loop, Step, Workflow, walk
from interlock.core.engine.decisions import AskedThrough
from interlock.core.engine.gates import question_of
from interlock.core.engine.moves import Decisions, Move, moves
from interlock.core.engine.paths.loops import rounds
from interlock.core.engine.requirements import Asking, asking_of
from interlock.core.run.commands import Terms
from interlock.core.run.notices import GAP_CLOSED, USERS_GAPS
from interlock.core.run.outcomes import NeedAnswer, NeedInput, NeedLoop, NeedStep
from interlock.core.run.reasons import Blocker, ContextKey, ContractPointer
from interlock.core.values import Json, Missing, cut
from interlock.core.variables.sending import question_ahead
from interlock.core.variables.typed_values import items_placeholder
from interlock.ledger.runs.brief import outcome_text
from interlock.ledger.runs.position import View
from interlock.ledger.tokens.slots import slot
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import BY_ADDRESS, BY_FORM, INBOX

_NAMES = {
    "complete_step": "step",
    "respond_to_checkpoint": "checkpoint",
    "transition": "activity",
    "advance_loop": "loop",
}

VALUE_BYTES = 200
ABANDON = {"action": "abandon", "note": "<why>"}
WAITING = f"{INBOX} Then nav_situation with this state."
GATE_ASKS: Mapping[AskedThrough | None, str] = {
    "inbox": WAITING,
    "address": f"Send respond_to_checkpoint with one of its options: {BY_ADDRESS}",
}
STEP_ASKS: Mapping[AskedThrough | None, str] = {
    "inbox": WAITING,
    "address": f"Send complete_step: {BY_ADDRESS}",
    "form": f"Send complete_step with the rest: {BY_FORM}",
    "agent": "Ask the user first, and send the answer with complete_step.",
}

_encode = msgspec.json.Encoder().encode


class Situation(Struct, frozen=True, dict=True):
    """A view, and what decides what is open in it: the user's terms and answers, workflows, the time.

    `newest` is the node that the run is at where the view is older, `other_branch` the one that a new branch
    has left behind; `is_read` says that nothing was done by the call.
    """

    view: View
    terms: Terms
    decisions: Decisions = {}
    startable: Callable[[str], bool] = bool
    handle: bytes = b""
    now: int = 0
    newest: int | None = None
    other_branch: int | None = None
    is_read: bool = False

    @property
    def lists_texts(self) -> bool:
        """Say whether resources to read beside the work are listed: at the start and in a read."""
        return self.is_read or self.view.started

    @property
    def has_new_skill(self) -> bool:
        """Say whether the activity begins, and no activity before it was worked on by the same skill."""
        state, workflow = self.view.state, self.view.plan.workflow
        before = [workflow.activity(name) for name in state.route.completed]
        skills = {activity.primary_skill for activity in before if activity is not None}
        return (
            not state.visit.done and self.activity is not None and self.activity.primary_skill not in skills
        )

    @cached_property
    def activity(self) -> Activity | None:
        return self.view.plan.workflow.activity(self.view.state.visit.activity)

    @cached_property
    def asking(self) -> Asking:
        view = self.view
        return asking_of(view.plan, view.told, view.awaited, self.terms, self.decisions)

    @property
    def asked_through(self) -> AskedThrough | None:
        """How the open question comes to the user; None where there is none, or it is decided."""
        need, view = self.view.awaited, self.view
        if not isinstance(need, NeedAnswer):
            return None
        question = question_of(view.plan, view.state, need.gate, need.confirms)
        return None if question.digest in self.decisions else self.asking.through

    @cached_property
    def scope(self) -> Scope:
        return self.view.plan.scope(self.view.told.variables)


def recorded(situation: Situation, message: str) -> bytes:
    """Render a response with a slot for its state, ready to be recorded."""
    return _encode(response_body(situation, message))


def again(view: View) -> bytes:
    """Render a lost response once more; its message is the situation, the words of the call being gone."""
    situation = Situation(view, view.terms)
    return recorded(situation, situation_line(situation))


def encoded_reply(encoded: bytes) -> Reply:
    """Reply with JSON as the text; it is not sent a second time as structure."""
    return Reply(encoded.decode())


def body_reply(body: dict[str, Json]) -> Reply:
    """Reply to a reading tool."""
    return encoded_reply(_encode(body))


def response_body(situation: Situation, message: str) -> dict[str, Json]:
    """Return the JSON of a response."""
    view, activity = situation.view, situation.activity
    body: dict[str, Json] = {
        "success": True,
        "position": {
            "workflow": view.plan.workflow.id,
            "activity": None
            if activity is None
            else {"id": activity.id, "name": interpolate(activity.name, situation.scope)},
            "step": _step_json(situation),
            "loop": _loop_json(situation),
        },
        "message": message,
        "availableActions": _available_actions(situation),
        "checkpoint": open_checkpoint(situation),
        "state": slot("nav", view.node),
    }
    if situation.newest is not None:
        body["newest_state"] = slot("nav", situation.newest)
    if situation.other_branch is not None:
        body["other_branch_state"] = slot("nav", situation.other_branch)
    if view.state.finished:
        body["status"] = "completed" if view.state.abandoned is None else "abandoned"
    if view.state.children:
        body["children"] = [{"workflow": name, "status": "running"} for name in view.state.children.values()]
    if view.started:
        body |= _throughout(view.plan.workflow)
    next_action = STEP_ASKS.get(situation.asking.by_step) or GATE_ASKS.get(situation.asked_through)
    if next_action is not None:
        body["next"] = next_action
    if view.notices.listed:
        body["warnings"] = view.notices.fields
    return body


def _throughout(workflow: Workflow) -> dict[str, Json]:
    """Return what holds for the whole run; a brief repeats the rules."""
    texts = {
        "rules": workflow.rules,
        "preconditions": workflow.preconditions,
        "clarifications": workflow.clarifications,
    }
    return {name: list(lines) for name, lines in texts.items() if lines}


def _step_json(situation: Situation) -> dict[str, Json] | None:
    need, activity = situation.view.awaited, situation.activity
    confirmed = need.confirms if isinstance(need, NeedAnswer) else None
    pending = need.step if isinstance(need, NeedStep) else confirmed
    if pending is None or activity is None:
        return None
    index = next(index for index, step in enumerate(activity.steps()) if step.id == pending.id)
    return {"id": pending.id, "index": index, "name": interpolate(pending.title, situation.scope)}


def _loop_json(situation: Situation) -> dict[str, Json] | None:
    """Return the innermost loop."""
    frames, activity = situation.view.state.visit.frames, situation.activity
    if not frames or activity is None:
        return None
    frame = frames[-1]
    loop = next(item for item in walk(activity.items) if isinstance(item, Loop) and item.id == frame.loop)
    body: dict[str, Json] = {
        "id": loop.id,
        "name": interpolate(loop.title, situation.scope),
        "iteration": frame.iteration + 1,
    }
    body["total"] = frame.total
    has_item = frame.iteration < len(frame.items)
    if has_item:
        body["item"] = frame.items[frame.iteration]
    says_all = has_item and loop.condition is None and loop.break_condition is None
    if situation.is_read or not says_all:
        body["round"] = [*rounds(situation.view.plan, situation.view.state)][-1]
    return body


def open_checkpoint(situation: Situation) -> dict[str, Json] | None:
    """Return the open question, if there is one."""
    need = situation.view.awaited
    if not isinstance(need, NeedAnswer):
        return None
    question = question_of(situation.view.plan, situation.view.state, need.gate, need.confirms)
    options: list[Json] = []
    for option in question.options:
        description = {"description": option.description} if option.description else {}
        effect = {"effect": text} if (text := effect_text(option.effect)) else {}
        options.append({"id": option.id, "label": option.label, **description, **effect})
    shape: dict[str, Json] = {"id": question.id, "name": question.name, "message": question.text}
    if not need.gate.blocking and need.gate.default_option is not None:
        shape["defaultOption"] = need.gate.default_option
        shape["autoAdvanceMs"] = need.gate.auto_advance_ms or 0
    return {**shape, "options": options}


def _available_actions(situation: Situation) -> dict[str, Json]:
    view = situation.view
    open_moves = moves(view.plan, view.state, situation.terms, situation.decisions, situation.now)
    blocked: list[Json] = []
    for move in open_moves.blocked:
        variables = {"variables": list(move.variables)} if move.variables else {}
        refused: dict[str, Json] = {"action": move.action, _NAMES[move.action]: move.target}
        blocked.append({**refused, "reason": move.reason, **variables})
    return {
        "required": [_offer(situation, move) for move in open_moves.required],
        "optional": [
            *(_offer(situation, move) for move in open_moves.optional),
            *_side_actions(situation),
            *([] if view.state.finished else [ABANDON]),
            *([_close_gap(view)] if view.state.finished and view.state.agent_resolves_gaps else []),
        ],
        "blocked": blocked,
    }


def _close_gap(view: View) -> Json:
    """Offer the one action that a run takes after its end (rule 31)."""
    steps = (step.id for activity in view.plan.workflow.activities for step in activity.steps())
    step = next(steps, "any")  # a workflow may consist of questions alone
    gap: dict[str, Json] = {"gap": "<number>", "summary": "<how it was closed>"}
    example: dict[str, Json] = {"artifacts": [{"kind": "wr.gaps", "resolved": [gap]}]}
    offer: dict[str, Json] = {"action": "complete_step", "step": step, "step_id": step, "output": example}
    return {**offer, "description": "When an open gap is closed later: say so. Nothing else is taken."}


def _offer(situation: Situation, move: Move) -> dict[str, Json]:
    name = _NAMES[move.action]  # as the document writes it; the other one is the parameter
    offer: dict[str, Json] = {"action": move.action, name: move.target, f"{name}_id": move.target}
    if move.options:
        offer["options"] = list(move.options)
    if move.items is not None:
        offer["loop_items"] = items_placeholder(situation.view.plan, move.items)
    if move.variables:
        offer["variables"] = list(move.variables)
    if move.example:
        offer["example"] = dict(move.example)
    if move.step is not None and move.step.wants_notes:
        offer["output"] = {"notesMarkdown": "<what was done>"}
    if needs := [*(_need(move.step, blocker) for blocker in move.needs), *_optional_needs(move.step)]:
        offer["needs"] = needs
    if move.condition:
        offer["condition"] = move.condition
    if move.reads:
        offer["reads"] = {name: _shown_value(situation.scope.value(name)) for name in move.reads}
    described = _description(situation, move)
    if move.abandons:
        offer["abandon_children"] = True
        described = f"Goes on without the child, which is abandoned. {described}"
    return {**offer, "description": described}


def _shown_value(value: Json | Missing) -> Json:
    """Return a variable that a condition reads: as it is if it is short, else the beginning of it."""
    if isinstance(value, Missing):
        return "[unset]"
    return cut(text_of(value), VALUE_BYTES, "…") if isinstance(value, (str, list, tuple, dict)) else value


def _need(step: Step | None, blocker: Blocker) -> dict[str, Json]:
    """Return what must come with the action, by parameter, and a value that would do."""
    if isinstance(blocker.pointer, ContextKey):
        parameter = "variables"
    elif isinstance(blocker.pointer, ContractPointer) or blocker.example is not None:
        parameter = "output.artifacts"
    else:
        criteria = step.criteria if step is not None else None
        message = requirement(criteria) if criteria is not None else "The notes that the step asks for."
        return {"parameter": "output.notesMarkdown", "message": message}
    need: dict[str, Json] = {"parameter": parameter, "message": blocker.message}
    return need if blocker.example is None else {**need, "example": blocker.example}


def _optional_needs(step: Step | None) -> Iterator[Json]:
    """Yield the artifacts that may come with a step."""
    for contract in step.contracts if step is not None else ():
        if not contract.required:
            message = f"If you have one: an artifact of kind '{contract.artifact}'."
            yield {"parameter": "output.artifacts", "message": message, "example": contract.shown_example}


def _description(situation: Situation, move: Move) -> str:
    view, workflow = situation.view, situation.view.plan.workflow
    match move.action:
        case "complete_step":
            assert move.step is not None, "an open step comes with its definition"
            ahead = question_ahead(view.plan, view.state, move.step)
            return "\n\n".join([step_prompt(view.plan, view.told, move.step), *ahead])
        case "respond_to_checkpoint" if move.variables:
            return "Its question shows these variables: send them without option_id, and it is asked."
        case "respond_to_checkpoint" if move.is_decided:
            return "The user has decided: pass on the option."
        case "respond_to_checkpoint" if view.state.terms.preferences.never_stops:
            return "Nobody is asked in this mode: choose the option that fits best; it is recorded as a gap."
        case "respond_to_checkpoint" if move.gate is not None:
            asked = question_of(view.plan, view.state, move.gate)
            return f"Optional: {asked.text}"
        case "respond_to_checkpoint" if situation.asked_through == "form":
            return f"Send any of the options: {BY_FORM}"
        case "respond_to_checkpoint":
            return "Ask the user, then send their choice."
        case "transition":
            target = workflow.activity(move.target)
            if move.variables:
                to = f"to '{interpolate(target.name, situation.scope)}'" if target else "to the end"
                return f"Go on {to}. Send these variables along, null for one that stays unset."
            if target is None:
                return "End the workflow."
            if view.state.visit.activity is None:
                return f"Begin with '{target.name}'. {target.problem or target.description or ''}".strip()
            claim = f" By taking it you state that {move.condition}." if move.unset else ""
            return f"Go on to '{interpolate(target.name, situation.scope)}'.{claim}"
        case "advance_loop":
            assert move.loop is not None, "an open loop comes with what it waits for"
            return _loop_description(move.loop, situation.scope)
        case _:
            assert_never(move.action)


def _loop_description(need: NeedLoop | NeedInput, scope: Scope) -> str:
    if isinstance(need, NeedInput):
        return f"{need.message} Send it in variables."
    title = interpolate(need.loop.title, scope)
    if need.needs_items:
        return f"Start loop '{title}': send its list '{need.loop.items or 'items'}' as loop_items."
    verb = "Start" if need.iteration == 0 else f"Go on to iteration {need.iteration + 1} of"
    total = f" ({need.total} iterations)" if need.total is not None else ""
    return f"{verb} loop '{title}'{total}."


def _side_actions(situation: Situation) -> Iterator[Json]:
    """Yield what an agent may want to read or start beside the work itself."""
    view, workflow, activity = situation.view, situation.view.plan.workflow, situation.activity
    if activity is None or view.state.finished:
        return
    step = view.awaited.step if isinstance(view.awaited, NeedStep) else None
    skill = (step.skill if step else None) or (
        activity.primary_skill if situation.is_read or situation.has_new_skill else None
    )
    if skill and any(document.kind == "skill" and document.ref == skill for document in workflow.documents):
        yield {"action": "get_skill", "skill_id": skill, "workflow_id": workflow.id}
    resources = [document.ref for document in workflow.documents if document.kind == "resource"]
    index = next((ref for ref in resources if "/" not in ref), None)
    if index is not None and situation.lists_texts:
        yield {"action": "get_resource", "workflow_id": workflow.id, "index": index}
    for trigger in (*activity.triggers, *(step.triggers if step else ())):
        if situation.startable(trigger.workflow):
            yield {
                "action": "nav_start",
                "workflow_id": trigger.workflow,
                "parent_state": slot("nav", view.node),
                "description": trigger.description or f"Run '{trigger.workflow}' as a child of this run.",
            }


def completed(view: View) -> str:
    """Say that the run has ended, and how a gap that it left is closed later."""
    ended = f"Workflow '{view.plan.workflow.name}' is completed"
    told = outcome_text(view.plan.workflow, view.state, view.session.session_id)
    if not view.state.gaps.open:
        return f"{ended}. {told}"
    if not view.state.agent_resolves_gaps:
        return f"{ended}, open gaps: {view.state.gaps.open}. {told} {USERS_GAPS}"
    return (
        f"{ended}. {told} When a gap is closed later: complete_step with any step_id and output {GAP_CLOSED}"
    )


def situation_line(situation: Situation) -> str:
    """Return one line that says where the run is."""
    parts: list[str] = []
    if situation.view.state.abandoned is not None:
        parts.append(f"The run was {situation.view.state.abandoned.text}")
    elif situation.view.state.finished:
        parts.append(completed(situation.view))
    elif children := situation.view.state.children:
        parts.append(f"Waits for its child: {', '.join(children.values())}. Finish it with its own state")
    if situation.activity is not None:
        parts.append(f"Activity: {interpolate(situation.activity.name, situation.scope)}")
    if step := _step_json(situation):
        assert isinstance(step["index"], int)
        parts.append(f"Step {step['index'] + 1}: {step['name']}")
    if loop := _loop_json(situation):
        total = f" of {loop['total']}" if loop["total"] is not None else ""
        parts.append(f"Loop: {loop['name']} (iteration {loop['iteration']}{total})")
    if checkpoint := open_checkpoint(situation):
        parts.append(f"Checkpoint: {checkpoint['message']}")
    return " | ".join(parts) or "Choose an activity to begin with"
