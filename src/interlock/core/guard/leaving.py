"""Where a run may go from an activity: to an open exit, back along its path, or past nothing required."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.conditions import Condition, Scope, holds, is_known_false
from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, Plan
from interlock.core.definition.workflow import TERMINAL, Activity, Step
from interlock.core.guard.audit import Audit


def may_leave_to(plan: Plan, audit: Audit, target: str) -> bool:
    """Say whether the activity, all of which is done, may be left for the target without a gap."""
    activity = plan.workflow.activity(audit.activity)
    goal = _end_or(plan, target)
    if activity is None or goal in (*audit.path, audit.activity):
        return activity is not None
    opened = {past_skipped(plan, audit, to) for to in _open_exits(plan, activity, _scope(plan, audit))}
    return goal in opened or not leaves_out(plan, audit, activity.id, goal)


def leaves_out(plan: Plan, audit: Audit, start: str, target: str) -> bool:
    """Say whether every declared path to the target passes something required that this run has not answered.

    The engine is stricter: one such path is enough for it to refuse.
    """
    goal = _end_or(plan, target)
    for beginning in dict.fromkeys((start, plan.workflow.initial or start)):
        if goal in _reached(plan, audit, beginning, avoiding=False):
            return goal not in _reached(plan, audit, beginning, avoiding=True)
    return False


def past_skipped(plan: Plan, audit: Audit, target: str) -> str:
    """The activity that is entered where the target is skipped by an option or a mode."""
    scope, skipped, seen = _scope(plan, audit), set(audit.skipped), set[str]()
    for mode in plan.workflow.modes:
        if scope.value(mode.activation_variable) is True:
            skipped.update(mode.skip_activities)
    while target in skipped - seen:
        seen.add(target)
        activity = plan.workflow.activity(target)
        target = (_default(plan, activity) if activity else None) or TERMINAL
    return _end_or(plan, target)


def requires_answer(step: Step) -> bool:
    """Say whether a step needs something of the agent or the user to be done."""
    contracts = any(contract.required for contract in step.contracts)
    return contracts or step.requires_notes or step.criteria is not None or bool(step.user_input)


def _scope(plan: Plan, audit: Audit) -> Scope:
    return plan.scope(audit.variables)


def _end_or(plan: Plan, target: str) -> str:
    return TERMINAL if plan.workflow.is_end(target) else target


def _open_exits(plan: Plan, activity: Activity, scope: Scope) -> Iterator[str]:
    """Yield the targets of exits that hold or that values of the run do not rule out.

    The one without a condition is open only where no condition holds.
    """
    listed = list(_exits(plan, activity))
    conditional = [(to, condition) for to, condition in listed if condition is not None]
    yield from (to for to, condition in conditional if not is_known_false(condition, scope))
    if any(holds(condition, scope, unknown=False) for _, condition in conditional):
        return
    defaults = [to for to, condition in listed if condition is None]
    fallback = _default(plan, activity)
    yield from [*defaults, *([fallback] if fallback else [])]
    if not fallback and all(is_known_false(condition, scope) for _, condition in conditional):
        yield TERMINAL


def _exits(plan: Plan, activity: Activity) -> Iterator[tuple[str, Condition | None]]:
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to is not None and plan.workflow.has_target(branch.to):
                yield branch.to, None if branch.default else branch.condition
    for transition in activity.transitions:
        if plan.workflow.has_target(transition.to):
            yield transition.to, transition.condition


def _default(plan: Plan, activity: Activity) -> str | None:
    """The exit that is taken where no condition holds; an activity without transitions leads to the end."""
    declared = [transition for transition in activity.transitions if plan.workflow.has_target(transition.to)]
    if not declared:
        return TERMINAL
    marked = next((transition.to for transition in declared if transition.default), None)
    return marked or next((transition.to for transition in declared if transition.condition is None), None)


def _reached(plan: Plan, audit: Audit, start: str, *, avoiding: bool) -> set[str]:
    """Return what declared paths lead to; `avoiding` goes through no activity with something unanswered."""
    reached, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        activity = plan.workflow.activity(name)
        is_barrier = (
            name != audit.activity and avoiding and activity and _is_unanswered(plan, audit, activity)
        )
        if activity is None or is_barrier:
            continue
        targets = [to for to, _ in _exits(plan, activity)]
        targets += [_default(plan, activity) or TERMINAL]
        targets += _chosen(audit, activity) if avoiding else _options(activity)
        new = {past_skipped(plan, audit, to) for to in targets} - reached
        reached |= new
        waiting += new
    return reached


def _options(activity: Activity) -> list[str]:
    options = (option for gate in activity.gates() for option in gate.options)
    return [to for option in options if (to := option.effect.transition_to) is not None]


def _chosen(audit: Audit, activity: Activity) -> list[str]:
    """What the last answers to the gates of an activity on the run's path lead to."""
    if activity.id not in (*audit.path, audit.activity):
        return []
    chosen = (audit.led.get(f"{activity.id}/{gate.id}") for gate in activity.gates())
    return [to for to in chosen if to is not None]


def _is_unanswered(plan: Plan, audit: Audit, activity: Activity) -> bool:
    """Say whether an activity requires something that this run has not come through or ruled out."""
    if not activity.required or activity.id in audit.path:
        return False
    scope = _scope(plan, audit)
    for op in plan.program(activity.id).ops.values():
        match op:
            case AskGate(gate=gate):
                if gate.required and not is_known_false(gate.condition, scope):
                    return True
            case ConfirmStep(step=step):
                rule = None if isinstance(step.confirm, bool) else step.confirm
                ruled_out = is_known_false(rule, scope) or is_known_false(step.condition, scope)
                if audit.applied.guided and not ruled_out:
                    return True
            case DoStep(step=step):
                if step.required and requires_answer(step) and not is_known_false(step.condition, scope):
                    return True
            case _:
                continue
    return False
