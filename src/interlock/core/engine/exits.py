"""How a run leaves an activity (rule 21): by option, decision branch, transition or default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import describe, holds, unset_in, variables_of
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import TERMINAL, Activity, Branch, Transition
from interlock.core.run.outcomes import Exit
from interlock.core.run.state import RunState

Via = Literal["option", "decision", "transition", "default", "end"]


class ChosenExit(Struct, frozen=True):
    """Where the activity leads, why, and which activities are skipped before that."""

    to: str
    via: Via
    condition: str = ""
    skipping: tuple[str, ...] = ()


def chosen_exit(plan: Plan, state: RunState) -> ChosenExit | None:
    """Find the exit that the variables choose; None when they do not decide it."""
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
        if branch.to and _leads(plan, branch.to) and holds(branch.condition, scope):
            return ChosenExit(branch.to, "decision", describe(branch.condition))
    transitions = _transitions(plan, activity)
    for transition in transitions:
        if transition.condition is not None and holds(transition.condition, scope):
            return ChosenExit(transition.to, "transition", describe(transition.condition))
    default = _default(plan, activity)
    if default is not None:
        return ChosenExit(default, "default" if transitions else "end")
    return None


def _leads(plan: Plan, target: str | None) -> bool:
    """Say whether the target exists: a borrowed activity may name activities of its own workflow."""
    return target is not None and (plan.workflow.activity(target) is not None or plan.workflow.is_end(target))


def _transitions(plan: Plan, activity: Activity) -> tuple[Transition, ...]:
    return tuple(transition for transition in activity.transitions if _leads(plan, transition.to))


def _branches(activity: Activity) -> Iterator[Branch]:
    """Yield the branches of each decision, conditional ones first, then its defaults."""
    for decision in activity.decisions:
        yield from (branch for branch in decision.branches if branch.condition is not None)
        yield from (branch for branch in decision.branches if branch.condition is None and branch.default)


def _default(plan: Plan, activity: Activity) -> str | None:
    transitions = _transitions(plan, activity)
    if not transitions:
        return TERMINAL
    marked = [transition.to for transition in transitions if transition.default]
    plain = [transition.to for transition in transitions if transition.condition is None]
    return next(iter([*marked, *plain]), None)


def _past_skipped(plan: Plan, state: RunState, chosen: ChosenExit) -> ChosenExit:
    """Replace a skipped target by its own default exit (rule 21)."""
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
    """List every exit, each with whether it is open now; the expected one is marked."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    expected = chosen_exit(plan, state)
    target = expected.to if expected else None
    listed: dict[str, Exit] = {}
    for exit_ in _declared(plan, activity, state):
        # of several exits to one target, one whose condition holds counts before one over unset variables
        rivals = (listed.get(exit_.to, exit_), exit_)
        listed[exit_.to] = max(rivals, key=lambda rival: (rival.open, not rival.unset))
    if target is not None and target not in listed:
        listed[target] = Exit(target, open=True)
    decided = target is not None and state.exit_to is not None
    return tuple(
        replace(exit_, open=exit_.to == target or (exit_.open and not decided), expected=exit_.to == target)
        for exit_ in listed.values()
    )


def _declared(plan: Plan, activity: Activity, state: RunState) -> Iterator[Exit]:
    """Read the declared exits; one over unset variables is offered with its condition (rule 22)."""
    scope = plan.scope(state.variables)
    branches = [branch for decision in activity.decisions for branch in decision.branches]
    listed: tuple[Branch | Transition, ...] = (*branches, *activity.transitions)
    for declared in listed:
        if declared.to is None or not _leads(plan, declared.to):
            continue
        target = _past_skipped(plan, state, ChosenExit(declared.to, "transition")).to
        unset = unset_in(declared.condition, scope)
        opened = holds(declared.condition, scope) or bool(unset)
        condition = "" if declared.condition is None else describe(declared.condition)
        yield Exit(target, opened, condition, unset)


def deciding_variables(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the variables that would decide the exit, unset ones first."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    conditions = [branch.condition for branch in _branches(activity)]
    conditions += [transition.condition for transition in activity.transitions]
    names = dict.fromkeys(name for condition in conditions for name in variables_of(condition))
    scope = plan.scope(state.variables)
    return tuple(sorted(names, key=scope.is_set))
