"""Finds conditions that no values can satisfy, as far as equality and existence tell."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not
from interlock.core.values import Json

_EQUAL = ("==", "equals")
_DIFFERENT = ("!=", "not_equals")


def contradicts(condition: Condition) -> bool:
    """Say whether the condition can be seen to be never true."""
    match condition:
        case AllOf():
            parts = condition.conditions
            return any(map(contradicts, parts)) or _clash(parts)
        case AnyOf():
            return bool(condition.conditions) and all(map(contradicts, condition.conditions))
        case Compare() | Not():
            return False


def _clash(parts: Sequence[Condition]) -> bool:
    tests = [part for part in parts if isinstance(part, Compare)]
    return any(
        _pair(left, right)
        for index, left in enumerate(tests)
        for right in tests[index + 1 :]
        if left.variable == right.variable
    )


def _pair(left: Compare, right: Compare) -> bool:
    operators = {left.operator, right.operator}
    if operators == {"exists", "notExists"}:
        return True
    if left.operator in _EQUAL and right.operator in _EQUAL:
        return _plain(left.value) != _plain(right.value)
    one_each = any(one in _EQUAL for one in operators) and any(one in _DIFFERENT for one in operators)
    return one_each and _plain(left.value) == _plain(right.value)


def _plain(value: Json) -> str:
    """Values as the lenient equality sees them, so that only real differences count."""
    return str(value).strip().casefold()
