"""Checks that every variable that is read is declared, set or at least mentioned somewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.expressions import ARTIFACTS, CHECKS, RESERVED, artifact_name
from interlock.core.definition.prompts import text_of
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow, walk

GIVEN_AT_START = ("goal", "title", "ticketId")  # what the title of a session is taken from (rule 42)

_EXPRESSION = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")
_WORD = re.compile(r"[A-Za-z_][\w-]*")


def check_variables(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report variables that are undeclared, and those that are read although nothing sets them."""
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
    known = declared | set_names | set(GIVEN_AT_START) | set(_WORD.findall(_EXPRESSION.sub("", agent_text)))
    for index, mode in enumerate(workflow.modes):
        names, at = {variable.name for variable in workflow.variables}, head / "modes" / index
        used = [(mode.activation_variable, at / "activationVariable")]
        used += ((name, (at / "defaults").key(name)) for name in mode.defaults)
        for name, location in used if names else ():
            if name not in names:
                message = f"the variable '{name}' is not declared"
                draft.report.add("IL507", message, location, did_you_mean(name, names))
    for name, location in _written(workflow, head, draft):
        if name.partition(".")[0] in RESERVED:
            draft.report.add("IL519", f"the name '{name}' is reserved", location)
    reported: set[str] = set()
    for name, location in _uses(workflow, head, draft):
        if name in reported or name in RESERVED:
            continue
        if workflow.variables and name not in declared:
            reported.add(name)
            message = f"the variable '{name}' is not declared"
            draft.report.add("IL507", message, location, did_you_mean(name, declared))
        elif workflow.variables and name not in set_names and name not in agent_text:
            reported.add(name)
            draft.report.add("IL506", f"nothing sets the variable '{name}'", location)
        elif not workflow.variables and name not in known:
            reported.add(name)
            message = f"nothing declares, sets or mentions the variable '{name}'"
            draft.report.add("IL507", message, location, did_you_mean(name, set_names))
    for expression, location in _shown(workflow, draft):
        name = expression.partition(".")[0]
        if name not in (*known, *RESERVED):
            message = f"{{{{{expression}}}}}: nothing declares, sets or mentions the variable '{name}'"
            draft.report.add("IL513", message, location, did_you_mean(name, declared | set_names))


