"""Jumps (rule 22): what the declared paths to a target pass that this run has not answered."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Literal, assert_never

from msgspec import Struct

from interlock.core.definition.conditions import is_known_false
from interlock.core.definition.program import (
    END,
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Op,
    Plan,
    RepeatLoop,
    loop_key,
)
from interlock.core.definition.workflow import TERMINAL
from interlock.core.engine.paths.exits import exits, is_chosen, past_skipped, skipped_now
from interlock.core.run.keys import item_of
from interlock.core.run.state import RunState


class LeftOut(Struct, frozen=True):
    """What a jump leaves out: a gate, a step that requires something, or the choice that leads there."""

    activity: str
    id: str
    kind: Literal["gate", "step", "choice"]


class _Link(Struct, frozen=True):
    """A declared exit that a path may take, unless a gate's answer would have to lead there and has not."""

    source: str
    to: str
    gate: str = ""


def left_out(plan: Plan, state: RunState, target: str) -> LeftOut | None:
    """Name what a jump leaves out, on any declared path from here, else from the first activity.

    Going back along the run's own path leaves nothing out.
    """
    goal = _node(plan, target)
    if goal in (*state.route.path, state.activity):
        return None
    for start, links in _starts(plan, state, goal):
        if paths := _between(start, goal, links):
            free = _between(start, goal, [link for link in links if not link.gate])
            return _unanswered(plan, state, paths, free)
    return None


def activities_left_out(plan: Plan, state: RunState, target: str) -> list[str]:
    """Name the required activities that every declared path to the target passes, and a jump does not."""
    goal = _node(plan, target)
    if goal in (*state.route.path, state.activity):
        return []
    for start, links in _starts(plan, state, goal):
        free = [link for link in links if not link.gate]
        if paths := _between(start, goal, free):
            passed = dict.fromkeys(link.source for link in paths if link.source != state.activity)
            return [name for name in passed if _is_left_out(plan, state, name, start, goal, free)]
    return []


def _starts(plan: Plan, state: RunState, goal: str) -> Iterator[tuple[str, list[_Link]]]:
    """Yield where paths to the goal may begin, with the links from there: at last as if nothing were skipped.

    Otherwise no path would lead to what is skipped, or to what only skipped activities lead to, and nothing
    would be left out on the way.
    """
    for skipped in (skipped_now(plan, state), frozenset[str]()):
        for start in dict.fromkeys((state.activity, plan.workflow.initial)):
            if start is not None and start != goal:
                yield start, _links_from(plan, state, start, goal, skipped)


def _is_left_out(
    plan: Plan, state: RunState, name: str, start: str, goal: str, links: Sequence[_Link]
) -> bool:
    """Say whether an activity is required, was not done, and cannot be avoided between two others."""
    activity = plan.workflow.activity(name)
    if activity is None or not activity.required or name in state.route.path:
        return False
    around = [link for link in links if name not in (link.source, link.to)]
    return name == start or not _between(start, goal, around)


def gone_back_before(plan: Plan, state: RunState, target: str) -> str:
    """Name the first activity of the run's path that the target leads to, if the run goes back before it.

    What came after it is then asked anew, as if the run had begun with the target.
    """
    assert state.activity is not None
    path, goal = (*state.route.path, state.activity), _node(plan, target)
    if goal in path or (path[0] == plan.workflow.initial and _leads(plan, state, state.activity, goal)):
        return ""
    return next((earlier for earlier in path if _leads(plan, state, goal, earlier)), "")


