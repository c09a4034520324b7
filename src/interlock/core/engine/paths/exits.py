"""The exits of an activity (rule 21): the one that the variables choose, the open ones, the possible ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.condition_uses import exit_conditions
from interlock.core.definition.conditions import (
    Condition,
    Not,
    describe,
    holds,
    is_known_false,
    undecided_by,
    unset_in,
    variables_of,
)
from interlock.core.definition.expressions import variables_in
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import (
    TERMINAL,
    Activity,
    Branch,
    DecisionPoint,
    Gate,
    Loop,
    Option,
    Transition,
    Workflow,
    walk,
)
from interlock.core.run.keys import item_of
from interlock.core.run.outcomes import Exit
from interlock.core.run.state import RunState
from interlock.core.values import merged
from interlock.core.variables.writes import owners

Via = Literal["option", "decision", "transition", "default", "end", "closed"]  # closed: no condition holds


class ChosenExit(Struct, frozen=True):
    """Where the activity leads, why, and which activities are skipped before that."""

    to: str
    via: Via
    condition: str = ""
    skipping: tuple[str, ...] = ()


class PossibleExit(Struct, frozen=True):
    """A target that an activity leads to in some run: what chooses it, and which activities are skipped."""

    to: str
    via: Via
    condition: Condition | None = None
    gate: str = ""
    option: str = ""
    skipping: tuple[str, ...] = ()


def possible_exits(workflow: Workflow, activity: Activity) -> Iterator[PossibleExit]:
    """List all targets that an activity can lead to, in the order of rule 21, whatever the variables are.

    An exit to an activity that an option or a mode may skip is followed by the exits past that activity.
    """
    skippable = {name for mode in workflow.modes for name in mode.skip_activities}
    for gate in (gate for other in workflow.activities for gate in other.gates()):
        skippable.update(*(option.effect.skip_activities for option in gate.options))
    declared = [
        PossibleExit(target, "option", gate=gate.id, option=option.id)
        for gate in activity.gates()
        for option in gate.options
        if (target := option.effect.transition_to) is not None and workflow.has_target(target)
    ]
    declared += _flow_exits(workflow, activity)
    if not any(exit_.via == "transition" for exit_ in declared):
        declared.append(PossibleExit(TERMINAL, "end"))
    elif fallback_exit(workflow, activity) is None:
        declared.append(PossibleExit(TERMINAL, "decision" if ends_by_decision(activity) else "closed"))
    for exit_ in declared:
        yield exit_
        for target, passed in _targets_past(workflow, exit_.to, skippable):
            yield replace(exit_, to=target, skipping=passed)


def entry_activities(workflow: Workflow) -> list[str]:
    """Name the activities that a run can begin with: the first, and any that no other leads to."""
    led_to = set[str]()
    for activity in workflow.activities:
        led_to.update(exit_.to for exit_ in possible_exits(workflow, activity) if exit_.to != activity.id)
    inlined = {
        name
        for activity in workflow.activities
        for item in walk(activity.items)
        if isinstance(item, Loop)
        for name in item.activities
    }
    names = [activity.id for activity in workflow.activities]
    if workflow.initial is None:
        return names
    return [name for name in names if name == workflow.initial or name not in led_to | inlined]


def _flow_exits(workflow: Workflow, activity: Activity) -> Iterator[PossibleExit]:
    """Yield the declared exits that conditions choose: branches of decisions, then transitions."""
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to is not None and workflow.has_target(branch.to):
                yield PossibleExit(branch.to, "decision", branch.condition)
    for transition in _transitions(workflow, activity):
        yield PossibleExit(transition.to, "transition", transition.condition)


def chosen_exit(plan: Plan, state: RunState, skipped: Set[str] | None = None) -> ChosenExit | None:
    """Find the exit that the variables choose; None when they do not decide it."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    chosen = _chosen(plan, activity, state)
    if chosen is not None:
        skipped = skipped_now(plan, state) if skipped is None else skipped
        for target, passed in _targets_past(plan.workflow, chosen.to, skipped):
            chosen = replace(chosen, to=target, skipping=passed)
    return chosen