def check_reserved(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report checks and fields of artifacts that are quoted, and that no step has."""
    fields = set(_artifact_fields(workflow))
    known = {CHECKS: ("IL522", {check.id for check in workflow.checks()}), ARTIFACTS: ("IL523", fields)}
    read = (
        (path, location)
        for condition, location in located_conditions(workflow, head, draft)
        for path in variables_of(condition)
    )
    for path, location in itertools.chain(_shown(workflow, draft), read):
        name, _, member = path.partition(".")
        if name in known and member not in known[name][1]:
            code, members = known[name]
            text = f"'{path}': the workflow has no '{member}' among its {name}"
            draft.report.add(code, text, location, did_you_mean(member, members))


def _artifact_fields(workflow: Workflow) -> Iterator[str]:
    """Yield the fields of the artifacts that steps hand in, as texts quote them: `report.verdict`."""
    for activity in workflow.activities:
        for contract in (contract for step in activity.steps() for contract in step.contracts):
            fields = contract.schema.get("properties")
            for field in fields if isinstance(fields, Mapping) else ():
                yield f"{artifact_name(contract.artifact)}.{field}"


def _shown(workflow: Workflow, draft: CompileDraft) -> Iterator[tuple[str, SourceLocation]]:
    """Yield every variable that a text fills in (rule 32), with the source location of the text."""
    for activity in workflow.activities:
        for item in walk(activity.items):
            match item:
                case Step():
                    kind, texts = "step", [item.title, *(fragment.text for fragment in item.prompt)]
                    texts += [wanted.question for wanted in item.user_input]
                    texts += [text_of(action.value) for action in item.actions if action.has_value]
                case Gate():
                    kind, texts = "gate", [item.name or "", item.message]
                    for option in item.options:
                        texts += [option.label, option.description or ""]
                        texts += map(text_of, option.effect.set_variables.values())
                case Loop():
                    kind, texts = "loop", [item.title]
            location = draft.locations.get((activity.id, kind, item.id))
            paths = [match[1] for text in texts for match in _EXPRESSION.finditer(text)]
            if location is not None:
                yield from ((path, location.holding(path)) for path in dict.fromkeys(paths))


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


def _written(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation]]:
    """Yield every variable that the file declares or writes, and where."""
    for index, variable in enumerate(workflow.variables):
        yield variable.name, head / "variables" / index
    for activity in workflow.activities:
        home = draft.locations.get((activity.id, "activity", activity.id), head)
        actions = (*activity.entry_actions, *activity.exit_actions)
        yield from ((action.target, home) for action in actions if action.action == "set" and action.target)
    for item, location in located_items(workflow, draft):
        match item:
            case Loop():
                yield from ((name, location) for name in item.variables())
            case Gate():
                yield from _set_by_options(item, location)
            case Step():
                yield from ((need.key, location / "userInput") for need in item.user_input if need.key)
                targets = (action.target for action in item.actions if action.action == "set")
                yield from ((name, location.either("sets", "actions")) for name in targets if name)


def _set_by_options(gate: Gate, location: SourceLocation) -> Iterator[tuple[str, SourceLocation]]:
    for index, option in enumerate(gate.options):
        effect = location / "options" / index / "effect" / "setVariable"
        yield from ((name, effect.key(name)) for name in option.effect.set_variables)


def _uses(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation]]:
    """Yield every variable that something reads or is declared to set, and where."""
    for condition, location in located_conditions(workflow, head, draft):
        yield from ((path.partition(".")[0], location) for path in variables_of(condition))
    for item, location in located_items(workflow, draft):
        match item:
            case Loop():
                if item.items is not None:
                    yield item.items.partition(".")[0], location / "over"
                if isinstance(item.count, str):
                    yield item.count.partition(".")[0], location / "loop" / "count"
            case Gate():
                yield from _set_by_options(item, location)
            case Step():
                produced = (action.produces for action in item.actions if action.produces)
                yield from ((name, location.either("sets", "actions")) for name in produced)


def located_items(workflow: Workflow, draft: CompileDraft) -> Iterator[tuple[Item, SourceLocation]]:
    """Yield every item whose source location is known, with it."""
    for activity in workflow.activities:
        for item in walk(activity.items):
            kind = {Step: "step", Gate: "gate", Loop: "loop"}[type(item)]
            if (location := draft.locations.get((activity.id, kind, item.id))) is not None:
                yield item, location


def located_conditions(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[Condition | None, SourceLocation]]:
    """Yield the conditions of items, transitions and decisions, each with its source location."""
    for item, location in located_items(workflow, draft):
        match item:
            case Loop():
                yield item.run_condition, location / "runCondition"
                yield item.condition, location / "condition"
                yield item.break_condition, location / "breakCondition"
            case Gate():
                yield item.condition, location / "condition"
            case Step():
                yield item.condition, location.either("runCondition", "condition")
                if not isinstance(item.confirm, bool):
                    yield item.confirm, location / "requireConfirmation"
                yield from ((fragment.when, location / "promptFragments") for fragment in item.prompt)
                yield from ((action.condition, location / "actions") for action in item.actions)
    for activity in workflow.activities:
        home = draft.locations.get((activity.id, "activity", activity.id), head)
        for index, transition in enumerate(activity.transitions):
            yield transition.condition, home / "transitions" / index / "condition"
        for index, decision in enumerate(activity.decisions):
            for number, branch in enumerate(decision.branches):
                yield branch.condition, home / "decisions" / index / "branches" / number / "condition"