def left_unanswered(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name what the activity requires and what leaving it now leaves out."""
    assert state.activity is not None
    waived = [item_of(key) for key in state.visit.waived]
    if state.visit.next_key == END:
        return tuple(dict.fromkeys(waived))
    # a loop that is left has rounds in which nothing was asked
    first = loop_key(state.visit.frames[0].loop) if state.visit.frames else state.visit.next_key
    ahead = itertools.dropwhile(lambda op: op.key != first, plan.program(state.activity).ops.values())
    ids = [
        _id(op)
        for op in ahead
        if _requires(plan, state, op) and (state.visit.frames or _id(op) not in state.visit.answers)
    ]
    return tuple(dict.fromkeys([*waived, *ids]))


def _unanswered(plan: Plan, state: RunState, paths: list[_Link], free: list[_Link]) -> LeftOut | None:
    """Name the first thing that the free paths pass and this run has not answered."""
    if not free:
        held = next(link for link in paths if link.gate)
        return LeftOut(held.source, held.gate, "choice")
    passed = dict.fromkeys(link.source for link in free)
    return next((required for name in passed for required in _required(plan, state, name)), None)


def _required(plan: Plan, state: RunState, name: str) -> Iterator[LeftOut]:
    """Yield what an activity requires, but for what this run has answered."""
    activity = plan.workflow.activity(name)
    if activity is None or not activity.required or name == state.activity:
        return
    for op in plan.program(name).ops.values():
        answered = name in state.route.path and _id(op) not in state.route.unanswered.get(name, ())
        if not answered and _requires(plan, state, op):
            yield LeftOut(name, _id(op), "step" if isinstance(op, DoStep) else "gate")


def _id(op: Op) -> str:
    """Name an operation by its gate, step or loop."""
    match op:
        case AskGate(gate=gate) | ConfirmStep(gate=gate):
            return gate.id
        case DoStep(step=step):
            return step.id
        case EnterLoop(loop=loop) | RepeatLoop(loop=loop):
            return loop.id
        case _:
            assert_never(op)


def _requires(plan: Plan, state: RunState, op: Op) -> bool:
    """Say whether an operation requires an answer or an output, unless values of the run rule it out."""
    scope = plan.scope(state.variables)
    match op:
        case AskGate(gate=gate):
            return gate.required and not is_known_false(gate.condition, scope)
        case ConfirmStep(step=step):
            ruled_out = not isinstance(step.confirm, bool) and is_known_false(step.confirm, scope)
            return state.preferences.guided and not ruled_out and not is_known_false(step.condition, scope)
        case DoStep(step=step):
            return step.required and not is_known_false(step.condition, scope) and step.requires_output
        case EnterLoop() | RepeatLoop():
            return False
        case _:
            assert_never(op)


def _leads(plan: Plan, state: RunState, start: str, goal: str) -> bool:
    return bool(_between(start, goal, _links_from(plan, state, start, goal, skipped_now(plan, state))))


def _links_from(plan: Plan, state: RunState, start: str, goal: str, skipped: Set[str]) -> list[_Link]:
    """Return the links that can be reached from an activity, short of the goal, the nearest first."""
    links, reached = list[_Link](), [start]
    for name in reached:  # which grows
        for link in _links(plan, state, name, skipped) if name != goal else ():
            links.append(link)
            if link.to not in reached:
                reached.append(link.to)
    return links


def _between(start: str, goal: str, links: Sequence[_Link]) -> list[_Link]:
    """Return the links that lie on a path from one activity to another; none comes back to the first."""
    links = [link for link in links if link.to != start]
    after, before = (
        _closure(start, {(link.source, link.to) for link in links}),
        _closure(goal, {(link.to, link.source) for link in links}),
    )
    return [link for link in links if link.source in after and link.to in before]


def _closure(start: str, pairs: Collection[tuple[str, str]]) -> set[str]:
    """Return all that can be reached from the start along the pairs."""
    reached, known = {start}, 0
    while known != len(reached):
        known = len(reached)
        reached.update(to for source, to in pairs if source in reached)
    return reached


def _links(plan: Plan, state: RunState, name: str, skipped: Set[str]) -> Iterator[_Link]:
    """Yield the exits of an activity, as they are now, and what the options of its gates lead to."""
    activity = plan.workflow.activity(name)
    if activity is None:
        return
    is_here = name == state.activity
    for exit_ in exits(plan, state if is_here else state.within(activity=name, exit_to=None), skipped):
        yield _Link(name, _node(plan, exit_.to), exit_.closed_by)
    for gate in activity.gates():
        for option in gate.options:
            if (target := option.effect.transition_to) is None or not plan.workflow.has_target(target):
                continue
            chosen = (is_here or name in state.route.path) and is_chosen(state, gate, option)
            to = _node(plan, past_skipped(plan.workflow, target, skipped))
            yield _Link(name, to, "" if chosen else gate.id)


def _node(plan: Plan, target: str) -> str:
    return TERMINAL if plan.workflow.is_end(target) else target
