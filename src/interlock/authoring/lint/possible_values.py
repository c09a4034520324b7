"""Finds tests that no run can pass: a value that no answer sets, or a comparison that its values cannot have.

A guard with a misspelled value would otherwise never hold, and its step would never run, without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.codes import did_you_mean
from interlock.authoring.lint.located import located_conditions
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import Compare, Operator, Scope, describe, holds, tests_of
from interlock.core.definition.expressions import root
from interlock.core.definition.program import Plan
from interlock.core.definition.variable_sets import sets_of
from interlock.core.definition.workflow import Workflow
from interlock.core.values import Json, number_of

_EQUALITY = ("==", "!=", "equals", "not_equals")
_ORDER = (">", "<", ">=", "<=")
_OF_TEXTS = ("startsWith", "endsWith", "matches")


def check_possible_values(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report each test of a condition that is the same whatever happens in a run."""
    answers = _values_of_answers(workflow)
    types = {variable.name: variable.type for variable in workflow.variables if variable.typed}
    legal = {variable.name: variable.values for variable in workflow.variables}
    for use, location in located_conditions(workflow, head, draft):
        for test in tests_of(use.condition):
            if reason := _impossible(test, types.get(test.variable)):
                message = f"never true: {describe(test)}; {reason}"
                draft.report.add("IL304", message, location, "correct the value or the operator")
            elif (possible := answers.get(test.variable)) is not None:
                _check_answer(test, possible, legal.get(test.variable, ()), location, draft)


def _values_of_answers(workflow: Workflow) -> dict[str, list[Json]]:
    """Return all values of each variable that only answers set, its defaults included (rule 26).

    A variable is left out if one of its values is filled in, or a part of it is set, while the workflow runs.
    """
    values: dict[str, list[Json]] = {name: [] for name in Plan(workflow).decided_only}
    open_names = set[str]()
    settings: list[Mapping[str, Json]] = [mode.defaults for mode in workflow.modes]
    settings += [{variable.name: variable.default} for variable in workflow.variables if variable.has_default]
    for each in sets_of(workflow):
        if each.by in ("option", "server"):
            settings.append({each.name: each.value})
        elif each.by == "agent":
            open_names.add(each.name)
    for setting in settings:
        for path, value in setting.items():
            name = root(path)
            if name != path or (isinstance(value, str) and "{" in value):
                open_names.add(name)
            if name in values:
                values[name].append(value)
    return {name: known for name, known in values.items() if name not in open_names}


def _check_answer(
    test: Compare,
    possible: Sequence[Json],
    legal: Sequence[Json],
    location: SourceLocation,
    draft: CompileDraft,
) -> None:
    """Report values that a test compares with and that no answer sets; IL514 is about those not in a list."""
    if test.operator not in (*_EQUALITY, "in"):
        return
    equality: Operator = "==" if test.operator in ("==", "!=") else "equals"
    expected = test.value if test.operator == "in" and isinstance(test.value, list) else [test.value]
    for value in expected:
        same = Compare(test.variable, equality, value)
        if value is None or not any(_holds(same, known) for known in legal or (value,)):
            continue
        if not any(_holds(same, known) for known in possible):
            shown = ", ".join(dict.fromkeys(str(known) for known in possible))
            message = f"'{test.variable}' is never '{value}'; its answers and defaults are: {shown}"
            draft.report.add("IL304", message, location, did_you_mean(str(value), map(str, possible)))


def _holds(test: Compare, value: Json) -> bool:
    return holds(test, Scope({test.variable: value}, {}))


def _impossible(test: Compare, declared: str | None) -> str:
    """Say why a comparison fails for every value of the declared type; nothing if it does not."""
    if test.operator in _ORDER:
        if number_of(test.value) is None:
            return f"{test.value!r} is not a number"
        return f"it is declared as {declared}" if declared in ("boolean", "array", "object") else ""
    if test.operator in _OF_TEXTS:
        if not isinstance(test.value, str):
            return f"{test.value!r} is not text"
        return f"it is declared as {declared}" if declared not in (None, "string") else ""
    if test.operator == "contains" and declared in ("boolean", "number", "object"):
        return f"it is declared as {declared}"
    return ""
