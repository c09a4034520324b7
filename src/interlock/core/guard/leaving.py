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
from interlock.core.definition.program import END, AskGate, ConfirmStep, DoStep, Op, Plan
from interlock.core.definition.workflow import TERMINAL, Activity, Transition
from interlock.core.guard.audit import Audit
from interlock.core.values import merged


class _Way(Struct, frozen=True):
    """A declared way between activities; one that is `held` is opened by an answer, which was not given."""

    source: str
    to: str
    open: bool = False
    held: bool = False


def is_open(plan: Plan, audit: Audit, target: str) -> bool:
    """Say whether the activity, all of which is done, has an open exit to the target."""
    activity, goal = plan.workflow.activity(audit.activity), _node(plan, target)
    return activity is not None and any(
        exit_.open and exit_.to == goal for exit_ in _exits(plan, audit, activity)
    )


def leaves_out(plan: Plan, audit: Audit, target: str) -> bool:
    """Say whether a path to the target, from here or else from the first activity, passes what is unanswered.

    Going back along the run's own path leaves nothing out.
    """
    goal = _node(plan, target)
    if goal in (*audit.path, audit.activity):
        return False
    for start in dict.fromkeys((audit.activity, plan.workflow.initial)):
        ways = list(_ways_from(plan, audit, start, goal)) if start not in (None, goal) else []
        if start is not None and _between(start, goal, ways):
            free = _between(start, goal, [way for way in ways if not way.held])
            return not free or any(_is_unanswered(plan, audit, way.source) for way in free)
    return False


def gone_back_before(plan: Plan, audit: Audit, target: str) -> str:
    """The first activity of the path that the target leads to, if the run has gone back before it."""
    here, path = audit.activity or "", audit.path
    if target in path or (path[0] == plan.workflow.initial and _leads(plan, audit, here, target)):
        return ""
    return next((earlier for earlier in path if _leads(plan, audit, target, earlier)), "")


def left_behind(plan: Plan, audit: Audit) -> set[str]:
    """What the activity requires and leaving it now leaves out, with what was waived."""
    waived = {key.rpartition("::")[2] for key in audit.waived}
    if audit.next == END or audit.activity is None:
        return waived
    first = f"loop:{audit.rounds[0].loop}" if audit.rounds else audit.next
    ops = plan.program(audit.activity).ops
    ahead = (ops[key] for key in itertools.dropwhile(lambda key: key != first, ops))
    required = {_name(op) for op in ahead if _requires(plan, audit, op)}
    return waived | (required if audit.rounds else required - audit.answers.keys())


def past_skipped(plan: Plan, audit: Audit, target: str) -> str:
    """The activity that is entered where the target is skipped by an option or a mode."""
    scope, skipped = plan.scope(audit.variables), set(audit.skipped)
    for mode in plan.workflow.modes:
        if scope.value(mode.activation_variable) is True:
            skipped.update(mode.skip_activities)
    while target in skipped:
        skipped.remove(target)
        activity = plan.workflow.activity(target)
        target = (_default(plan, activity) if activity else None) or TERMINAL
    return target


def _node(plan: Plan, target: str) -> str:
    return TERMINAL if plan.workflow.is_end(target) else target


def _exits(plan: Plan, audit: Audit, activity: Activity) -> Iterator[_Way]:
    """Yield the exits of an activity; of several to one target, one that holds counts before a claim."""
    expected, by_default = _expected(plan, audit, activity)
    found: dict[str, tuple[tuple[bool, bool, bool], _Way]] = {}
    unconditional, deciding = set[str](), None
    for declared, condition, is_transition in _declared(plan, activity):
        to = past_skipped(plan, audit, declared)
        if condition is None:
            is_free = is_transition and (expected is None or by_default)
            ranked = (is_free, True, True), _Way(activity.id, to, is_free)
        else:
            ranked = _conditional(plan, audit, activity, to, condition)
            deciding = condition if to == expected and ranked[1].open else deciding
        if to not in found or ranked[0] > found[to][0]:
            found[to] = ranked
            unconditional = unconditional | {to} if condition is None else unconditional - {to}
    decided = deciding is not None and _answer_opens(plan, audit, Not(deciding), [*variables_of(deciding)])
    for to, (_, way) in found.items():
        is_chosen = audit.exit_to is not None and activity.id == audit.activity
        is_held = is_chosen or way.held or (decided and to in unconditional and not way.open)
        if to != expected:
            yield _Way(activity.id, _node(plan, to), way.open and not is_chosen, is_held)
    if expected is not None:
        yield _Way(activity.id, _node(plan, expected), open=True)


def _expected(plan: Plan, audit: Audit, activity: Activity) -> tuple[str | None, bool]:
    """The exit that an answer or the variables choose, and whether as the default; None if neither does."""
    scope, workflow = plan.scope(audit.variables), plan.workflow
    if audit.exit_to is not None and activity.id == audit.activity and workflow.has_target(audit.exit_to):
        return past_skipped(plan, audit, audit.exit_to), False
    for decision in activity.decisions:
        true = [it for it in decision.branches if it.condition and holds(it.condition, scope, unknown=False)]
        marked = [it for it in decision.branches if it.default]
        plain = [it for it in decision.branches if it.condition is None]
        for branch in true or (marked or plain)[:1]:
            if branch.to and workflow.has_target(branch.to):
                return past_skipped(plan, audit, branch.to), False
    for transition in _transitions(plan, activity):
        if transition.condition is not None and holds(transition.condition, scope, unknown=False):
            return past_skipped(plan, audit, transition.to), False
    fallback = _default(plan, activity)
    ends = any(branch.default and branch.to is None for it in activity.decisions for branch in it.branches)
    if fallback is None and (
        ends or all(_is_shut(plan, audit, it) for _, it, _ in _declared(plan, activity))
    ):
        return TERMINAL, False
    return (past_skipped(plan, audit, fallback) if fallback else None), bool(_transitions(plan, activity))


