"""Checks that declared variables get and are compared with values of their type, or of their list.

A guard that compares a boolean with the text 'ture' never holds, and nothing else would say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import one_of
from interlock.authoring.filetypes.type_check import type_name
from interlock.authoring.lint.located import located_conditions, located_items
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Compare, Scope, holds, tests_of
from interlock.core.definition.workflow import Gate, Item, Step, Variable, Workflow
from interlock.core.values import Json, number_of, same


def check_value_types(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report defaults, effects, actions and conditions whose value is not one that the variable can have."""
    declared = {variable.name: variable for variable in workflow.variables}
    for index, variable in enumerate(workflow.variables):
        at = head / "variables" / index
        for number, legal in enumerate(variable.values):
            if variable.typed and not _has_type(variable.type, legal):
                _report(variable, legal, at / "values" / number, draft)
            if any(same(legal, earlier) for earlier in variable.values[:number]):
                draft.report.add("IL109", "duplicate entry", at / "values" / number)
        if variable.has_default and not _fits(variable, variable.default):
            _report(variable, variable.default, at / "defaultValue", draft)
    for item, location in located_items(workflow, draft):
        for name, value, at in _assigned(item, location):
            is_filled = isinstance(value, str) and "{" in value
            if name in declared and not is_filled and not _fits(declared[name], value):
                _report(declared[name], value, at, draft)
    for use, location in located_conditions(workflow, head, draft):
        for test in tests_of(use.condition):
            compared = declared.get(test.variable)
            values = test.value if test.operator == "in" and isinstance(test.value, list) else [test.value]
            for value in values if compared else ():
                assert compared is not None
                if not _can_equal(compared, test, value):
                    _report(compared, value, location, draft)


def _assigned(item: Item, location: SourceLocation) -> Iterator[tuple[str, Json, SourceLocation]]:
    """Yield what the options of a gate and the actions of a step write, each with where it says so."""
    match item:
        case Gate():
            for index, option in enumerate(item.options):
                at = location / "options" / index / "effect" / "setVariable"
                for name, value in option.effect.set_variables.items():
                    yield name, value, at / name
        case Step():
            for index, action in enumerate(item.actions):
                if action.assigns:
                    yield action.assigns, action.value, location / "actions" / index / "value"


def _report(variable: Variable, value: Json, at: SourceLocation, draft: CompileDraft) -> None:
    if variable.values and _has_type(variable.type, value):
        words = [json.dumps(legal, ensure_ascii=False) for legal in variable.values]
        message = f"'{variable.name}' is one of {', '.join(words)}, and this is {str(value)[:40]}"
        draft.report.add("IL514", message, at, one_of(str(value), [*map(str, variable.values)]))
        return
    kind = f"'{variable.name}' is declared as {variable.type}"
    draft.report.add("IL514", f"{kind}, and this is {type_name(value)}: {str(value)[:40]}", at)


def _fits(variable: Variable, value: Json) -> bool:
    """Say whether the variable can have a value; null stands for none."""
    if value is None:
        return True
    if variable.values:
        return any(same(value, other) for other in variable.values)
    return variable.type == "string" or _has_type(variable.type, value)  # text, or no type is stated


def _has_type(kind: str, value: Json) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
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
    possible: Sequence[Json] = variable.values or ((True, False) if variable.type == "boolean" else ())
    if possible:
        equal = Compare(variable.name, "equals", value)
        return any(holds(equal, Scope({variable.name: known}, {})) for known in possible)
    match variable.type:
        case "number":
            return number_of(value) is not None
        case _:
            return _fits(variable, value)
