"""Checks that declared variables get and are compared with values of their type.

A guard that compares a boolean with the text 'ture' never holds, and nothing else would say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.filetypes.type_check import type_name
from interlock.authoring.lint.located import located_conditions, located_items
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Compare, Scope, holds, tests_of
from interlock.core.definition.workflow import Gate, Variable, Workflow
from interlock.core.values import Json, number_of


def check_value_types(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report defaults, effects and conditions whose value is not of the declared type."""
    declared = {variable.name: variable for variable in workflow.variables}
    for index, variable in enumerate(workflow.variables):
        if variable.has_default and not _fits(variable, variable.default):
            at = head / "variables" / index / "defaultValue"
            draft.report.add("IL514", _message(variable, variable.default), at)
    for item, location in located_items(workflow, draft):
        for index, option in enumerate(item.options if isinstance(item, Gate) else ()):
            for name, value in option.effect.set_variables.items():
                is_filled = isinstance(value, str) and "{" in value
                if name in declared and not is_filled and not _fits(declared[name], value):
                    at = location / "options" / index / "effect" / "setVariable" / name
                    draft.report.add("IL514", _message(declared[name], value), at)
    for use, location in located_conditions(workflow, head, draft):
        for test in tests_of(use.condition):
            compared = declared.get(test.variable)
            values = test.value if test.operator == "in" and isinstance(test.value, list) else [test.value]
            for value in values if compared else ():
                assert compared is not None
                if not _can_equal(compared, test, value):
                    draft.report.add("IL514", _message(compared, value), location)


def _message(variable: Variable, value: Json) -> str:
    return (
        f"'{variable.name}' is declared as {variable.type}, and this is {type_name(value)}: {str(value)[:40]}"
    )


def _fits(variable: Variable, value: Json) -> bool:
    """Say whether a value has the declared type; null fits every type."""
    match variable.type:
        case "string":  # also the type of a variable that states none
            return True
        case _ if value is None:
            return True
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "array":
            return isinstance(value, Sequence) and not isinstance(value, str)
        case _:
            return isinstance(value, Mapping)


def _can_equal(variable: Variable, test: Compare, value: Json) -> bool:
    """Say whether the test can hold for some value of the declared type; only equality is judged."""
    if test.operator in ("==", "!="):
        return _fits(variable, value)
    if test.operator not in ("equals", "not_equals", "in") or value is None:
        return True
    match variable.type:
        case "boolean":
            same = Compare(variable.name, "equals", value)
            return any(holds(same, Scope({variable.name: truth}, {})) for truth in (True, False))
        case "number":
            return number_of(value) is not None
        case _:
            return _fits(variable, value)
