"""Where a run may go from an activity: to an open exit, back along its path, or past nothing required.

A declared exit is open if its condition holds, or as a claim where nobody has set what it reads and no answer
would. Another target is a jump, which is refused if any path to it passes something unanswered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from interlock.core.definition.conditions import Condition, Not, holds, is_known_false, unset_in, variables_of
from interlock.core.definition.expressions import root, variables_in
from interlock.core.definition.program import END, AskGate, ConfirmStep, DoStep, Op, loop_key
from interlock.core.definition.workflow import TERMINAL, Activity, Transition
from interlock.core.guard.hearing import Hearing
from interlock.core.run.keys import item_of
from interlock.core.values import merged


class _Way(Struct, frozen=True):
    """A declared way between activities; one that is `held` is opened by an answer, which was not given."""

    source: str
    to: str
    open: bool = False
    held: bool = False


def is_open(hearing: Hearing, target: str) -> bool:
    """Say whether the activity, all of which is done, has an open exit to the target."""
    activity, goal = hearing.workflow.activity(hearing.visit.activity), _node(hearing, target)
    return activity is not None and any(way.open and way.to == goal for way in _exits(hearing, activity))


def leaves_out(hearing: Hearing, target: str) -> bool:
    """Say whether a path to the target, from here or else from the first activity, passes what is unanswered.

    Going back along the run's own path leaves nothing out. Where no path leads to the target, it is judged as
    if nothing were skipped: it may be skipped itself, or stand behind what is.
    """
    goal = _node(hearing, target)
    if goal in (*hearing.audit.path, hearing.visit.activity):
        return False
    for judged in (hearing, hearing.without_skipping()):
        for start in dict.fromkeys((hearing.visit.activity, hearing.workflow.initial)):
            ways = list(_ways_from(judged, start, goal)) if start not in (None, goal) else []
            if start is not None and _between(start, goal, ways):
                free = _between(start, goal, [way for way in ways if not way.held])
                return not free or any(_is_unanswered(hearing, way.source) for way in free)
    return False


def gone_back_before(hearing: Hearing, target: str) -> str:
    """The first activity of the path that the target leads to, if the run has gone back before it."""
    here, path = hearing.visit.activity or "", hearing.audit.path
    if target in path or (path[0] == hearing.workflow.initial and _leads(hearing, here, target)):
        return ""
    return next((earlier for earlier in path if _leads(hearing, target, earlier)), "")


def left_behind(hearing: Hearing) -> set[str]:
    """What the activity requires and leaving it now leaves out, with what was waived."""
    visit, waived = hearing.visit, {item_of(key) for key in hearing.visit.waived}
    if visit.next == END or visit.activity is None:
        return waived
    first, ops = loop_key(visit.rounds[0].loop) if visit.rounds else visit.next, hearing.program.ops
    ahead = itertools.dropwhile(lambda op: op.key != first, ops.values())
    answered = set[str]() if visit.rounds else {*visit.answers}
    return waived | ({*_required(hearing, ahead)} - answered)


def past_skipped(hearing: Hearing, target: str) -> str:
    """The activity that is entered where the target is skipped by an option or a mode."""
    scope, skipped = hearing.scope, set(hearing.audit.skipped if hearing.skips else ())
    for mode in hearing.workflow.modes if hearing.skips else ():
        if scope.value(mode.activation_variable) is True:
            skipped.update(mode.skip_activities)
    while target in skipped:
        skipped.remove(target)
        activity = hearing.workflow.activity(target)
        target = (_default(hearing, activity) if activity else None) or TERMINAL
    return target


def _node(hearing: Hearing, target: str) -> str:
    return TERMINAL if hearing.workflow.is_end(target) else target


def _exits(hearing: Hearing, activity: Activity) -> Iterator[_Way]:
    """Yield the exits of an activity; of several to one target, one that holds counts before a claim."""
    expected, by_default = _expected(hearing, activity)
    found: dict[str, tuple[tuple[bool, bool, bool], _Way, Condition | None]] = {}
    deciding = None
    for declared, condition, is_transition in _declared(hearing, activity):
        to = past_skipped(hearing, declared)
        if condition is None:
            is_free = is_transition and (expected is None or by_default)
            rank, way = (is_free, True, True), _Way(activity.id, to, is_free)
        else:
            rank, way = _conditional(hearing, activity, to, condition)
            deciding = condition if to == expected and way.open else deciding
        if to not in found or rank > found[to][0]:
            found[to] = rank, way, condition
    decided = deciding is not None and _answer_opens(hearing, Not(deciding), [*variables_of(deciding)])
    is_chosen = hearing.visit.exit_to is not None and activity.id == hearing.visit.activity
    for to, (_, way, condition) in found.items():
        is_held = is_chosen or way.held or (decided and condition is None and not way.open)
        if to != expected:
            yield _Way(activity.id, _node(hearing, to), way.open and not is_chosen, is_held)
    if expected is not None:
        yield _Way(activity.id, _node(hearing, expected), open=True)


def _expected(hearing: Hearing, activity: Activity) -> tuple[str | None, bool]:
    """The exit that an answer or the variables choose, and whether as the default; None if neither does."""
    scope, workflow, visit = hearing.scope, hearing.workflow, hearing.visit
    chosen = visit.exit_to if activity.id == visit.activity else None
    if chosen is not None and workflow.has_target(chosen):
        return past_skipped(hearing, chosen), False
    for decision in activity.decisions:
        true = [it for it in decision.branches if it.condition and holds(it.condition, scope, unknown=False)]
        marked = [it for it in decision.branches if it.default]
        plain = [it for it in decision.branches if it.condition is None]
        for branch in true or (marked or plain)[:1]:
            if branch.to and workflow.has_target(branch.to):
                return past_skipped(hearing, branch.to), False
    for transition in _transitions(hearing, activity):
        if transition.condition is not None and holds(transition.condition, scope, unknown=False):
            return past_skipped(hearing, transition.to), False
    fallback = _default(hearing, activity)
    if fallback is None:
        branches = (branch for decision in activity.decisions for branch in decision.branches)
        is_end = any(branch.default and branch.to is None for branch in branches)
        is_closed = all(_is_shut(hearing, condition) for _, condition, _ in _declared(hearing, activity))
        return (TERMINAL if is_end or is_closed else None), bool(_transitions(hearing, activity))
    return past_skipped(hearing, fallback), bool(_transitions(hearing, activity))


def _conditional(
    hearing: Hearing, activity: Activity, to: str, condition: Condition
) -> tuple[tuple[bool, bool, bool], _Way]:
    """An exit with a condition, and how it ranks among those to one target."""
    scope, reads = hearing.scope, [*variables_of(condition)]
    if holds(condition, scope, unknown=False):
        return (True, not unset_in(condition, scope), True), _Way(activity.id, to, open=True)
    is_false = _is_shut(hearing, condition)
    unset = [] if is_false else [name for name in reads if not scope.is_set(name)]
    held = _answer_opens(hearing, condition, unset or reads)
    is_claim = bool(unset) and not held
    return (is_claim, not unset, not is_false), _Way(activity.id, to, is_claim, held)


def _is_shut(hearing: Hearing, condition: Condition | None) -> bool:
    """Say whether a condition is false by values of the run, or by what a question owns."""
    roots = {root(name) for name in variables_of(condition)}
    settled = {name for name in roots if hearing.audit.owner_of(name) is not None}
    return is_known_false(condition, hearing.scope, settled)


def _answer_opens(hearing: Hearing, condition: Condition, names: Iterable[str]) -> bool:
    """Say whether an option of a required gate sets one of these and may make the condition true."""
    for _, sets in (known for name in names for known in hearing.plan.decisions.get(root(name), ())):
        is_filled = any(isinstance(value, str) and any(variables_in(value)) for value in sets.values())
        scope = hearing.plan.scope(merged(hearing.audit.variables, sets))
        if is_filled or not is_known_false(condition, scope):
            return True
    return False


def _declared(hearing: Hearing, activity: Activity) -> Iterator[tuple[str, Condition | None, bool]]:
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to is not None and hearing.workflow.has_target(branch.to):
                yield branch.to, branch.condition, False
    for transition in _transitions(hearing, activity):
        yield transition.to, transition.condition, True


def _transitions(hearing: Hearing, activity: Activity) -> list[Transition]:
    return [transition for transition in activity.transitions if hearing.workflow.has_target(transition.to)]


def _default(hearing: Hearing, activity: Activity) -> str | None:
    """The exit that is taken where no condition holds; an activity without transitions leads to the end."""
    declared = _transitions(hearing, activity)
    marked = [transition.to for transition in declared if transition.default]
    plain = [transition.to for transition in declared if transition.condition is None]
    return next(iter([*marked, *plain]), None) if declared else TERMINAL


def _ways(hearing: Hearing, activity: Activity | None) -> Iterator[_Way]:
    """Yield the exits of an activity, and what the options of its gates lead to."""
    if activity is None:
        return
    yield from _exits(hearing, activity)
    is_on_path = activity.id in (*hearing.audit.path, hearing.visit.activity)
    for gate in activity.gates():
        for to in (option.effect.transition_to for option in gate.options):
            if to is not None and hearing.workflow.has_target(to):
                was_chosen = is_on_path and hearing.audit.led.get(f"{activity.id}/{gate.id}") == to
                yield _Way(activity.id, _node(hearing, past_skipped(hearing, to)), held=not was_chosen)


def _ways_from(hearing: Hearing, start: str | None, goal: str) -> Iterator[_Way]:
    """Yield all ways that can be reached from an activity, short of the goal."""
    reached = [start]
    for name in reached:  # which grows
        activity = hearing.workflow.activity(name) if name != goal else None
        for way in _ways(hearing, activity):
            yield way
            if way.to not in reached:
                reached.append(way.to)


def _leads(hearing: Hearing, start: str, goal: str) -> bool:
    return bool(_between(start, goal, list(_ways_from(hearing, start, goal))))


def _between(start: str, goal: str, ways: Sequence[_Way]) -> list[_Way]:
    """Return the ways that lie on a path from one activity to another; none comes back to the first."""
    onward = [(way.source, way.to) for way in ways if way.to != start]
    after = _closure(start, onward)
    before = _closure(goal, [(to, source) for source, to in onward])
    return [way for way in ways if way.to != start and way.source in after and way.to in before]


def _closure(start: str, pairs: Sequence[tuple[str, str]]) -> set[str]:
    reached, known = {start}, 0
    while known != len(reached):
        known = len(reached)
        reached.update(to for source, to in pairs if source in reached)
    return reached


def _is_unanswered(hearing: Hearing, name: str) -> bool:
    """Say whether an activity requires something that this run has not come through or ruled out."""
    activity = hearing.workflow.activity(name)
    if activity is None or not activity.required or name == hearing.visit.activity:
        return False
    left, is_new = hearing.audit.left_out.get(name, ()), name not in hearing.audit.path
    required = _required(hearing, hearing.plan.program(name).ops.values())
    return any(is_new or item in left for item in required)


def _required(hearing: Hearing, ops: Iterable[Op]) -> Iterator[str]:
    """Name what requires an answer or an output, unless values of the run rule it out."""
    scope = hearing.scope
    for op in ops:
        match op:
            case AskGate(gate=gate):
                if gate.required and not is_known_false(gate.condition, scope):
                    yield gate.id
            case ConfirmStep(step=step, gate=gate):
                rule = None if isinstance(step.confirm, bool) else step.confirm
                is_ruled_out = is_known_false(rule, scope) or is_known_false(step.condition, scope)
                if hearing.terms.guided and not is_ruled_out:
                    yield gate.id
            case DoStep(step=step):
                if step.required and step.requires_output and not is_known_false(step.condition, scope):
                    yield step.id
