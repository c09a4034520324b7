"""Loops: they begin where they are due, with their own names; no round that is due is left out (I1, I8)."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import EnterLoop, RepeatLoop, loop_key
from interlock.core.definition.workflow import Loop, Step, walk
from interlock.core.guard import passing
from interlock.core.guard.audit import Round
from interlock.core.guard.hearing import I1, I4, I8, Hearing, Verdict
from interlock.core.run import events as e
from interlock.core.values import Json, number_of
from interlock.core.variables.typed_values import fitting

LoopEvent: TypeAlias = e.LoopEntered | e.LoopIterated | e.LoopLeft


def loop(hearing: Hearing, event: LoopEvent) -> Verdict:
    """A loop begins, goes on and ends where it is due."""
    op = hearing.due()
    if not isinstance(op, (EnterLoop, RepeatLoop)) or op.loop.id != event.loop:
        yield I1(f"loop '{event.loop}' is passed where '{hearing.visit.next}' is due")
    elif isinstance(op, EnterLoop):
        yield from _at_head(hearing, op, event)
    else:
        yield from passing.judged_again(hearing, everywhere=False)
        yield from _at_tail(hearing, op, event)


def _at_head(hearing: Hearing, op: EnterLoop, event: LoopEvent) -> Verdict:
    loop, declared = op.loop, extent(op.loop, hearing.scope)
    match event:
        case e.LoopEntered():
            if event.next != hearing.program.after(op.key) or (event.total, event.items) != declared:
                yield I8(f"loop '{loop.id}' begins with other items than it is declared over")
            yield from _named(event, _names(hearing, loop, Round(loop.id, items=event.items)))
        case e.LoopLeft(because="gap"):
            if not hearing.terms.never_stops:
                yield I1(f"loop '{loop.id}' is left out in a mode that stops for it")
            if event.next != op.after or declared is not None:
                yield I8(f"loop '{loop.id}' is left out, and its first round is due")
            yield from hearing.needs_gap("missing_input", loop_key(loop.id))
        case e.LoopLeft():
            is_stopped = hearing.visit.steer == "stop" if loop.steered else not _goes_on(loop, hearing.scope)
            passed = {
                "passed": not holds(loop.run_condition, hearing.scope),
                "empty": declared is not None and declared[0] == 0,
                "condition": is_stopped,
            }
            if event.next != op.after or event.sets or not passed.get(event.because, False):
                yield I8(f"loop '{loop.id}' is passed by, and its first round is due")
        case _:
            yield I8(f"loop '{loop.id}' has not begun")


def _at_tail(hearing: Hearing, op: RepeatLoop, event: LoopEvent) -> Verdict:
    loop, rounds = op.loop, hearing.visit.rounds
    done = rounds[-1].number + 1
    match event:
        case e.LoopIterated():
            is_last = rounds[-1].total is not None and done >= rounds[-1].total
            if event.next != op.first or event.iteration != done or is_last:
                yield I8(f"loop '{loop.id}' does not continue with round {event.iteration + 1}")
            yield from _named(event, _names(hearing, loop, Round(loop.id, done, items=rounds[-1].items)))
        case e.LoopLeft():
            if event.next != op.after:
                yield I8(f"loop '{loop.id}' is not left to what follows it")
            if not _is_over(hearing, loop, event):
                yield I8(f"loop '{loop.id}' is left ('{event.because}'), and its next round is due")
            outer: dict[str, Json] = {}  # the names of the loops around it hold again
            for round_ in rounds[:-1]:
                outer |= _names(hearing, hearing.program.head(round_.loop).loop, round_)
            inner = _names(hearing, loop, rounds[-1])
            yield from _named(event, {name: outer[name] for name in inner if name in outer})
        case _:
            yield I8(f"loop '{loop.id}' begins while it runs")


def _named(event: LoopEvent, names: dict[str, Json]) -> Verdict:
    if event.sets != names:
        yield I4(f"loop '{event.loop}' sets other names or values than those of its round, or around it")


def _names(hearing: Hearing, loop: Loop, round_: Round) -> dict[str, Json]:
    """The names that a round of a loop sets; a value of another type than declared leaves them unset."""
    counted, indexed, item = loop.variables()
    written: dict[str, Json] = {counted: round_.number + 1, indexed: round_.number}
    if round_.number < len(round_.items):
        written[item] = round_.items[round_.number]
    return {**dict.fromkeys(written), **fitting(hearing.plan, written)}


def own_names(hearing: Hearing) -> set[str]:
    """The names that the loops around the run set for each round."""
    loops = (hearing.program.head(round_.loop).loop for round_ in hearing.visit.rounds)
    return {name for loop in loops for name in loop.variables()}


def extent(loop: Loop, scope: Scope) -> tuple[int | None, tuple[Json, ...]] | None:
    """How often a loop goes round, and over what; None where that is not known."""
    if loop.kind == "forEach":
        items = scope.value(loop.items or "items")
        frozen = tuple(items[: loop.max_iterations]) if isinstance(items, (list, tuple)) else None
        return None if frozen is None else (len(frozen), frozen)
    if loop.kind == "for":
        count = number_of(loop.count if isinstance(loop.count, int) else scope.value(str(loop.count)))
        is_whole = count is not None and count == count // 1
        return (int(min(max(count, 0), loop.max_iterations)), ()) if count is not None and is_whole else None
    return None, ()


def _goes_on(loop: Loop, scope: Scope) -> bool:
    """Say whether the condition of a loop asks for another round."""
    if loop.kind == "until":
        return not holds(loop.condition, scope, unknown=False)
    return loop.kind in ("for", "forEach") or holds(loop.condition, scope)


def _is_over(hearing: Hearing, loop: Loop, event: e.LoopLeft) -> bool:
    """Say whether a loop may be left after this round, for the reason that is given."""
    round_, steer, scope = hearing.visit.rounds[-1], hearing.visit.steer, hearing.scope
    done, is_counted = round_.number + 1, round_.total is not None
    match event.because:
        case "break":
            return loop.break_condition is not None and holds(loop.break_condition, scope, unknown=False)
        case "finished":
            return round_.total is not None and done >= round_.total
        case "limit":
            is_last = done >= (loop.max_iterations if round_.total is None else round_.total)
            return is_last and ("loop_limit", loop.id) in hearing.gaps
        case "condition":
            return not is_counted and not loop.steered and not _goes_on(loop, scope)
        case "stopped":
            return loop.steered and steer == "stop"
        case "undecided":
            return loop.steered and steer is None and ("loop_undecided", loop.id) in hearing.gaps
        case "claimed":
            steps = (item for item in walk(loop.body) if isinstance(item, Step))
            is_quiet = not round_.asked and not any(step.requires_output for step in steps)
            return is_quiet and not loop.steered and not is_counted
        case "empty" | "passed" | "gap":
            return False
        case _:
            assert_never(event.because)
