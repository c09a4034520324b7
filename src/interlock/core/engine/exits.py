"""The way out of an activity (rule 21): option, decision branch, transition, default, or blocked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from interlock.core.definition.conditions import Condition, Scope, describe, holds, unset_in
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import TERMINAL, Activity, Transition
from interlock.core.run.outcomes import Exit
from interlock.core.run.state import RunState

Via = Literal["option", "decision", "transition", "default", "end"]


class ChosenExit(Struct, frozen=True):
    """Where the activity leads, why, and which activities are skipped on the way there."""

    to: str
    via: Via
    condition: str = ""
    skipping: tuple[str, ...] = ()


def chosen_exit(plan: Plan, state: RunState) -> ChosenExit | None:
    """Find the way that the variables choose; None when they do not decide it."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    chosen = _chosen(plan, activity, state)
    return None if chosen is None else _past_skipped(plan, state, chosen)


def _chosen(plan: Plan, activity: Activity, state: RunState) -> ChosenExit | None:
    if _leads(plan, state.exit_to):
        assert state.exit_to is not None
        return ChosenExit(state.exit_to, "option")
    scope = plan.scope(state.variables)
    for branch in _branches(activity):
        if branch.target and _leads(plan, branch.target) and holds(branch.condition, scope):
            return ChosenExit(branch.target, "decision", describe(branch.condition))
    transitions = _transitions(plan, activity)
    for transition in transitions:
        if transition.condition is not None and holds(transition.condition, scope):
            return ChosenExit(transition.to, "transition", describe(transition.condition))
    default = _default(plan, activity)
    if default is not None:
        return ChosenExit(default, "default" if transitions else "end")
    return None


def _leads(plan: Plan, target: str | None) -> bool:
    """Say whether there is such a place: a borrowed activity may name ways that only its lender has."""
    return target is not None and (plan.workflow.activity(target) is not None or plan.workflow.is_end(target))


def _transitions(plan: Plan, activity: Activity) -> tuple[Transition, ...]:
    return tuple(one for one in activity.transitions if _leads(plan, one.to))


class _Branch(Struct, frozen=True):
    condition: Condition | None
    target: str | None


def _branches(activity: Activity) -> Iterator[_Branch]:
    """Conditional branches first, then the defaults, in declared order."""
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.condition is not None:
                yield _Branch(branch.condition, branch.to)
        for branch in decision.branches:
            if branch.condition is None and branch.default:
                yield _Branch(None, branch.to)


def _default(plan: Plan, activity: Activity) -> str | None:
    transitions = _transitions(plan, activity)
    if not transitions:
        return TERMINAL
    marked = next((one.to for one in transitions if one.default), None)
    return marked or next((one.to for one in transitions if one.condition is None), None)


def _past_skipped(plan: Plan, state: RunState, chosen: ChosenExit) -> ChosenExit:
    """Replace a skipped target by its own default way (rule 21)."""
    skipped, passed, target = skipped_now(plan, state), list[str](), chosen.to
    while target in skipped and target not in passed:
        passed.append(target)
        activity = plan.workflow.activity(target)
        target = (_default(plan, activity) if activity else None) or TERMINAL
    return chosen if not passed else ChosenExit(target, chosen.via, chosen.condition, tuple(passed))


def skipped_now(plan: Plan, state: RunState) -> set[str]:
    """The activities that options and active modes have ruled out."""
    scope = plan.scope(state.variables)
    skipped = set(state.skipped)
    for mode in plan.workflow.modes:
        if scope.value(mode.activation_variable) is True:
            skipped.update(mode.skip_activities)
    return skipped


def exits(plan: Plan, state: RunState) -> tuple[Exit, ...]:
    """List every way out, the expected one marked, each with whether it is open now."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    expected = chosen_exit(plan, state)
    target = expected.to if expected else None
    listed: dict[str, Exit] = {}
    for exit_ in _declared(plan, activity, state):
        listed[exit_.to] = max(listed.get(exit_.to, exit_), exit_, key=_openness)
    if target is not None and target not in listed:
        listed[target] = Exit(target, open=True)
    return tuple(_marked(exit_, target, decided=state.exit_to is not None) for exit_ in listed.values())


def _openness(exit_: Exit) -> tuple[bool, bool]:
    """Of several ways to one target, one whose condition holds counts before one that nobody has decided."""
    return exit_.open, not exit_.unset


def _marked(exit_: Exit, target: str | None, *, decided: bool) -> Exit:
    chosen = exit_.to == target
    undecided = target is None or not decided
    return Exit(exit_.to, chosen or (exit_.open and undecided), exit_.condition, exit_.unset, expected=chosen)


def _declared(plan: Plan, activity: Activity, state: RunState) -> Iterator[Exit]:
    """A way over variables that nobody has set is offered with its condition (rule 22)."""
    scope = plan.scope(state.variables)
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to and _leads(plan, branch.to):
                yield _way(_passing(plan, state, branch.to), branch.condition, scope)
    for transition in _transitions(plan, activity):
        yield _way(_passing(plan, state, transition.to), transition.condition, scope)


def _passing(plan: Plan, state: RunState, target: str) -> str:
    return _past_skipped(plan, state, ChosenExit(target, "transition")).to


def _way(to: str, condition: Condition | None, scope: Scope) -> Exit:
    unset = unset_in(condition, scope)
    opened = holds(condition, scope) or bool(unset)
    return Exit(to, opened, "" if condition is None else describe(condition), unset)


def deciding_variables(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the variables that would decide the way, unset ones first."""
    from interlock.core.definition.conditions import variables_of

    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    conditions = [branch.condition for branch in _branches(activity)]
    conditions += [one.condition for one in activity.transitions]
    names = dict.fromkeys(name for one in conditions for name in variables_of(one))
    scope = plan.scope(state.variables)
    return tuple(sorted(names, key=scope.is_set))
