"""Loops: they begin where they are due, with their own names; no round that is due is left out (I1, I8)."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import EnterLoop, Plan, RepeatLoop
from interlock.core.definition.workflow import Loop, Step, walk
from interlock.core.guard import passing
from interlock.core.guard.audit import Audit
from interlock.core.guard.hearing import I1, I4, I8, Hearing, Verdict
from interlock.core.run import events as e
from interlock.core.run.events import LeftBecause
from interlock.core.values import Json, Variables, number_of
from interlock.core.variables.typed_values import fitting


def loop(hearing: Hearing, event: e.LoopEntered | e.LoopIterated | e.LoopLeft) -> Verdict:
    """A loop begins, goes on and ends where it is due."""
    op = hearing.due()
    if not isinstance(op, (EnterLoop, RepeatLoop)) or op.loop.id != event.loop:
        yield I1(f"loop '{event.loop}' is passed where '{hearing.audit.next}' is due")
    elif isinstance(op, EnterLoop):
        yield from _entered(hearing, op, event)
    else:
        yield from passing.judged_again(hearing, everywhere=False)
        yield from _round_over(hearing, op, event)


def _entered(hearing: Hearing, op: EnterLoop, event: e.LoopEntered | e.LoopIterated | e.LoopLeft) -> Verdict:
    loop, declared = op.loop, extent(op.loop, hearing.scope)
    match event:
        case e.LoopEntered():
            if event.next != hearing.program.after(op.key) or (event.total, event.items) != declared:
                yield I8(f"loop '{loop.id}' begins with other items than it is declared over")
            yield from _named(loop, event.sets, names(hearing.plan, loop, 0, event.items))
        case e.LoopLeft(because="gap"):
            if not hearing.audit.applied.never_stops:
                yield I1(f"loop '{loop.id}' is left out in a mode that stops for it")
            if event.next != op.after or declared is not None:
                yield I8(f"loop '{loop.id}' is left out, and its first round is due")
            yield from hearing.needs_gap("missing_input", f"loop:{loop.id}")
        case e.LoopLeft():
            is_stopped = hearing.audit.steer == "stop" if loop.steered else not goes_on(loop, hearing.scope)
            passed = {
                "passed": not holds(loop.run_condition, hearing.scope),
                "empty": declared is not None and declared[0] == 0,
                "condition": is_stopped,
            }
            if event.next != op.after or event.sets or not passed.get(event.because, False):
                yield I8(f"loop '{loop.id}' is passed by, and its first round is due")
        case _:
            yield I8(f"loop '{loop.id}' has not begun")


def _round_over(
    hearing: Hearing, op: RepeatLoop, event: e.LoopEntered | e.LoopIterated | e.LoopLeft
) -> Verdict:
    loop, round_ = op.loop, hearing.audit.rounds[-1]
    done = round_.number + 1
    match event:
        case e.LoopIterated():
            is_last = round_.total is not None and done >= round_.total
            if event.next != op.first or event.iteration != done or is_last:
                yield I8(f"loop '{loop.id}' does not continue with round {event.iteration + 1}")
            yield from _named(loop, event.sets, names(hearing.plan, loop, done, round_.items))
        case e.LoopLeft():
            if event.next != op.after:
                yield I8(f"loop '{loop.id}' is not left to what follows it")
            if not is_over(loop, event.because, hearing.audit, hearing.scope, hearing.gaps):
                yield I8(f"loop '{loop.id}' is left ('{event.because}'), and its next round is due")
            yield from _named(loop, event.sets, outer_names(hearing.plan, hearing.audit, loop))
        case _:
            yield I8(f"loop '{loop.id}' begins while it runs")


def _named(loop: Loop, sets: Variables, names: Variables) -> Verdict:
    if sets != names:
        yield I4(f"loop '{loop.id}' sets other names or values than those of its round, or around it")


def extent(loop: Loop, scope: Scope) -> tuple[int | None, tuple[Json, ...]] | None:
    """How often a loop goes round, and over what; None where that is not known."""
    if loop.kind == "forEach":
        items = scope.value(loop.items or "items")
        frozen = tuple(items[: loop.max_iterations]) if isinstance(items, (list, tuple)) else None
        return None if frozen is None else (len(frozen), frozen)
    if loop.kind == "for":
        declared = loop.count if isinstance(loop.count, int) else scope.value(str(loop.count))
        count = number_of(declared)
        if count is None or count != count // 1:
            return None
        return int(min(max(count, 0), loop.max_iterations)), ()
    return None, ()


def goes_on(loop: Loop, scope: Scope) -> bool:
    """Say whether the condition of a loop asks for another round."""
    if loop.kind == "until":
        return not holds(loop.condition, scope, unknown=False)
    return loop.kind in ("for", "forEach") or holds(loop.condition, scope)


def is_over(
    loop: Loop, because: LeftBecause, audit: Audit, scope: Scope, gaps: Collection[tuple[str, str]]
) -> bool:
    """Say whether a loop may be left after this round, for the reason that is given."""
    round_, steer = audit.rounds[-1], audit.steer
    done = round_.number + 1
    match because:
        case "break":
            return loop.break_condition is not None and holds(loop.break_condition, scope, unknown=False)
        case "finished":
            return round_.total is not None and done >= round_.total
        case "limit":
            is_last = done >= (loop.max_iterations if round_.total is None else round_.total)
            return is_last and ("loop_limit", loop.id) in gaps
        case "condition":
            return round_.total is None and not loop.steered and not goes_on(loop, scope)
        case "stopped":
            return loop.steered and steer == "stop"
        case "undecided":
            return loop.steered and steer is None and ("loop_undecided", loop.id) in gaps
        case "claimed":
            steps = (item for item in walk(loop.body) if isinstance(item, Step))
            is_quiet = not round_.asked and not loop.steered
            return is_quiet and round_.total is None and not any(step.requires_output for step in steps)
        case "empty" | "passed" | "gap":
            return False
        case _:
            assert_never(because)


def names(plan: Plan, loop: Loop, number: int, items: tuple[Json, ...]) -> dict[str, Json]:
    """The names that a round of a loop sets; a value of another type than declared leaves them unset."""
    counted, indexed, item = loop.variables()
    written: dict[str, Json] = {counted: number + 1, indexed: number}
    if number < len(items):
        written[item] = items[number]
    return {**dict.fromkeys(written), **fitting(plan, written)}


def own_names(plan: Plan, audit: Audit) -> set[str]:
    """The names that the loops around the run set for each round."""
    ops = plan.program(audit.activity).ops if audit.activity and audit.rounds else {}
    heads = (ops[f"loop:{round_.loop}"] for round_ in audit.rounds)
    return {name for head in heads if isinstance(head, EnterLoop) for name in head.loop.variables()}


def outer_names(plan: Plan, audit: Audit, loop: Loop) -> dict[str, Json]:
    """The names of the loops around one that is left, which hold again."""
    outer: dict[str, Json] = {}
    ops = plan.program(audit.activity or "").ops
    for round_ in audit.rounds[:-1]:
        around = ops[f"loop:{round_.loop}"]
        assert isinstance(around, EnterLoop), "a round is one of a loop"
        outer |= names(plan, around.loop, round_.number, round_.items)
    inner = names(plan, loop, audit.rounds[-1].number, audit.rounds[-1].items)
    return {name: outer[name] for name in inner if name in outer}