def _chosen(plan: Plan, activity: Activity, state: RunState) -> ChosenExit | None:
    workflow = plan.workflow
    if state.visit.exit_to is not None and workflow.has_target(state.visit.exit_to):
        return ChosenExit(state.visit.exit_to, "option")
    scope = plan.scope(state.variables)
    for decision in activity.decisions:
        true = [
            branch
            for branch in decision.branches
            if branch.condition and holds(branch.condition, scope, unknown=False)
        ]
        default = _default_branch(decision)
        for branch in true or ([default] if default else []):
            if branch.to and workflow.has_target(branch.to):
                return ChosenExit(branch.to, "decision", describe(branch.condition) if true else "")
    transitions = _transitions(workflow, activity)
    for transition in transitions:
        if transition.condition is not None and holds(transition.condition, scope, unknown=False):
            return ChosenExit(transition.to, "transition", describe(transition.condition))
    target = default_exit(workflow, activity)
    if target is not None:
        return ChosenExit(target, "default" if transitions else "end")
    if ends_by_decision(activity):
        return ChosenExit(TERMINAL, "decision")
    conditions = [exit_.condition for exit_ in _flow_exits(workflow, activity)]
    if all(is_known_false(condition, scope, owners(state)) for condition in conditions):
        return ChosenExit(TERMINAL, "closed")
    return None


def ends_by_decision(activity: Activity) -> bool:
    """Say whether a decision ends the run where no condition holds: its default branch has no target."""
    branches = (branch for decision in activity.decisions for branch in decision.branches)
    return any(branch.default and branch.to is None for branch in branches)