def _conditional(
    plan: Plan, audit: Audit, activity: Activity, to: str, condition: Condition
) -> tuple[tuple[bool, bool, bool], _Way]:
    """An exit with a condition, and how it ranks among those to one target."""
    scope, reads = plan.scope(audit.variables), [*variables_of(condition)]
    if holds(condition, scope, unknown=False):
        return (True, not unset_in(condition, scope), True), _Way(activity.id, to, open=True)
    is_false = _is_shut(plan, audit, condition)
    unset = [] if is_false else [name for name in reads if not scope.is_set(name)]
    held = _answer_opens(plan, audit, condition, unset or reads)
    is_claim = bool(unset) and not held
    return (is_claim, not unset, not is_false), _Way(activity.id, to, is_claim, held)


def _is_shut(plan: Plan, audit: Audit, condition: Condition | None) -> bool:
    """Say whether a condition is false by values of the run, or by what a question owns."""
    roots = {root(name) for name in variables_of(condition)}
    settled = {name for name in roots if audit.owner_of(name) is not None}
    return is_known_false(condition, plan.scope(audit.variables), settled)


def _answer_opens(plan: Plan, audit: Audit, condition: Condition, names: Iterable[str]) -> bool:
    """Say whether an option of a required gate sets one of these and may make the condition true."""
    for _, sets in (known for name in names for known in plan.decisions.get(root(name), ())):
        is_filled = any(isinstance(value, str) and any(variables_in(value)) for value in sets.values())
        if is_filled or not is_known_false(condition, plan.scope(merged(audit.variables, sets))):
            return True
    return False


def _declared(plan: Plan, activity: Activity) -> Iterator[tuple[str, Condition | None, bool]]:
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to is not None and plan.workflow.has_target(branch.to):
                yield branch.to, branch.condition, False
    for transition in _transitions(plan, activity):
        yield transition.to, transition.condition, True


def _transitions(plan: Plan, activity: Activity) -> list[Transition]:
    return [transition for transition in activity.transitions if plan.workflow.has_target(transition.to)]


def _default(plan: Plan, activity: Activity) -> str | None:
    """The exit that is taken where no condition holds; an activity without transitions leads to the end."""
    declared = _transitions(plan, activity)
    marked = [transition.to for transition in declared if transition.default]
    plain = [transition.to for transition in declared if transition.condition is None]
    return next(iter([*marked, *plain]), None) if declared else TERMINAL


def _ways(plan: Plan, audit: Audit, activity: Activity) -> Iterator[_Way]:
    """Yield the exits of an activity, and what the options of its gates lead to."""
    yield from _exits(plan, audit, activity)
    is_on_path = activity.id in (*audit.path, audit.activity)
    for gate in activity.gates():
        for to in (option.effect.transition_to for option in gate.options):
            if to is not None and plan.workflow.has_target(to):
                was_chosen = is_on_path and audit.led.get(f"{activity.id}/{gate.id}") == to
                yield _Way(activity.id, _node(plan, past_skipped(plan, audit, to)), held=not was_chosen)


def _ways_from(plan: Plan, audit: Audit, start: str | None, goal: str) -> Iterator[_Way]:
    """Yield all ways that can be reached from an activity, short of the goal."""
    reached = [start]
    for name in reached:  # which grows
        activity = plan.workflow.activity(name) if name != goal else None
        for way in _ways(plan, audit, activity) if activity is not None else ():
            yield way
            if way.to not in reached:
                reached.append(way.to)


def _leads(plan: Plan, audit: Audit, start: str, goal: str) -> bool:
    return bool(_between(start, goal, list(_ways_from(plan, audit, start, goal))))


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


def _is_unanswered(plan: Plan, audit: Audit, name: str) -> bool:
    """Say whether an activity requires something that this run has not come through or ruled out."""
    activity = plan.workflow.activity(name)
    if activity is None or not activity.required or name == audit.activity:
        return False
    left = audit.left_out.get(name, ())
    ops = plan.program(name).ops.values()
    return any(_requires(plan, audit, op) for op in ops if name not in audit.path or _name(op) in left)


def _name(op: Op) -> str:
    match op:
        case AskGate(gate=gate) | ConfirmStep(gate=gate):
            return gate.id
        case DoStep(step=step):
            return step.id
        case _:
            return op.loop.id


def _requires(plan: Plan, audit: Audit, op: Op) -> bool:
    """Say whether an operation requires an answer or an output, unless values of the run rule it out."""
    scope = plan.scope(audit.variables)
    match op:
        case AskGate(gate=gate):
            return gate.required and not is_known_false(gate.condition, scope)
        case ConfirmStep(step=step):
            rule = None if isinstance(step.confirm, bool) else step.confirm
            is_ruled_out = is_known_false(rule, scope) or is_known_false(step.condition, scope)
            return audit.applied.guided and not is_ruled_out
        case DoStep(step=step):
            return step.required and step.requires_output and not is_known_false(step.condition, scope)
        case _:
            return False
