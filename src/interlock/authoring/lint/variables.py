"""Checks that every variable that is read is declared, set or at least mentioned somewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.lint.located import located_conditions, located_items, located_sets
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import variables_of
from interlock.core.definition.expressions import (
    ARTIFACTS,
    CHECKS,
    EXPRESSION,
    RESERVED,
    artifact_name,
    root,
    variables_in,
)
from interlock.core.definition.prompts import text_of
from interlock.core.definition.variable_sets import item_sets, sets_of
from interlock.core.definition.workflow import Loop, Step, Workflow, walk

GIVEN_AT_START = ("goal", "title", "ticketId")  # what the title of a session is taken from (rule 42)

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
    known = declared | set_names | set(GIVEN_AT_START) | set(_WORD.findall(EXPRESSION.sub("", agent_text)))
    _check_modes(workflow, head, draft)
    written = [(each.name, location) for each, location in located_sets(workflow, head, draft)]
    written += ((known.name, head / "variables" / index) for index, known in enumerate(workflow.variables))
    for name, location in written:
        if root(name) in RESERVED:
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
        name = root(expression)
        if name not in (*known, *RESERVED):
            message = f"{{{{{expression}}}}}: nothing declares, sets or mentions the variable '{name}'"
            draft.report.add("IL513", message, location, did_you_mean(name, declared | set_names))


def _check_modes(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report variables of modes that a workflow which declares variables does not declare."""
    names = {variable.name for variable in workflow.variables}
    for index, mode in enumerate(workflow.modes if names else ()):
        at = head / "modes" / index
        used = [(mode.activation_variable, at / "activationVariable")]
        used += ((name, (at / "defaults").key(name)) for name in mode.defaults)
        for name, location in used:
            if name not in names:
                message = f"the variable '{name}' is not declared"
                draft.report.add("IL507", message, location, did_you_mean(name, names))


def check_reserved(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report checks and fields of artifacts that are quoted, and that no step has."""
    fields = set(_artifact_fields(workflow))
    known = {CHECKS: ("IL522", {check.id for check in workflow.checks()}), ARTIFACTS: ("IL523", fields)}
    read = (
        (path, location)
        for use, location in located_conditions(workflow, head, draft)
        for path in variables_of(use.condition)
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
    for item, location in located_items(workflow, draft):
        paths = list(item.shown_paths())
        if isinstance(item, Step):
            filled = (text_of(each.value) for each in item_sets(item) if each.by == "server")
            paths += (path for text in filled for path in variables_in(text))
        if isinstance(item, Loop):
            paths = [path for path in paths if path not in item.repeats_over]
        yield from ((path, location.holding(path)) for path in dict.fromkeys(paths))


def _set_names(workflow: Workflow) -> Iterator[str]:
    """Yield the names that have a default, come from outside, or are set by something."""
    for variable in workflow.variables:
        if variable.has_default or variable.required:
            yield variable.name
    for mode in workflow.modes:
        yield from mode.defaults
    yield from (each.name for each in sets_of(workflow))


def _uses(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation]]:
    """Yield every variable that something reads or is declared to set, and where."""
    for use, location in located_conditions(workflow, head, draft):
        yield from ((root(path), location) for path in variables_of(use.condition))
    for item, location in located_items(workflow, draft):
        if isinstance(item, Loop):
            fields = (("over",), ("loop", "items"), ("loop", "count"))
            yield from ((root(path), location.first_of(fields)) for path in item.repeats_over)
    for each, location in located_sets(workflow, head, draft):
        if each.by in ("option", "agent"):
            yield each.name, location
