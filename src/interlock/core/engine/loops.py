"""Loops: entering, repeating, leaving (rule 30). Items are frozen at entry; every loop is bounded."""

from __future__ import annotations

import re
from typing import assert_never

from msgspec import Struct

from interlock.core.definition.conditions import holds, unset_in
from interlock.core.definition.program import EnterLoop, Plan, RepeatLoop
from interlock.core.definition.workflow import Loop
from interlock.core.run import events as e
from interlock.core.run.outcomes import Awaited, NeedInput, NeedLoop
from interlock.core.run.state import Frame, RunState
from interlock.core.values import Json, Missing

_COUNT = re.compile(r"\s*[0-9]{1,9}\s*")


class _Extent(Struct, frozen=True):
    """How often a counted loop repeats, and over what."""

    total: int
    items: tuple[Json, ...] = ()


def enter_loop(plan: Plan, state: RunState, op: EnterLoop, body: str, *, by_hand: bool) -> e.Event | Awaited:
    """Enter the loop, pass it by, or ask for what it needs."""
    loop, scope = op.loop, plan.scope(state.variables)
    if not holds(loop.run_condition, scope):
        return e.LoopLeft(loop.id, op.after, "passed", unset=unset_in(loop.run_condition, scope))
    extent = _extent(plan, state, loop)
    if isinstance(extent, NeedInput):
        return NeedLoop(loop, 0, None, needs_items=True) if by_hand and loop.kind == "forEach" else extent
    if extent is not None and extent.total == 0:
        return e.LoopLeft(loop.id, op.after, "empty")
    if extent is None and not _starts(plan, state, loop):
        return e.LoopLeft(loop.id, op.after, "condition", unset=unset_in(loop.condition, scope))
    if by_hand:
        return NeedLoop(loop, 0, extent.total if extent else None)
    return begun(loop, body, extent.total if extent else None, extent.items if extent else ())


def begun(loop: Loop, body: str, total: int | None, items: tuple[Json, ...]) -> e.LoopEntered:
    """The event of entering, with the variables of the first iteration."""
    return e.LoopEntered(loop.id, body, total, items, _variables(loop, 0, items))


def frozen_items(loop: Loop, items: Json | Missing) -> tuple[Json, ...] | None:
    """The items a forEach goes through, within its bound; None if they are no list."""
    if not isinstance(items, (list, tuple)):
        return None
    return tuple(items[: loop.max_iterations])


def _extent(plan: Plan, state: RunState, loop: Loop) -> _Extent | NeedInput | None:
    """Measure a counted loop; None for loops that go by a condition."""
    scope = plan.scope(state.variables)
    match loop.kind:
        case "forEach":
            name = loop.items or "items"
            items = frozen_items(loop, scope.value(name))
            return _needs_list(loop, name) if items is None else _Extent(len(items), items)
        case "for":
            count = loop.count if isinstance(loop.count, int) else scope.value(str(loop.count))
            number = _whole(count)
            if number is None:
                return _needs_number(loop, str(loop.count))
            return _Extent(min(max(number, 0), loop.max_iterations))
        case "while" | "until" | "doWhile":
            return None
        case _:
            assert_never(loop.kind)


def _whole(value: Json | Missing) -> int | None:
    if isinstance(value, str) and _COUNT.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        return None
    return int(value)


def _needs_list(loop: Loop, name: str) -> NeedInput:
    message = f"Loop '{loop.title}' goes through the list '{name}', which is not set to a list."
    return NeedInput(f"loop:{loop.id}", (name,), message, loop)


def _needs_number(loop: Loop, name: str) -> NeedInput:
    message = f"Loop '{loop.title}' repeats '{name}' times, and '{name}' is not set to a whole number."
    return NeedInput(f"loop:{loop.id}", (name,), message, loop)


def _starts(plan: Plan, state: RunState, loop: Loop) -> bool:
    if loop.steered:
        return state.steer != "stop"
    return loop.kind == "doWhile" or _goes_on(plan, state, loop)


def _goes_on(plan: Plan, state: RunState, loop: Loop) -> bool:
    holding = holds(loop.condition, plan.scope(state.variables))
    return not holding if loop.kind == "until" else holding


def repeat_loop(plan: Plan, state: RunState, op: RepeatLoop, *, by_hand: bool) -> e.Event | Awaited:
    """Go round again, or leave."""
    frame, ended = state.frames[-1], _ended(plan, state, op.loop)
    done = frame.iteration + 1
    if ended is not None:
        return e.LoopLeft(op.loop.id, op.after, ended, done)
    if by_hand:
        return NeedLoop(op.loop, done, frame.total)
    return again(op, frame)


def again(op: RepeatLoop, frame: Frame) -> e.LoopIterated:
    """The event of the next iteration, with its variables."""
    done = frame.iteration + 1
    return e.LoopIterated(op.loop.id, done, op.first, _variables(op.loop, done, frame.items))


def _ended(plan: Plan, state: RunState, loop: Loop) -> e.LeftBecause | None:
    frame = state.frames[-1]
    done = frame.iteration + 1
    if loop.break_condition is not None and holds(loop.break_condition, plan.scope(state.variables)):
        return "break"
    if frame.total is not None:
        return _counted_end(plan, state, loop, done) if done >= frame.total else None
    if loop.steered:
        return _steered_end(state, loop, done)
    if not _goes_on(plan, state, loop):
        return "condition"
    return "limit" if done >= loop.max_iterations else None


def _counted_end(plan: Plan, state: RunState, loop: Loop, done: int) -> e.LeftBecause:
    """A list or count that is longer than the loop may run ends by its limit."""
    wanted = plan.scope(state.variables).value(loop.items or str(loop.count))
    longer = isinstance(wanted, (list, tuple)) and len(wanted) > done and done == loop.max_iterations
    return "limit" if longer else "finished"


def _steered_end(state: RunState, loop: Loop, done: int) -> e.LeftBecause | None:
    if state.steer is None:
        return "undecided"
    if state.steer == "stop":
        return "stopped"
    return "limit" if done >= loop.max_iterations else None


def _variables(loop: Loop, iteration: int, items: tuple[Json, ...]) -> dict[str, Json]:
    counted, indexed, item = loop.variables()
    written: dict[str, Json] = {counted: iteration + 1, indexed: iteration}
    return {**written, item: items[iteration]} if iteration < len(items) else written
