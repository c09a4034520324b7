"""Loops: entering, repeating, leaving (rule 30). Items are frozen at entry; every loop is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

from interlock.core.definition.conditions import describe, holds, unset_in
from interlock.core.definition.program import EnterLoop, Plan, RepeatLoop, loop_key
from interlock.core.definition.prompts import interpolate, text_of
from interlock.core.definition.workflow import Loop
from interlock.core.run import events as e
from interlock.core.run.outcomes import Awaited, NeedInput, NeedLoop
from interlock.core.run.state import Frame, RunState
from interlock.core.values import Json, cut, number_of
from interlock.core.variables.typed_values import example_of, fitting, items_placeholder

ITEM_BYTES = 200


class Extent(Struct, frozen=True):
    """How often a counted loop repeats, and over what. `limited` says that its limit cut it short."""

    total: int
    items: tuple[Json, ...] = ()
    limited: bool = False


def enter_loop(plan: Plan, state: RunState, op: EnterLoop, body: str, *, by_hand: bool) -> e.Event | Awaited:
    """Enter the loop, pass it by, or ask for what it needs."""
    loop, scope = op.loop, plan.scope(state.variables)
    if not holds(loop.run_condition, scope):
        return e.LoopLeft(loop.id, op.after, "passed", unset=unset_in(loop.run_condition, scope))
    extent = extent_of(plan, state, loop)
    if isinstance(extent, NeedInput):
        return NeedLoop(loop, 0, None, needs_items=True) if by_hand and loop.kind == "forEach" else extent
    if extent is not None and extent.total == 0:
        return e.LoopLeft(loop.id, op.after, "empty")
    starts = (
        state.visit.steer != "stop" if loop.steered else loop.kind == "doWhile" or _goes_on(plan, state, loop)
    )
    if extent is None and not starts:
        return e.LoopLeft(loop.id, op.after, "condition", unset=unset_in(loop.condition, scope))
    if by_hand:
        return NeedLoop(loop, 0, extent.total if extent else None)
    return begun(plan, loop, body, extent)


def begun(plan: Plan, loop: Loop, body: str, extent: Extent | None) -> e.LoopEntered:
    """The event of entering, with the variables of the first iteration."""
    if extent is None:
        return e.LoopEntered(loop.id, body, sets=_variables(plan, loop, 0, ()), steered=loop.steered)
    sets = _variables(plan, loop, 0, extent.items)
    return e.LoopEntered(loop.id, body, extent.total, extent.items, sets, extent.limited)


def extent_of(plan: Plan, state: RunState, loop: Loop) -> Extent | NeedInput | None:
    """Measure a counted loop; None for loops that go by a condition."""
    scope, limit = plan.scope(state.variables), loop.max_iterations
    match loop.kind:
        case "forEach":
            name = loop.items or "items"
            items = scope.value(name)
            if not isinstance(items, (list, tuple)):
                title = interpolate(loop.title, scope)
                message = f"Loop '{title}' goes through the list '{name}', which is not set to a list."
                return NeedInput(loop_key(loop.id), (name,), message, items_of(plan, state, name), loop)
            frozen = tuple(items[:limit])
            return Extent(len(frozen), frozen, limited=len(items) > limit)
        case "for":
            name = str(loop.count)
            count = number_of(loop.count if isinstance(loop.count, int) else scope.value(name))
            if count is None or count != count // 1:
                text = f"repeats '{name}' times, and '{name}' is not set to a whole number."
                title = interpolate(loop.title, scope)
                example = example_of(plan, state.variables, (name,), "<a whole number>")
                return NeedInput(loop_key(loop.id), (name,), f"Loop '{title}' {text}", example, loop)
            return Extent(int(min(max(count, 0), limit)), limited=count > limit)
        case "while" | "until" | "doWhile":
            return None
        case _:
            assert_never(loop.kind)


def items_of(plan: Plan, state: RunState, name: str) -> dict[str, Json]:
    """The shape of a loop's list."""
    return example_of(plan, state.variables, (name,), items_placeholder(plan, name))


