"""Conditions over a run's variables: one typed tree for both families of workflow files.

Conditions are two-valued (rule 20): a variable that nobody has set equals nothing, differs from
everything and does not exist. Declared defaults lie beneath the variables for comparisons only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.expressions import root
from interlock.core.values import MISSING, Json, Missing, Variables, lookup, number_of, same

Operator = Literal[
    "==",
    "!=",
    ">",
    "<",
    ">=",
    "<=",
    "exists",
    "notExists",
    "truthy",
    "equals",
    "not_equals",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "in",
]


_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class Compare(Struct, frozen=True, tag="compare", omit_defaults=True):
    """One variable against one value. `==` is strict; `equals` is the lenient equality of step JSON."""

    variable: str
    operator: Operator
    value: Json = None


class AllOf(Struct, frozen=True, tag="all"):
    conditions: tuple[Condition, ...]


class AnyOf(Struct, frozen=True, tag="any"):
    conditions: tuple[Condition, ...]


class Not(Struct, frozen=True, tag="not"):
    condition: Condition


Condition: TypeAlias = Compare | AllOf | AnyOf | Not


class Scope(Struct, frozen=True):
    """What a condition sees: the run's variables, and the declared defaults beneath them."""

    variables: Variables
    defaults: Variables

    def value(self, path: str) -> Json | Missing:
        value = lookup(self.variables, path)
        is_unset = isinstance(value, Missing) or (value is None and path in self.variables)
        return lookup(self.defaults, path) if is_unset else value

    def is_set(self, path: str) -> bool:
        value = lookup(self.variables, path)
        return not isinstance(value, Missing) and value is not None

    def lacks(self, path: str) -> bool:
        """Say whether nobody has set the variable, or said by `null` that it is not known (rule 26)."""
        is_null = self.variables.get(root(path), MISSING) is None
        return isinstance(self.value(path), Missing) and not is_null


def holds(condition: Condition | None, scope: Scope, *, unknown: bool = True) -> bool:
    """Say whether the condition is true; no condition always is.

    One that cannot be evaluated, because its pattern is invalid or too slow, counts as `unknown` says. A
    gate or a step applies then: a pattern that takes too long must not open a way around it.
    """
    judged = _judged(condition, scope, _any)
    return unknown if judged is None else judged


def _judged(condition: Condition | None, scope: Scope, is_known: Callable[[Compare], bool]) -> bool | None:
    """Evaluate a condition; None where that is impossible, or depends on a test that is not known."""
    match condition:
        case None:
            return True
        case Compare():
            return _compare(condition, scope) if is_known(condition) else None
        case AllOf():
            parts = [_judged(part, scope, is_known) for part in condition.conditions]
            return False if False in parts else None if None in parts else True
        case AnyOf():
            parts = [_judged(part, scope, is_known) for part in condition.conditions]
            return True if True in parts else None if None in parts else False
        case Not():
            opposite = _judged(condition.condition, scope, is_known)
            return None if opposite is None else not opposite
        case _:
            assert_never(condition)


def _any(_: Compare) -> bool:
    return True


def is_known_false(condition: Condition | None, scope: Scope, settled: Collection[str] = ()) -> bool:
    """Say whether values that were set in the run make the condition false; defaults do not count.

    They do for what is `settled`: variables that nobody will set any more.
    """

    def is_known(test: Compare) -> bool:
        return scope.is_set(test.variable) or root(test.variable) in settled

    return _judged(condition, scope, is_known) is False


def judged_by(condition: Condition | None, scope: Scope, settled: Collection[str]) -> bool | None:
    """Evaluate a condition by these variables alone; None where that is not enough."""
    return _judged(condition, scope, lambda test: root(test.variable) in settled)


def undecided_by(condition: Condition | None, scope: Scope) -> tuple[str, ...]:
    """Name the variables that nobody has set, and for which alone the condition is not decided.

    A test for existence is decided by the absence of its variable; so is one that `null` was sent for.
    """

    def is_known(test: Compare) -> bool:
        return test.operator in ("exists", "notExists") or not scope.lacks(root(test.variable))

    if _judged(condition, scope, is_known) is not None:
        return ()
    return tuple(dict.fromkeys(test.variable for test in tests_of(condition) if not is_known(test)))


