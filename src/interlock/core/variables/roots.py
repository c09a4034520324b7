"""The variables that questions are about, by root: `a` of `a.b` (rule 26).

A write replaces a variable whole, so that a question owns the whole of what it shows a part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from interlock.core.definition.conditions import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Scope,
    variables_of,
)
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import variables_in
from interlock.core.definition.workflow import Gate, Loop, Step, UserInput, Workflow, walk
from interlock.core.values import Missing


def root(path: str) -> str:
    """The variable that a path leads into."""
    return path.partition(".")[0]


def gate_roots(plan: Plan, scope: Scope, gate: Gate, confirms: Step | None = None) -> tuple[str, ...]:
    """Name what a gate's question shows, what its condition reads, and what its options set.

    What the text names and nobody has set is not shown, so that it can still be sent.
    """
    shown = list(_shown_paths(gate))
    set_by_options = [name for option in gate.options for name in option.effect.set_variables]
    paths = [*shown, *set_by_options, *variables_of(gate.condition)]
    if confirms is not None and not isinstance(confirms.confirm, bool):
        paths += variables_of(confirms.confirm)
    unset = {root(path) for path in shown if isinstance(scope.value(path), Missing)}
    return tuple(name for name in _with_modes(plan.workflow, paths) if name not in unset)


def only_set(gate: Gate) -> frozenset[str]:
    """Name what answers to a gate set, and neither its text shows nor its condition reads."""
    seen = {root(path) for path in (*_shown_paths(gate), *variables_of(gate.condition))}
    return frozenset(root(name) for option in gate.options for name in option.effect.set_variables) - seen


def decided_only(plan: Plan) -> Mapping[str, str]:
    """Name the variables that only answers to required gates set, each with such a gate (rule 26).

    Not those that steps or inputs supply, questions show, or loops, modes and their own gates go by.
    """
    if plan.decided_only is None:
        activities = plan.workflow.activities
        steps = [step for activity in activities for step in activity.steps()]
        gates = [gate for activity in activities for gate in activity.gates()]
        supplied = {root(need.key or "") for step in steps for need in step.user_input}
        supplied |= {root(mode.activation_variable) for mode in plan.workflow.modes}
        supplied |= {root(path) for gate in gates for path in _text_paths(gate)}
        items = (item for activity in activities for item in walk(activity.items))
        supplied |= {root(str(loop.items or loop.count)) for loop in items if isinstance(loop, Loop)}
        plan.decided_only = {
            name: deciding[0][0].id
            for name, deciding in plan.decisions.items()
            if name not in supplied
            and not any(step.sets(name) for step in steps)
            and all(name in only_set(gate) for gate, _ in deciding)
        }
    return plan.decided_only


def _shown_paths(gate: Gate) -> Iterator[str]:
    """Yield the paths that a gate's question interpolates: in its texts, and in what its options set."""
    yield from _text_paths(gate)
    for option in gate.options:
        for value in option.effect.set_variables.values():
            yield from variables_in(value) if isinstance(value, str) else ()


def _text_paths(gate: Gate) -> Iterator[str]:
    yield from variables_in(gate.name)
    yield from variables_in(gate.message)
    for option in gate.options:
        yield from variables_in(option.label)
        yield from variables_in(option.description or "")


def unset_in_question(scope: Scope, gate: Gate) -> tuple[str, ...]:
    """Return the paths that the texts of a gate's question show and nobody has set.

    One whose absence makes the question apply comes with the answer. An effect that lacks one stores nothing.
    """
    asked_for = wanted_by_absence(gate.condition)
    missing = (path for path in _text_paths(gate) if isinstance(scope.value(path), Missing))
    return tuple(dict.fromkeys(path for path in missing if root(path) not in asked_for))


def input_roots(workflow: Workflow, need: UserInput) -> tuple[str, ...]:
    """Name what the question of a user-only dependency shows; its own answer may replace the key."""
    return tuple(
        name for name in _with_modes(workflow, variables_in(need.question)) if name != root(need.key or "")
    )


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
