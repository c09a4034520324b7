"""What happens by itself: the next automatic event, or what the run waits for.

`settle` repeats `next_fact` until something is awaited. The surfaces differ only in where that stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import describe, holds, unset_in
from interlock.core.definition.program import END, AskGate, ConfirmStep, DoStep, EnterLoop, Plan, RepeatLoop
from interlock.core.definition.workflow import Action, Gate
from interlock.core.engine.evolve import evolve
from interlock.core.engine.exits import ChosenExit, chosen_exit, deciding_variables, exits
from interlock.core.engine.gates import entrance_gate, find_gate, is_answered, needs_confirmation, shown
from interlock.core.engine.loops import enter_loop, repeat_loop
from interlock.core.run import events as e
from interlock.core.run.outcomes import (
    Awaited,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedStep,
)
from interlock.core.run.state import RunState, instance
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json

MOST_EVENTS = 10_000
CIRCLE = "circle:"
REST = "rest:"


def settle(
    plan: Plan, state: RunState, policy: SurfacePolicy, now: int
) -> tuple[tuple[e.Event, ...], RunState, Awaited]:
    """Let everything happen that happens by itself; a run that goes in a circle stops, a long one rests."""
    events: list[e.Event] = []
    met = [_Met(state, 0)]
    while len(events) < MOST_EVENTS:
        step = next_event(plan, state, policy, now)
        if not isinstance(step, e.RunEvent):
            return tuple(events), state, step
        for event in (step, *consequences(step)):
            events.append(event)
            state = evolve(state, event)
        if isinstance(step, e.ActivityEntered):
            if (before := next((one for one in met if _same_place(one.state, state)), None)) is not None:
                return tuple(events[: before.events]), before.state, _circle(plan, met, events, before)
            met.append(_Met(state, len(events)))
    return tuple(events), state, _rest(state)


class _Met(Struct, frozen=True):
    """A state on the way, and how many events led to it."""

    state: RunState
    events: int


def _same_place(one: RunState, other: RunState) -> bool:
    """Say whether an activity goes on alike from both: all but counts and times is equal."""
    if one.activity != other.activity or one.next_key != other.next_key:
        return False
    return replace(one, visit=other.visit, entered_at=0, gaps=0, completed=()) == replace(
        other, entered_at=0, gaps=0, completed=()
    )


def _circle(plan: Plan, met: Sequence[_Met], events: Sequence[e.Event], before: _Met) -> NeedInput:
    """Going on by itself, the run would come back here for ever."""
    states = [one.state for one in met if one.events >= before.events]
    deciding = [name for state in states for name in deciding_variables(plan, state)]
    passing = [name for event in events[before.events :] for name in getattr(event, "unset", ())]
    names = tuple(dict.fromkeys([*passing, *deciding]))
    through = ", ".join(f"'{state.activity}'" for state in states)
    listed = f" These variables decide it: {', '.join(names)}." if names else ""
    message = f"The run goes in a circle through {through} and finds nothing to do.{listed}"
    return NeedInput(f"{CIRCLE}{before.state.activity}", names, message)


def _rest(state: RunState) -> NeedInput:
    message = f"The run has passed {MOST_EVENTS} conditions by itself and is not through. Let it go on."
    return NeedInput(f"{REST}{state.activity}", (), message)


def consequences(event: e.Event) -> tuple[e.Event, ...]:
    """What an automatic event discloses: a loop cut short, a loop nobody steered, an assumption made."""
    match event:
        case e.LoopLeft(because="limit"):
            text = f"Loop '{event.loop}' was left at its limit of {event.iterations} iterations."
            return (e.GapRecorded("warning", "unexpected", "loop_limit", text, event.loop),)
        case e.LoopLeft(because="undecided"):
            text = f"Loop '{event.loop}' was left because no step decided whether it goes on."
            return (e.GapRecorded("critical", "contract_violation", "loop_undecided", text, event.loop),)
        case e.GateResolved(how="assumed"):
            text = f"'{event.question}' was not asked; assumed: {event.option}."
            return (e.GapRecorded("info", "user_only_dependency", "needs_user_approval", text, event.key),)
        case _:
            return ()


def awaited(plan: Plan, state: RunState, policy: SurfacePolicy) -> Awaited:
    """What a settled run waits for at this surface; taking it up at another surface may need events first."""
    return settle(plan, state, policy, state.entered_at)[2]


def next_event(plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> e.Event | Awaited:
    """The next automatic event, or what is awaited."""
    if state.finished:
        return Done()
    if state.open is not None:
        return _open(plan, state)
    if state.activity is None:
        return _entrance(plan, state, policy, now)
    if state.left_to is not None:
        return arrived(plan, state, now)
    if state.exit_to is not None or state.next_key == END:
        return _exit(plan, state, policy)
    op = plan.program(state.activity).ops[state.next_key]
    following = plan.program(state.activity).after(op.key)
    match op:
        case DoStep():
            return _do(plan, state, op, following)
        case ConfirmStep():
            return _confirm(plan, state, op, following, policy, now)
        case AskGate():
            return _ask(plan, state, op, following, policy, now)
        case EnterLoop():
            return enter_loop(plan, state, op, following, by_hand=policy.loops == "advanced")
        case RepeatLoop():
            return repeat_loop(plan, state, op, by_hand=policy.loops == "advanced")
        case _:
            assert_never(op)


def _open(plan: Plan, state: RunState) -> NeedAnswer:
    assert state.open is not None
    found = find_gate(plan, state, state.open.gate)
    assert found is not None
    return NeedAnswer(state.open.key, found.gate, state.open.opened_at, found.confirms)


def _entrance(plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> e.Event | Awaited:
    initial = plan.workflow.initial
    if initial is None and len(plan.workflow.activities) == 1:
        initial = plan.workflow.activities[0].id
    if policy.exits == "claimed":
        return NeedEntry(initial)
    if initial is not None:
        return entered(plan, state, initial, now)
    gate = entrance_gate(plan.workflow)
    if gate.id in state.answers:
        return entered(plan, state, state.answers[gate.id], now)
    if policy.exits != "taken":
        return NeedEntry(None)
    return e.GateOpened(gate.id, gate.id, now, shown(gate))


def entered(plan: Plan, state: RunState, activity_id: str, now: int) -> e.ActivityEntered:
    """The event of entering an activity, its entry actions included."""
    activity = plan.workflow.activity(activity_id)
    assert activity is not None
    sets = sets_of(plan, state, activity.entry_actions)
    return e.ActivityEntered(activity_id, state.visit + 1, plan.program(activity_id).first, now, sets)


def sets_of(plan: Plan, state: RunState, actions: tuple[Action, ...]) -> dict[str, Json]:
    """What `set` actions with a value write."""
    scope = plan.scope(state.variables)
    return {
        action.target: action.value
        for action in actions
        if action.action == "set" and action.target and action.has_value and holds(action.condition, scope)
    }


def _do(plan: Plan, state: RunState, op: DoStep, following: str) -> e.Event | Awaited:
    scope, key = plan.scope(state.variables), instance(state, op.step.id)
    if holds(op.step.condition, scope):
        return NeedStep(key, op.step)
    text = describe(op.step.condition)
    after = _past_confirmation(plan, state, op, following)
    return e.StepSkipped(key, op.step.id, after, text, unset_in(op.step.condition, scope))


def _past_confirmation(plan: Plan, state: RunState, op: DoStep, following: str) -> str:
    """Nobody confirms a step that was never done."""
    if following != f"confirm:{op.step.id}" or state.activity is None:
        return following
    return plan.program(state.activity).after(following)


def _confirm(
    plan: Plan, state: RunState, op: ConfirmStep, following: str, policy: SurfacePolicy, now: int
) -> e.Event | Awaited:
    key = instance(state, op.gate.id)
    if key in state.answers or op.gate.id in state.answers:
        return e.GatePassed(key, op.gate.id, following, "answered")
    if not needs_confirmation(plan, state, op.step):
        return e.GatePassed(key, op.gate.id, following, "condition")
    if not state.preferences.guided:
        return _assumed(key, op.gate, now)
    if policy.gates == "opened":
        return e.GateOpened(key, op.gate.id, now, shown(op.gate))
    return NeedAnswer(key, op.gate, state.entered_at, op.step)


def _assumed(key: str, gate: Gate, now: int) -> e.GateResolved:
    """Outside guided mode a confirmation is assumed, and the assumption recorded (rule 27)."""
    return e.GateResolved(
        key=key,
        gate=gate.id,
        how="assumed",
        at=now,
        channel="server",
        shown=shown(gate),
        question=gate.message,
        option="proceed",
    )


def _ask(
    plan: Plan, state: RunState, op: AskGate, following: str, policy: SurfacePolicy, now: int
) -> e.Event | Awaited:
    gate, key, scope = op.gate, instance(state, op.gate.id), plan.scope(state.variables)
    if is_answered(plan, state, gate):
        return e.GatePassed(key, gate.id, following, "answered")
    if not holds(gate.condition, scope):
        unset = unset_in(gate.condition, scope)
        return e.GatePassed(key, gate.id, following, "condition", describe(gate.condition), unset)
    if not gate.required and policy.exits != "taken":
        return e.GatePassed(key, gate.id, following, "optional")
    if policy.gates == "opened":
        return e.GateOpened(key, gate.id, now, shown(gate))
    return NeedAnswer(key, gate, state.entered_at)


def _exit(plan: Plan, state: RunState, policy: SurfacePolicy) -> e.Event | Awaited:
    if policy.exits != "taken":
        return NeedExit(exits(plan, state))
    found = chosen_exit(plan, state)
    return _undecided(plan, state) if found is None else left(plan, state, found)


def left(plan: Plan, state: RunState, found: ChosenExit) -> e.ActivityLeft:
    """The event of leaving the activity, its exit actions included."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    sets = sets_of(plan, state, activity.exit_actions)
    return e.ActivityLeft(activity.id, found.to, found.via, found.condition, found.skipping, sets)


def arrived(plan: Plan, state: RunState, now: int) -> e.ActivityEntered | e.RunCompleted:
    """The event that follows leaving: the next activity, or the end."""
    assert state.left_to is not None
    if plan.workflow.activity(state.left_to) is None:
        return e.RunCompleted("complete_with_gaps" if state.gaps else "complete", now)
    return entered(plan, state, state.left_to, now)


def _undecided(plan: Plan, state: RunState) -> NeedInput:
    names = deciding_variables(plan, state)
    listed = ", ".join(names)
    message = f"No way out of activity '{state.activity}' is open. These variables decide it: {listed}."
    return NeedInput(f"way:{state.activity}", names, message)
