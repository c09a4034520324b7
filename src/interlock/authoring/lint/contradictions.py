"""Finds conditions that no values can satisfy, as far as equality and existence show."""

from __future__ import annotations

from itertools import combinations

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.lint.located import located_conditions
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, describe
from interlock.core.definition.workflow import Workflow
from interlock.core.values import Json

_EQUAL = ("==", "equals")
_DIFFERENT = ("!=", "not_equals")


def check_contradictions(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> None:
    """Report the conditions that are never true."""
    for use, location in located_conditions(workflow, head, draft):
        if contradicts(use.condition):
            message = f"never true: {describe(use.condition)}"
            draft.report.add("IL304", message, location, "remove one of the tests that exclude each other")


def contradicts(condition: Condition) -> bool:
    """Say whether the condition is obviously never true."""
    match condition:
        case AllOf():
            parts = condition.conditions
            comparisons = [part for part in parts if isinstance(part, Compare)]
            return any(map(contradicts, parts)) or any(
                left.variable == right.variable and _exclude_each_other(left, right)
                for left, right in combinations(comparisons, 2)
            )
        case AnyOf():
            return bool(condition.conditions) and all(map(contradicts, condition.conditions))
        case Compare() | Not():
            return False


def are_opposites(left: Condition, right: Condition) -> bool:
    """Say whether one of two comparisons is obviously true whenever the other is false."""
    if not isinstance(left, Compare) or not isinstance(right, Compare) or left.variable != right.variable:
        return False
    both_equal = left.operator in _EQUAL and right.operator in _EQUAL
    return not both_equal and _exclude_each_other(left, right)


def _exclude_each_other(left: Compare, right: Compare) -> bool:
    operators = {left.operator, right.operator}
    if operators == {"exists", "notExists"}:
        return True
    if left.operator in _EQUAL and right.operator in _EQUAL:
        return _normalized(left.value) != _normalized(right.value)
    one_of_each = not operators.isdisjoint(_EQUAL) and not operators.isdisjoint(_DIFFERENT)
    return one_of_each and _normalized(left.value) == _normalized(right.value)


def _normalized(value: Json) -> str:
    """Return a value as the lenient equality compares it."""
    return str(value).strip().casefold()
