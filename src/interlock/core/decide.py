"""The decider: what comes of a command in a state. Each door only translates into these commands."""

from __future__ import annotations

from typing import Literal, assert_never

from interlock.core import events as e
from interlock.core.acknowledge import acknowledge
from interlock.core.answering import open_checkpoint, resolve_checkpoint, resume_checkpoint
from interlock.core.commands import (
    EXECUTION,
    AcknowledgeStep,
    AdvanceLoop,
    ChangePreferences,
    Command,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    ResumeCheckpoint,
    ReturnChild,
    StartRun,
)
from interlock.core.draft import Draft
from interlock.core.entering import enter
from interlock.core.loops import again, begun, frozen_items
from interlock.core.outcomes import Code, Decided, NeedLoop, Refusal
from interlock.core.program import Plan, Tail
from interlock.core.state import RunState
from interlock.core.values import Json


def decide(plan: Plan, state: RunState, command: Command) -> Decided | Refusal:
    """Say what the command brings about, or why it is refused."""
    match command:
        case StartRun():
            return _start(plan, command)
        case AcknowledgeStep():
            return acknowledge(plan, state, command)
        case EnterActivity():
            return enter(plan, state, command)
        case OpenCheckpoint():
            return open_checkpoint(plan, state, command)
        case ResolveCheckpoint():
            return resolve_checkpoint(plan, state, command)
        case ResumeCheckpoint():
            return resume_checkpoint(plan, state, command)
        case AdvanceLoop():
            return _advance_loop(plan, state, command)
        case ChangePreferences():
            changed = Draft(plan, state, EXECUTION, state.entered_at)
            changed.record(e.PreferencesChanged(command.effective))
            return changed.decided()
        case ReturnChild():
            return _return_child(plan, state, command)
        case _:
            assert_never(command)


def _start(plan: Plan, start: StartRun) -> Decided:
    draft = Draft(plan, RunState(), start.door, start.now)
    draft.record(
        e.RunStarted(
            workflow_id=plan.workflow.id,
            workflow_hash=start.workflow_hash,
            source=start.source,
            preferences=start.preferences,
            at=start.now,
            door=start.door.name,
        )
    )
    if start.variables:
        draft.record(e.ContextSet(start.variables, "initial"))
    return draft.decided()


def _advance_loop(plan: Plan, state: RunState, command: AdvanceLoop) -> Decided | Refusal:
    draft = Draft(plan, state, command.door, command.now)
    if command.variables:
        draft.record(e.ContextSet(command.variables))
    pending = draft.settle()
    if not isinstance(pending, NeedLoop) or pending.loop.id != command.loop:
        return _no_such_loop(pending, command.loop)
    loop = pending.loop
    if command.items is not None and loop.items and pending.iteration == 0:
        draft.record(e.ContextSet({loop.items: list(command.items)}))
        pending = draft.settle()
        if not isinstance(pending, NeedLoop):
            return draft.decided()
    if pending.needs_items:
        text = f"Loop '{loop.id}' needs its items: the list '{loop.items}' is not set"
        return Refusal(Code.LOOP_ITEMS_REQUIRED, text, "send loop_items with advance_loop")
    draft.record(_advanced(draft, pending))
    return draft.decided()


def _no_such_loop(pending: object, loop_id: str) -> Refusal:
    expected = pending.loop.id if isinstance(pending, NeedLoop) else None
    hint = f"advance loop '{expected}'" if expected else "take an available action"
    return Refusal(Code.LOOP_NOT_FOUND, f"Loop '{loop_id}' is not waiting to be advanced", hint)


def _advanced(draft: Draft, need: NeedLoop) -> e.Event:
    assert draft.state.activity is not None
    program = draft.plan.program(draft.state.activity)
    if need.iteration > 0:
        tail = program.ops[f"tail:{need.loop.id}"]
        assert isinstance(tail, Tail)
        return again(tail, draft.state.frames[-1])
    items: tuple[Json, ...] = ()
    if need.loop.kind == "forEach" and need.loop.items:
        items = frozen_items(need.loop, draft.plan.scope(draft.state.variables).value(need.loop.items)) or ()
    return begun(need.loop, program.after(f"loop:{need.loop.id}"), need.total, items)


def _return_child(plan: Plan, state: RunState, command: ReturnChild) -> Decided:
    draft = Draft(plan, state, command.door, command.now)
    declared = {variable.name for variable in plan.workflow.variables}
    returned = {name: value for name, value in command.variables.items() if name in declared}
    outcome: Literal["completed", "abandoned"] = "completed" if command.completed else "abandoned"
    draft.record(e.ChildReturned(command.workflow, command.session, outcome, returned))
    return draft.decided()