def _goes_on(plan: Plan, state: RunState, loop: Loop) -> bool:
    holding = holds(loop.condition, plan.scope(state.variables), unknown=loop.kind != "until")
    return not holding if loop.kind == "until" else holding


def repeat_loop(plan: Plan, state: RunState, op: RepeatLoop, *, by_hand: bool) -> e.Event | Awaited:
    """Begin the next iteration, or leave."""
    frame, ended = state.visit.frames[-1], _ended(plan, state, op.loop)
    done = frame.iteration + 1
    if ended is not None:
        return ended_loop(plan, state, op, ended)
    if by_hand:
        return NeedLoop(op.loop, done, frame.total)
    return again(plan, op, frame)


def ended_loop(plan: Plan, state: RunState, op: RepeatLoop, because: e.LeftBecause) -> e.LoopLeft:
    """The event of leaving after an iteration: the names of the outer loops hold again (rule 30)."""
    program, outer = plan.program(state.activity or ""), dict[str, Json]()
    for frame in state.visit.frames[:-1]:
        outer |= _variables(plan, program.head(frame.loop).loop, frame.iteration, frame.items)
    inner, done = state.visit.frames[-1], state.visit.frames[-1].iteration + 1
    written = _variables(plan, op.loop, inner.iteration, inner.items)
    sets = {name: outer[name] for name in written if name in outer}
    return e.LoopLeft(op.loop.id, op.after, because, done, sets=sets)


def again(plan: Plan, op: RepeatLoop, frame: Frame) -> e.LoopIterated:
    """The event of the next iteration, with its variables."""
    done = frame.iteration + 1
    return e.LoopIterated(op.loop.id, done, op.first, _variables(plan, op.loop, done, frame.items))


def rounds(plan: Plan, state: RunState) -> Iterator[str]:
    """Say for each loop that the run is in, from the outermost: which round, over what, what decides."""
    for frame in state.visit.frames:
        loop = plan.program(state.activity or "").head(frame.loop).loop
        bound = f"of {frame.total}" if frame.total is not None else f"of at most {loop.max_iterations}"
        title = interpolate(loop.title, plan.scope(state.variables))
        text = f"Round {frame.iteration + 1} {bound} of loop '{title}'"
        if frame.iteration < len(frame.items):
            text += f", item: {cut(text_of(frame.items[frame.iteration]), ITEM_BYTES, '…')}"
        yield f"{'; '.join([text, *goes_by(loop)])}."


def goes_by(loop: Loop) -> Iterator[str]:
    """Say what decides whether a loop goes on."""
    if loop.steered:
        yield "whether it goes on is decided by a wr.loop_control artifact"
    elif loop.condition is not None:
        yield f"it goes on {'until' if loop.kind == 'until' else 'while'} {describe(loop.condition)}"
    if loop.break_condition is not None:
        yield f"it ends early when {describe(loop.break_condition)}"


def _ended(plan: Plan, state: RunState, loop: Loop) -> e.LeftBecause | None:
    """Say why the loop ends after this iteration; None if it goes on."""
    frame = state.visit.frames[-1]
    done = frame.iteration + 1
    scope = plan.scope(state.variables)
    if loop.break_condition is not None and holds(loop.break_condition, scope, unknown=False):
        return "break"
    if frame.total is not None:
        ending: e.LeftBecause = "limit" if frame.limited else "finished"
        return ending if done >= frame.total else None
    if loop.steered and state.visit.steer != "continue":
        return "undecided" if state.visit.steer is None else "stopped"
    if not loop.steered and not _goes_on(plan, state, loop):
        return "condition"
    return "limit" if done >= loop.max_iterations else None


def _variables(plan: Plan, loop: Loop, iteration: int, items: tuple[Json, ...]) -> dict[str, Json]:
    """Return what a round writes; an item that has not the declared type leaves its name unset."""
    counted, indexed, item = loop.variables()
    written: dict[str, Json] = {counted: iteration + 1, indexed: iteration}
    if iteration < len(items):
        written[item] = items[iteration]
    typed = fitting(plan, written)
    return {name: typed.get(name) for name in written}
