"""What happens without a command: the next automatic event, or what the run waits for.

`settle` repeats `next_event` until something is awaited. The surfaces differ only in where that stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard, assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import Condition, describe, holds, undecided_by, unset_in
from interlock.core.definition.expressions import root, variables_in
from interlock.core.definition.program import (
    END,
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Plan,
    RepeatLoop,
    confirmation_key,
    entrance_gate,
)
from interlock.core.definition.workflow import Action, Gate, Loop, Step
from interlock.core.engine.evolve import evolve
from interlock.core.engine.gates import (
    applies,
    find_gate,
    found_at,
    is_answered,
    needs_confirmation,
    question_of,
    question_shown,
)
from interlock.core.engine.paths.exits import (
    ChosenExit,
    chosen_exit,
    deciding_variables,
    exits,
    undecided_exits,
    unset_before,
)
from interlock.core.engine.paths.jumps import gone_back_before, left_unanswered
from interlock.core.engine.paths.loops import enter_loop, repeat_loop
from interlock.core.engine.requirements import asked_inputs
from interlock.core.run import events as e
from interlock.core.run.keys import rounds_in
from interlock.core.run.outcomes import (
    Awaited,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
)
from interlock.core.run.state import Gaps, Route, RunState, instance
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json
from interlock.core.variables.roots import input_roots, unset_in_question
from interlock.core.variables.typed_values import example_of, fitting
from interlock.core.variables.writes import barred, left_unset

MOST_EVENTS = 10_000
CIRCLE = "circle:"
REST = "rest:"
UNSET = "unset:"
EXIT = "way:"


def settle(
    plan: Plan, state: RunState, policy: SurfacePolicy, now: int
) -> tuple[tuple[e.Event, ...], RunState, Awaited]:
    """Apply automatic events until something is awaited; a circular run stops, a very long one rests."""
    events: list[e.Event] = []
    visited = [_Visited(state, 0)]
    while len(events) < MOST_EVENTS:
        step = next_event(plan, state, policy, now)
        if not isinstance(step, e.RunEvent):
            return tuple(events), state, step
        for event in (step, *consequences(step)):
            events.append(event)
            state = evolve(state, event)
        if isinstance(step, e.ActivityEntered):
            comparable = _comparable(state)
            before = next((past for past in visited if _comparable(past.state) == comparable), None)
            if before is not None:
                return tuple(events[: before.events]), before.state, _circle(plan, visited, events, before)
            visited.append(_Visited(state, len(events)))
    message = f"The run has passed {MOST_EVENTS} conditions by itself and has not finished; call again."
    return tuple(events), state, NeedInput(f"{REST}{state.activity}", (), message)


class _Visited(Struct, frozen=True):
    """A state that settling has passed through, and how many events led to it."""

    state: RunState
    events: int


def _comparable(state: RunState) -> RunState:
    """Return the state without its counts and times: a run continues alike from states equal but for them."""
    visit = replace(state.visit, number=0, entered_at=0, answered=0)
    return replace(state, visit=visit, gaps=Gaps(), route=Route(skipped=state.route.skipped))


def _circle(
    plan: Plan, visited: Sequence[_Visited], events: Sequence[e.Event], before: _Visited
) -> NeedInput:
    """Ask for input, without which the run would come back to this state for ever."""
    states = [earlier.state for earlier in visited if earlier.events >= before.events]
    deciding = [name for state in states for name in deciding_variables(plan, state)]
    passing = [name for event in events[before.events :] for name in getattr(event, "unset", ())]
    names = tuple(dict.fromkeys([*passing, *deciding]))
    through = ", ".join(f"'{state.activity}'" for state in states)
    listed = f" These variables decide it: {', '.join(names)}." if names else ""
    message = f"The run goes in a circle through {through} and finds nothing to do.{listed}"
    return NeedInput(
        f"{CIRCLE}{before.state.activity}", names, message, example_of(plan, before.state.variables, names)
    )


def consequences(event: e.Event) -> tuple[e.Event, ...]:
    """Return the gaps that an event causes: a loop cut short or not steered, an assumption, unset names."""
    match event:
        case e.LoopLeft(because="limit"):
            text = f"Loop '{event.loop}' was left at its limit of {event.iterations} iterations."
            return (e.GapRecorded("warning", "unexpected", "loop_limit", text, event.loop),)
        case e.LoopLeft(because="undecided"):
            text = f"Loop '{event.loop}' was left because no step decided whether it goes on."
            return (e.GapRecorded("critical", "contract_violation", "loop_undecided", text, event.loop),)
        case e.ActivityLeft(via="closed"):
            text = f"The run ended in activity '{event.activity}': the conditions of all its exits are false."
            return (e.GapRecorded("warning", "unexpected", "exits_closed", text, event.activity),)
        case e.QuestionShown(unset=(_, *_)):
            listed = ", ".join(f"'{path}'" for path in event.unset)
            text = f"Checkpoint '{event.gate}' was put without {listed}, which nobody has set."
            return (e.GapRecorded("critical", "unexpected", "missing_input", text, event.key),)
        case e.GateResolved(how="assumed"):
            text = f"'{event.question}' was not asked; assumed: {event.option}."
            return (e.GapRecorded("info", "user_only_dependency", "needs_user_approval", text, event.key),)
        case _:
            return ()


def awaited(plan: Plan, state: RunState, policy: SurfacePolicy) -> Awaited:
    """Return what the run waits for on this surface, after the events that settling it would record."""
    return settle(plan, state, policy, state.visit.entered_at)[2]


def next_event(
    plan: Plan, state: RunState, policy: SurfacePolicy, now: int, *, asks: bool = True
) -> e.Event | Awaited:
    """Return the next automatic event, or what is awaited; `asks` for what nobody has set, too (rule 20)."""
    event = _next_event(plan, state, policy, now)
    if not asks or not isinstance(event, e.RunEvent):
        return event
    return _forgotten(plan, state, event, policy) or event


def _forgotten(plan: Plan, state: RunState, event: e.Event, policy: SurfacePolicy) -> NeedInput | None:
    """Ask for variables that nobody has set, if the activity would be left because of that alone.

    Steps, gates, loops or exits would be passed over, and nothing else would come before its end.
    """
    if not _undecided(plan, state, event):
        return None
    names, passed = list[str](), list[str]()
    following: e.Event | Awaited = event
    while isinstance(following, e.RunEvent) and not isinstance(following, e.LoopIterated):
        if undecided := _undecided(plan, state, following):
            names += undecided
            passed.append(_passed_over(following))
        if isinstance(following, e.ActivityLeft):
            break
        state = evolve(state, following)
        following = _next_event(plan, state, policy, 0)
    is_at_exits = isinstance(following, NeedInput) and following.subject.startswith(EXIT)
    if not (isinstance(following, (e.ActivityLeft, NeedExit)) or is_at_exits):
        return None
    lacking = ", ".join(f"'{path}'" for path in dict.fromkeys(names))
    left_out, example = ", ".join(dict.fromkeys(passed)), example_of(plan, state.variables, names)
    whole = "the workflow" if len(plan.workflow.activities) == 1 else f"activity '{state.activity}'"
    message = f"Nobody has set {lacking}: without that, {whole} ends past {left_out}."
    text = f"{message} Send it, or null to leave it unset."
    return NeedInput(f"{UNSET}{state.activity}", tuple(example), text, example)


def lacks_unset(pending: Awaited) -> TypeGuard[NeedInput]:
    """Say whether the run waits for what nobody has set (rule 20)."""
    return isinstance(pending, NeedInput) and pending.subject.startswith(UNSET)


def _undecided(plan: Plan, state: RunState, event: e.Event) -> tuple[str, ...]:
    """Name what nobody has set, what alone passes over an item or an exit, and what an agent may set."""
    if isinstance(event, e.ActivityLeft):
        names = undecided_exits(plan, state) if event.via != "option" else ()
    else:
        names = undecided_by(_condition_of(plan, state, event), plan.scope(state.variables))
    return tuple(name for name in names if root(name) not in barred(plan, state)) if names else ()


def _condition_of(plan: Plan, state: RunState, event: e.Event) -> Condition | None:
    """Return the condition by which an event passes over the item that comes next."""
    op = plan.program(state.activity).ops.get(state.visit.next_key) if state.activity else None
    match event, op:
        case e.StepSkipped(), DoStep(step=step):
            return step.condition
        case e.GatePassed(because="condition"), AskGate(gate=gate):
            return gate.condition
        case e.GatePassed(because="condition"), ConfirmStep(step=Step(confirm=condition)):
            return None if isinstance(condition, bool) else condition
        case e.LoopLeft(because="passed"), EnterLoop(loop=loop):
            return loop.run_condition
        case e.LoopLeft(because="condition"), EnterLoop(loop=loop):
            return loop.condition
        case _:
            return None


def _passed_over(event: e.Event) -> str:
    match event:
        case e.StepSkipped():
            return f"step '{event.step}'"
        case e.GatePassed():
            return f"checkpoint '{event.gate}'"
        case e.LoopLeft():
            return f"loop '{event.loop}'"
        case _:
            return "an exit that it decides"


def _next_event(plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> e.Event | Awaited:
    """Return the next automatic event, or what is awaited, whatever nobody has set."""
    if state.finished:
        return Done()
    if (opened := state.visit.open) is not None:
        found = find_gate(plan, state, opened.gate)
        assert found is not None
        return NeedAnswer(opened.key, found.gate, opened.opened_at, found.confirms)
    if state.activity is None:
        return _first_activity(plan, state, policy, now)
    if state.visit.left_to is not None:
        return arrived(plan, state, now)
    if state.visit.exit_to is not None or state.visit.next_key == END:
        return _late(plan, state, policy, now) or _at_the_end(plan, state, policy)
    program, scope = plan.program(state.activity), plan.scope(state.variables)
    op, following = program.ops[state.visit.next_key], program.after(state.visit.next_key)
    match op:
        case DoStep(step=step):
            key, condition = instance(state, step.id), step.condition
            if holds(condition, scope):
                return NeedStep(key, step, asked_inputs(plan, state, step))
            if following == confirmation_key(step.id):
                following = program.after(following)  # a skipped step is not confirmed
            return e.StepSkipped(key, step.id, following, describe(condition), unset_in(condition, scope))
        case ConfirmStep():
            return _confirm(plan, state, op, following, policy, now)
        case AskGate():
            return _ask(plan, state, op, following, policy, now)
        case EnterLoop():
            return enter_loop(plan, state, op, following, by_hand=policy.loops == "advanced")
        case RepeatLoop():
            late = _late(plan, state, policy, now)
            return late or repeat_loop(plan, state, op, by_hand=policy.loops == "advanced")
        case _:
            assert_never(op)


def due_roots(plan: Plan, state: RunState, policy: SurfacePolicy) -> frozenset[str]:
    """Name what the own questions of the step that the run has come to show.

    What nobody has set is not shown yet. What a gate shows is in the state once its question is put.
    """
    if state.preferences.never_stops:  # there nobody is asked
        return frozenset()
    scope, due = plan.scope(state.variables), next_event(plan, state, policy, 0)
    if not isinstance(due, NeedStep):
        return frozenset()
    return frozenset(
        name
        for need in due.step.user_input
        for name in input_roots(plan.workflow, due.step, need)
        if not scope.lacks(name)
    )


def asked_for_again(plan: Plan, state: RunState, policy: SurfacePolicy) -> frozenset[str]:
    """Name what the run waits for, and a question has asked for in vain."""
    if not state.ownership.shown:
        return frozenset()
    return left_unset(plan, state, waited_for(plan, state, policy))


def waited_for(plan: Plan, state: RunState, policy: SurfacePolicy) -> frozenset[str]:
    """Name what a question or a loop waits for that the run has come to, and nobody has set."""
    match next_event(plan, state, policy, 0):
        case NeedInput(gate=Gate(), example=example) | NeedInput(loop=Loop(), example=example):
            return frozenset(example)
        case NeedLoop(loop=loop, needs_items=True):
            return frozenset([root(loop.items or "items")])
        case NeedStep(step=step):
            scope = plan.scope(state.variables)
            paths = (path for need in step.user_input for path in variables_in(need.question))
            return frozenset(root(path) for path in paths if scope.lacks(path))
        case _:
            return frozenset()


def _first_activity(plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> e.Event | Awaited:
    initial = plan.workflow.initial
    if initial is None and len(plan.workflow.activities) == 1:
        initial = plan.workflow.activities[0].id
    if policy.exits == "claimed":
        return NeedEntry(initial)
    if initial is not None:
        return entered(plan, state, initial, now)
    gate = entrance_gate(plan.workflow)
    if gate.id in state.visit.answers:
        return entered(plan, state, state.visit.answers[gate.id], now)
    if policy.exits != "taken":
        return NeedEntry(None)
    return question_shown(plan, state, NeedAnswer(gate.id, gate, now), now, policy.name)


def entered(plan: Plan, state: RunState, activity_id: str, now: int) -> e.ActivityEntered:
    """Return the event of entering an activity, with what its entry actions set."""
    activity = plan.workflow.activity(activity_id)
    assert activity is not None
    sets = sets_of(plan, state, activity.entry_actions)
    return e.ActivityEntered(activity_id, state.visit.number + 1, plan.program(activity_id).first, now, sets)


def sets_of(plan: Plan, state: RunState, actions: tuple[Action, ...]) -> dict[str, Json]:
    """Return what `set` actions with a value write."""
    scope = plan.scope(state.variables)
    written = {
        action.assigns: action.value
        for action in actions
        if action.assigns and holds(action.condition, scope, unknown=False)
    }
    return fitting(plan, written)


def _confirm(
    plan: Plan, state: RunState, op: ConfirmStep, following: str, policy: SurfacePolicy, now: int
) -> e.Event | Awaited:
    gate, key = op.gate, instance(state, op.gate.id)
    if key in state.visit.answers:
        return e.GatePassed(key, gate.id, following, "answered")
    if not needs_confirmation(plan, state, op.step):
        condition = None if isinstance(op.step.confirm, bool) else op.step.confirm
        unset = unset_in(condition, plan.scope(state.variables))
        return e.GatePassed(key, gate.id, following, "condition", describe(condition), unset)
    question = question_of(plan, state, gate, op.step)
    if not state.preferences.guided:
        # outside guided mode a confirmation is assumed, and the assumption recorded (rule 27)
        return e.GateResolved(
            key=key,
            gate=gate.id,
            how="assumed",
            at=now,
            channel="server",
            shown=question.digest,
            question=question.text,
            option="proceed",
        )
    return _put(plan, state, NeedAnswer(key, gate, now, op.step), policy)


def _ask(
    plan: Plan, state: RunState, op: AskGate, following: str, policy: SurfacePolicy, now: int
) -> e.Event | Awaited:
    gate, key, scope = op.gate, instance(state, op.gate.id), plan.scope(state.variables)
    if state.visit.answers.get(key):
        return e.GatePassed(key, gate.id, following, "answered")
    if not holds(gate.condition, scope):
        unset = unset_in(gate.condition, scope)
        return e.GatePassed(key, gate.id, following, "condition", describe(gate.condition), unset)
    if not gate.required and unwhole(plan, state, gate) is not None:
        return e.GatePassed(key, gate.id, following, "optional")
    return _put(plan, state, NeedAnswer(key, gate, now), policy)


def _put(plan: Plan, state: RunState, need: NeedAnswer, policy: SurfacePolicy) -> e.Event | Awaited:
    """Put a question, or ask for what it shows and nobody has set: questions are whole (rule 26)."""
    lacking = unwhole(plan, state, need.gate)
    if lacking is not None or policy.gates != "opened":
        return lacking or need
    return question_shown(plan, state, need, need.opened_at, policy.name)


def unwhole(plan: Plan, state: RunState, gate: Gate) -> NeedInput | None:
    """Return what a question lacks before it can be put; in never-stop mode that is a gap."""
    unset = () if state.preferences.never_stops else unset_in_question(plan.scope(state.variables), gate)
    if not unset:
        return None
    listed = ", ".join(f"'{path}'" for path in unset)
    message = f"The question of checkpoint '{gate.id}' shows {listed}, which nobody has set."
    example = example_of(plan, state.variables, unset)
    return NeedInput(f"question:{gate.id}", tuple(example), message, example, gate=gate)


def _late(plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> e.Event | Awaited | None:
    """Ask a required gate that a false condition let pass, and that applies when its round or visit is left.

    An option that leads out of the activity leaves all rounds at once (rule 23).
    """
    leaving_round = state.visit.rounds if state.visit.exit_to is None else None
    for key in state.visit.passed:
        if leaving_round is not None and rounds_in(key) != leaving_round:
            continue
        found = found_at(plan, state, key)
        is_settled = key in state.visit.waived or is_answered(plan, state, found.gate, key)
        if is_settled or not found.gate.required or not applies(plan, state, found):
            continue
        if found.confirms is not None and not state.preferences.guided:
            continue
        return _put(plan, state, NeedAnswer(key, found.gate, now, found.confirms), policy)
    return None


def _at_the_end(plan: Plan, state: RunState, policy: SurfacePolicy) -> e.Event | Awaited:
    """Leave the activity where the server takes the exits; otherwise list them."""
    if policy.exits != "taken":
        return NeedExit(exits(plan, state))
    chosen = chosen_exit(plan, state)
    if chosen is not None:
        return replace(left(plan, state, chosen), unset=unset_before(plan, state))
    names = deciding_variables(plan, state)
    listed = ", ".join(names)
    message = f"No exit of activity '{state.activity}' is open. These variables decide it: {listed}."
    return NeedInput(f"{EXIT}{state.activity}", names, message, example_of(plan, state.variables, names))


def left(plan: Plan, state: RunState, chosen: ChosenExit) -> e.ActivityLeft:
    """Return the event of leaving the activity, with what its exit actions set."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    sets = sets_of(plan, state, activity.exit_actions)
    return e.ActivityLeft(
        activity.id,
        chosen.to,
        chosen.via,
        chosen.condition,
        chosen.skipping,
        sets,
        unanswered=left_unanswered(plan, state),
    )


def arrived(
    plan: Plan, state: RunState, now: int, *, jumped: bool = False
) -> e.ActivityEntered | e.RunCompleted:
    """Return the event that follows leaving: the next activity, or the end.

    Only a jump, or a run that did not begin with the first activity, goes back before its beginning.
    """
    assert state.visit.left_to is not None
    if plan.workflow.activity(state.visit.left_to) is None:
        return e.RunCompleted("complete_with_gaps" if state.gaps.open else "complete", now)
    arrival = entered(plan, state, state.visit.left_to, now)
    if not jumped and state.route.path[0] == plan.workflow.initial:
        return arrival
    return replace(arrival, before=gone_back_before(plan, state, state.visit.left_to))