def unset_before(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name what nobody has set in the conditions of the exits that come before the chosen one (rule 20)."""
    activity, scope = plan.workflow.activity(state.activity), plan.scope(state.variables)
    assert activity is not None
    passed: list[str] = []
    for exit_ in _flow_exits(plan.workflow, activity) if state.visit.exit_to is None else ():
        if exit_.condition is not None and holds(exit_.condition, scope, unknown=False):
            break
        passed += unset_in(exit_.condition, scope)
    return tuple(dict.fromkeys(passed))


def undecided_exits(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name what nobody has set, and what alone closes exits that come before the chosen one."""
    activity, scope = plan.workflow.activity(state.activity), plan.scope(state.variables)
    assert activity is not None
    names: list[str] = []
    for exit_ in _flow_exits(plan.workflow, activity):
        if exit_.condition is not None and holds(exit_.condition, scope, unknown=False):
            break
        names += undecided_by(exit_.condition, scope)
    return tuple(dict.fromkeys(names))


def _transitions(workflow: Workflow, activity: Activity) -> tuple[Transition, ...]:
    """Return the transitions that lead somewhere: a borrowed activity may name targets of its lender."""
    return tuple(transition for transition in activity.transitions if workflow.has_target(transition.to))


def _default_branch(decision: DecisionPoint) -> Branch | None:
    """Return the branch that is taken if no condition holds: the marked one, else one without a condition."""
    marked = next((branch for branch in decision.branches if branch.default), None)
    return marked or next((branch for branch in decision.branches if branch.condition is None), None)


def fallback_exit(workflow: Workflow, activity: Activity) -> str | None:
    """Return the target when no condition holds, of a decision or a transition; None if there is none."""
    defaults = (_default_branch(decision) for decision in activity.decisions)
    targets = (branch.to for branch in defaults if branch and branch.to and workflow.has_target(branch.to))
    return next(targets, None) or default_exit(workflow, activity)


def default_exit(workflow: Workflow, activity: Activity) -> str | None:
    """Return the target when no condition holds; None if the activity has transitions but no default."""
    transitions = _transitions(workflow, activity)
    if not transitions:
        return TERMINAL
    marked = next((transition.to for transition in transitions if transition.default), None)
    return marked or next((transition.to for transition in transitions if transition.condition is None), None)


def past_skipped(workflow: Workflow, target: str, skipped: Set[str]) -> str:
    """Replace a skipped target by its own default exit (rule 21)."""
    for replacement, _ in _targets_past(workflow, target, skipped):
        target = replacement
    return target


def _targets_past(
    workflow: Workflow, target: str, skipped: Set[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the default target of each skipped activity in turn, with the activities skipped so far."""
    passed: tuple[str, ...] = ()
    while target in skipped and target not in passed:
        passed = (*passed, target)
        activity = workflow.activity(target)
        target = (default_exit(workflow, activity) if activity else None) or TERMINAL
        yield target, passed


def skipped_now(plan: Plan, state: RunState) -> set[str]:
    """Return the activities that options and active modes have ruled out."""
    scope = plan.scope(state.variables)
    skipped = set(state.route.skipped)
    for mode in plan.workflow.modes:
        if scope.value(mode.activation_variable) is True:
            skipped.update(mode.skip_activities)
    return skipped


def exits(plan: Plan, state: RunState, skipped: Set[str] | None = None) -> tuple[Exit, ...]:
    """List every exit, each with whether it is open now; the expected one is marked.

    `skipped` are the activities that are passed over: those that are skipped now, if it is None.

    One without a condition is open only where no condition decides (rule 21). One that the variables of the
    run do not decide is open as the agent's claim, unless a required gate decides them (rule 22).
    """
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    skipped = skipped_now(plan, state) if skipped is None else skipped
    expected = chosen_exit(plan, state, skipped)
    target = expected.to if expected else None
    listed: dict[str, Exit] = {}
    deciding: Condition | None = None
    for declared in _flow_exits(plan.workflow, activity):
        to = past_skipped(plan.workflow, declared.to, skipped)
        is_open = declared.via == "transition" and (expected is None or expected.via == "default")
        exit_ = Exit(to, open=is_open)
        if declared.condition is not None:
            exit_ = _conditional(plan, state, to, declared.condition)
            deciding = declared.condition if to == target and exit_.open else deciding
        # of several exits to one target, one whose condition holds counts before one that is claimed
        rivals = (listed.get(to, exit_), exit_)
        listed[to] = max(rivals, key=lambda rival: (rival.open, not rival.unset, not rival.decided))
    if target is not None and target not in listed:
        listed[target] = Exit(target, open=True)
    chosen_by = deciding_gate(plan, state)
    decided_by = (
        _gate_that_opens(plan, state, Not(deciding), tuple(variables_of(deciding))) if deciding else ""
    )
    for exit_ in listed.values():
        if exit_.to == target:
            listed[exit_.to] = replace(exit_, open=True, expected=True, closed_by="")
        elif chosen_by:
            listed[exit_.to] = replace(exit_, open=False, closed_by=chosen_by)
        elif not exit_.open and not exit_.condition:
            listed[exit_.to] = replace(exit_, closed_by=decided_by)
    return tuple(listed.values())


def _conditional(plan: Plan, state: RunState, to: str, condition: Condition) -> Exit:
    scope, reads = plan.scope(state.variables), tuple(dict.fromkeys(variables_of(condition)))
    if holds(condition, scope, unknown=False):
        unset = unset_in(condition, scope)
        return Exit(to, open=True, condition=describe(condition), reads=reads, unset=unset)
    decided = is_known_false(condition, scope, owners(state))  # what a question owns nobody else will set
    unset = () if decided else tuple(name for name in reads if not scope.is_set(name))
    gate = _gate_that_opens(plan, state, condition, unset or reads)
    return Exit(
        to,
        open=bool(unset) and not gate,
        condition=describe(condition),
        reads=reads,
        unset=unset,
        decided=decided,
        closed_by=gate,
    )


def _gate_that_opens(plan: Plan, state: RunState, condition: Condition, names: Sequence[str]) -> str:
    """Name a required gate with an option that sets one of these and makes the condition true, if any."""
    roots = dict.fromkeys(name.partition(".")[0] for name in names)
    for gate, sets in (decision for root in roots for decision in plan.decisions.get(root, ())):
        is_filled = any(isinstance(value, str) and any(variables_in(value)) for value in sets.values())
        if is_filled or not is_known_false(condition, plan.scope(merged(state.variables, sets))):
            return gate.id
    return ""


def deciding_gate(plan: Plan, state: RunState) -> str:
    """Name the gate whose answer has chosen the exit; empty if none has."""
    activity = plan.workflow.activity(state.activity)
    if state.visit.exit_to is None or activity is None:
        return ""
    answers = {item_of(key): option for key, option in state.visit.answers.items()}
    chosen = ((gate.id, gate.option(answers.get(gate.id, ""))) for gate in activity.gates())
    return next(
        (id for id, option in chosen if option and option.effect.transition_to == state.visit.exit_to), ""
    )


def is_chosen(state: RunState, gate: Gate, option: Option) -> bool:
    """Say whether the option was the last answer to the gate."""
    answer = state.replies.chosen.get(gate.id)
    return answer is not None and answer.option == option.id


def deciding_variables(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the variables that would decide the exit, unset ones first."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    names = dict.fromkeys(name for use in exit_conditions(activity) for name in variables_of(use.condition))
    scope = plan.scope(state.variables)
    return tuple(sorted(names, key=scope.is_set))
