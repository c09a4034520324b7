"""The variables that questions are about, by root: `a` of `a.b` (rule 26).

A write replaces a variable whole, so that a question owns the whole of what it shows a part of.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlock.core.definition.conditions import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Scope,
    variables_of,
)
from interlock.core.definition.expressions import root, variables_in
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Gate, Step, UserInput, Workflow


def gate_roots(plan: Plan, scope: Scope, gate: Gate, confirms: Step | None = None) -> tuple[str, ...]:
    """Name what a gate's question shows, what its condition reads, and what its options set.

    What the text names and nobody has set is not shown, so that it can still be sent.
    """
    shown = list(gate.shown_paths())
    set_by_options = [name for option in gate.options for name in option.effect.set_variables]
    paths = [*shown, *set_by_options, *variables_of(gate.condition)]
    if confirms is not None and not isinstance(confirms.confirm, bool):
        paths += variables_of(confirms.confirm)
    unset = {root(path) for path in shown if scope.lacks(path)}
    return tuple(name for name in _with_modes(plan.workflow, paths) if name not in unset)


def unset_in_question(scope: Scope, gate: Gate) -> tuple[str, ...]:
    """Return the paths that the texts of a gate's question show and nobody has set.

    One whose absence makes the question apply comes with the answer. An effect that lacks one stores nothing.
    """
    asked_for = wanted_by_absence(gate.condition)
    missing = (path for path in gate.text_paths() if scope.lacks(path))
    return tuple(dict.fromkeys(path for path in missing if root(path) not in asked_for))


def input_roots(workflow: Workflow, step: Step, need: UserInput) -> tuple[str, ...]:
    """Name what a step's own question shows and the step goes by; its answer may replace the key."""
    paths = (*variables_in(need.question), *variables_of(step.condition))
    return tuple(name for name in _with_modes(workflow, paths) if name != root(need.key or ""))


def asked_by_absence(workflow: Workflow, path: str) -> frozenset[str]:
    """Name the variables whose absence makes a gate apply, which is named by its activity and its id."""
    activity_id, _, gate_id = path.partition("/")
    activity = workflow.activity(activity_id)
    gate = activity.gate(gate_id) if activity is not None else None
    return wanted_by_absence(gate.condition) if gate is not None else frozenset()


def wanted_by_absence(condition: Condition | None, *, holds: bool = True) -> frozenset[str]:
    """Name the variables whose absence makes a question apply: they may come with its answer.

    `holds` says whether it is the condition or its opposite that must be true.
    """
    match condition:
        case Compare(operator="notExists" | "exists", variable=name) if "." not in name:
            return frozenset([name] if (condition.operator == "notExists") is holds else [])
        case AllOf(conditions=parts) | AnyOf(conditions=parts):
            return frozenset[str]().union(*(wanted_by_absence(part, holds=holds) for part in parts))
        case Not(condition=opposite):
            return wanted_by_absence(opposite, holds=not holds)
        case _:
            return frozenset()


def _with_modes(workflow: Workflow, paths: Iterable[str]) -> tuple[str, ...]:
    """Add the activation variables of modes whose defaults supply one of the variables."""
    names = dict.fromkeys(map(root, paths))
    for mode in workflow.modes:
        if not names.keys().isdisjoint(map(root, mode.defaults)):
            names[root(mode.activation_variable)] = None
    return tuple(names)
