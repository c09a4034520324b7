"""Checks variables against their declarations, where a workflow declares any."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.compile.items import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow, walk


def check_variables(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report variables that are undeclared, and those that are read although nothing sets them."""
    if not workflow.variables:
        return
    declared = {one.name for one in workflow.variables} | set(_local(workflow))
    given = _given(workflow)
    words = _words(workflow)
    reported: set[str] = set()
    for name, location in _uses(workflow, head, draft):
        if name in reported:
            continue
        if name not in declared:
            reported.add(name)
            message = f"the variable '{name}' is not declared"
            draft.report.add("IL507", message, location, did_you_mean(name, declared))
        elif name not in given and name not in words:
            reported.add(name)
            draft.report.add("IL506", f"nothing sets the variable '{name}'", location)


def _local(workflow: Workflow) -> Iterator[str]:
    """Names that loops and modes bring along."""
    for activity in workflow.activities:
        for item in walk(activity.items):
            if isinstance(item, Loop):
                yield from item.variables()
    yield from (mode.activation_variable for mode in workflow.modes)


def _given(workflow: Workflow) -> set[str]:
    """Names that have a default, come from outside, or are set by something."""
    names = {one.name for one in workflow.variables if one.has_default or one.required}
    names |= set(_local(workflow)) | {name for mode in workflow.modes for name in mode.defaults}
    for activity in workflow.activities:
        names |= {name for gate in activity.gates() for name in _effects(gate)}
        actions = (*activity.entry_actions, *activity.exit_actions)
        names |= {one.target for one in actions if one.action == "set" and one.target}
        for step in activity.steps():
            names |= {one.target for one in step.actions if one.action == "set" and one.target}
            names |= {one.key for one in step.user_input if one.key}
    return names


def _effects(gate: Gate) -> Iterator[str]:
    return (name for option in gate.options for name in option.effect.set_variables)


def _words(workflow: Workflow) -> str:
    """The texts that may tell the agent to set a variable."""
    parts: list[str] = list(workflow.rules)
    for activity in workflow.activities:
        parts += [*activity.context_to_preserve, *activity.outcome, *activity.rules]
        parts += [fragment.text for step in activity.steps() for fragment in step.prompt]
    return "\n".join(parts)


def _uses(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation]]:
    for activity in workflow.activities:
        home = draft.locations.get((activity.id, "activity", activity.id), head)
        yield from _in_items(activity, draft)
        for index, exit_ in enumerate(activity.transitions):
            yield from _in_condition(exit_.condition, home / "transitions" / index / "condition")
        for index, decision in enumerate(activity.decisions):
            for number, branch in enumerate(decision.branches):
                location = home / "decisions" / index / "branches" / number / "condition"
                yield from _in_condition(branch.condition, location)


def _in_items(activity: Activity, draft: CompileDraft) -> Iterator[tuple[str, SourceLocation]]:
    for item in walk(activity.items):
        kind = {Step: "step", Gate: "gate", Loop: "loop"}[type(item)]
        location = draft.locations.get((activity.id, kind, item.id))
        if location is not None:
            yield from _in_item(item, location)


def _in_item(item: Item, location: SourceLocation) -> Iterator[tuple[str, SourceLocation]]:
    match item:
        case Loop():
            yield from _in_condition(item.run_condition, location / "runCondition")
            yield from _in_condition(item.condition, location / "condition")
            yield from _in_condition(item.break_condition, location / "breakCondition")
            if item.items is not None:
                yield item.items.partition(".")[0], location / "over"
        case Gate():
            yield from _in_condition(item.condition, location / "condition")
            for index, option in enumerate(item.options):
                effect = location / "options" / index / "effect" / "setVariable"
                yield from ((name, effect.key(name)) for name in option.effect.set_variables)
        case Step():
            if item.condition is not None:
                yield from _in_condition(item.condition, location.either("runCondition", "condition"))


def _in_condition(
    condition: Condition | None, location: SourceLocation
) -> Iterator[tuple[str, SourceLocation]]:
    return ((path.partition(".")[0], location) for path in variables_of(condition))