def _compare(test: Compare, scope: Scope) -> bool | None:
    actual, expected = scope.value(test.variable), test.value
    match test.operator:
        case "exists" | "notExists":
            return scope.is_set(test.variable) == (test.operator == "exists")
        case "==" | "!=":
            is_equal = not isinstance(actual, Missing) and same(actual, expected)
            return is_equal == (test.operator == "==")
        case "equals" | "not_equals":
            return _leniently_equal(actual, expected) == (test.operator == "equals")
        case "truthy":
            return not isinstance(actual, Missing) and bool(actual)
        case "contains" if isinstance(actual, str):
            return isinstance(expected, str) and expected.casefold() in actual.casefold()
        case "contains":
            return isinstance(actual, Sequence) and any(
                _leniently_equal(member, expected) for member in actual
            )
        case "in":
            return isinstance(expected, (list, tuple)) and any(
                _leniently_equal(actual, member) for member in expected
            )
        case "startsWith" | "endsWith" | "matches":
            if not isinstance(actual, str) or not isinstance(expected, str):
                return False
            return _text_matches(actual, test.operator, expected)
        case ">" | "<" | ">=" | "<=":
            left, right = number_of(actual), number_of(expected)
            return left is not None and right is not None and _ORDER[test.operator](left, right)
        case _:
            assert_never(test.operator)


def _leniently_equal(actual: Json | Missing, expected: Json) -> bool:
    """Compare as step JSON does: trimmed, caseless text; "5" is 5; "yes" is true; null is unset."""
    if isinstance(actual, Missing) or actual is None:
        return expected is None
    if isinstance(actual, bool) or isinstance(expected, bool):
        return _truth(actual) is not None and _truth(actual) == _truth(expected)
    left, right = number_of(actual), number_of(expected)
    if left is not None and right is not None:
        return left == right
    if isinstance(actual, str) and isinstance(expected, str):
        return actual.strip().casefold() == expected.strip().casefold()
    return same(actual, expected)


def _truth(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, (str, int)) else ""
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(word)


def _text_matches(
    text: str, operator: Literal["startsWith", "endsWith", "matches"], wanted: str
) -> bool | None:
    if operator == "matches":
        from interlock.core.patterns import matches

        return matches(wanted, text)
    left, right = text.casefold(), wanted.casefold()
    return left.startswith(right) if operator == "startsWith" else left.endswith(right)


def tests_of(condition: Condition | None) -> Iterator[Compare]:
    """Yield every test of the condition, in reading order."""
    match condition:
        case None:
            return
        case Compare():
            yield condition
        case AllOf() | AnyOf():
            for part in condition.conditions:
                yield from tests_of(part)
        case Not():
            yield from tests_of(condition.condition)
        case _:
            assert_never(condition)


def variables_of(condition: Condition | None) -> Iterator[str]:
    """Yield every variable path that the condition reads, in reading order."""
    return (test.variable for test in tests_of(condition))


def unset_in(condition: Condition | None, scope: Scope) -> tuple[str, ...]:
    """Name the variables of the condition that have neither a value nor a declared default."""
    names = (path for path in variables_of(condition) if scope.value(path) is MISSING)
    return tuple(dict.fromkeys(names))


def describe(condition: Condition | None) -> str:
    """Write the condition as one line of text, with parentheses where precedence needs them."""
    match condition:
        case None:
            return "always"
        case Compare(operator="exists" | "notExists"):
            return f"{condition.variable} {condition.operator}"
        case Compare(operator="truthy"):
            return condition.variable
        case Compare():
            sign = {"equals": "==", "not_equals": "!="}.get(condition.operator, condition.operator)
            return f"{condition.variable} {sign} {msgspec.json.encode(condition.value).decode()}"
        case AllOf():
            return " AND ".join(_grouped(part, AnyOf) for part in condition.conditions)
        case AnyOf():
            return " OR ".join(_grouped(part, AllOf) for part in condition.conditions)
        case Not():
            return f"NOT ({describe(condition.condition)})"
        case _:
            assert_never(condition)


def _grouped(part: Condition, other: type[AllOf] | type[AnyOf]) -> str:
    return f"({describe(part)})" if isinstance(part, other) else describe(part)
