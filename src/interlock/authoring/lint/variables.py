"""Checks variables against their declarations, if a workflow declares any."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.authoring.compile.items import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow, walk


def check_variables(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report variables that are undeclared, and those that are read although nothing sets them."""
    if not workflow.variables:
        return
    items = [item for activity in workflow.activities for item in walk(activity.items)]
    local = {name for item in items if isinstance(item, Loop) for name in item.variables()}
    local |= {mode.activation_variable for mode in workflow.modes}
    declared = {variable.name for variable in workflow.variables} | local
    set_names = local | set(_set_names(workflow))
    texts = list(workflow.rules)  # what may tell the agent to set a variable
    for activity in workflow.activities:
        texts += [*activity.context_to_preserve, *activity.outcome, *activity.rules]
        texts += [fragment.text for step in activity.steps() for fragment in step.prompt]
    agent_text = "\n".join(texts)
    reported: set[str] = set()
    for name, location in _uses(workflow, head, draft):
        if name in reported:
            continue
        if name not in declared:
            reported.add(name)
            message = f"the variable '{name}' is not declared"
            draft.report.add("IL507", message, location, did_you_mean(name, declared))
        elif name not in set_names and name not in agent_text:
            reported.add(name)
            draft.report.add("IL506", f"nothing sets the variable '{name}'", location)


def _set_names(workflow: Workflow) -> Iterator[str]:
    """Yield the names that have a default, come from outside, or are set by something."""
    for variable in workflow.variables:
        if variable.has_default or variable.required:
            yield variable.name
    for mode in workflow.modes:
        yield from mode.defaults
    for activity in workflow.activities:
        for gate in activity.gates():
            for option in gate.options:
                yield from option.effect.set_variables
        actions = [*activity.entry_actions, *activity.exit_actions]
        for step in activity.steps():
            actions += step.actions
            yield from (wanted.key for wanted in step.user_input if wanted.key)
        yield from (action.target for action in actions if action.action == "set" and action.target)


def _uses(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation]]:
    """Yield every variable that an item, a transition or a decision uses, and where."""
    for activity in workflow.activities:
        home = draft.locations.get((activity.id, "activity", activity.id), head)
        for item in walk(activity.items):
            kind = {Step: "step", Gate: "gate", Loop: "loop"}[type(item)]
            if (location := draft.locations.get((activity.id, kind, item.id))) is not None:
                yield from _uses_in_item(item, location)
        for index, transition in enumerate(activity.transitions):
            yield from _uses_in(transition.condition, home / "transitions" / index / "condition")
        for index, decision in enumerate(activity.decisions):
            for number, branch in enumerate(decision.branches):
                location = home / "decisions" / index / "branches" / number / "condition"
                yield from _uses_in(branch.condition, location)


def _uses_in_item(item: Item, location: SourceLocation) -> Iterator[tuple[str, SourceLocation]]:
    match item:
        case Loop():
            yield from _uses_in(item.run_condition, location / "runCondition")
            yield from _uses_in(item.condition, location / "condition")
            yield from _uses_in(item.break_condition, location / "breakCondition")
            if item.items is not None:
                yield item.items.partition(".")[0], location / "over"
        case Gate():
            yield from _uses_in(item.condition, location / "condition")
            for index, option in enumerate(item.options):
                effect = location / "options" / index / "effect" / "setVariable"
                yield from ((name, effect.key(name)) for name in option.effect.set_variables)
        case Step():
            if item.condition is not None:
                yield from _uses_in(item.condition, location.either("runCondition", "condition"))


def _uses_in(condition: Condition | None, location: SourceLocation) -> Iterator[tuple[str, SourceLocation]]:
    return ((path.partition(".")[0], location) for path in variables_of(condition))
