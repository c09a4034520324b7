"""Laws of conditions (rule 20): two-valued, total, and the same in words as in truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.core.definition.conditions import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Operator,
    Scope,
    describe,
    holds,
    unset_in,
    variables_of,
)
from interlock.core.values import MISSING, merged
from support.generated import CONDITIONS, DELTAS, NAMES, SCALARS, VALUES

QUICK = settings(max_examples=150, deadline=None)
SCOPES = st.builds(Scope, DELTAS.map(lambda delta: merged({}, delta)), DELTAS)


def tell(value: Any, operator: Operator, expected: Any) -> bool:
    return holds(Compare("x", operator, expected), Scope({"x": value}, {}))


@QUICK
@given(CONDITIONS, CONDITIONS, SCOPES)
def test_conditions_obey_boolean_algebra(one: Condition, two: Condition, scope: Scope) -> None:
    """Every condition is true or false, never both, never an exception; NOT, AND, OR mean what they say."""
    assert holds(Not(one), scope) is not holds(one, scope)
    assert holds(Not(Not(one)), scope) is holds(one, scope)
    assert holds(AllOf((one, two)), scope) is (holds(one, scope) and holds(two, scope))
    assert holds(AnyOf((one, two)), scope) is (holds(one, scope) or holds(two, scope))
    assert holds(Not(AllOf((one, two))), scope) is holds(AnyOf((Not(one), Not(two))), scope)


@QUICK
@given(CONDITIONS, SCOPES, DELTAS)
def test_a_condition_sees_only_the_variables_it_names(
    condition: Condition, scope: Scope, other: dict[str, Any]
) -> None:
    """What `variables_of` does not name cannot change the verdict."""
    read = {path.partition(".")[0] for path in variables_of(condition)}
    foreign = {name: value for name, value in other.items() if name not in read}
    widened = Scope(merged(scope.variables, foreign), scope.defaults)
    assert holds(condition, widened) is holds(condition, scope)


@QUICK
@given(CONDITIONS)
def test_a_description_names_every_variable_on_one_line(condition: Condition) -> None:
    text = describe(condition)
    assert "\n" not in text
    assert all(name in text for name in variables_of(condition))


PRECEDENCE = [
    (
        AnyOf((Compare("a", "truthy"), AllOf((Compare("b", "truthy"), Compare("c", "truthy"))))),
        "a OR (b AND c)",
    ),
    (
        AllOf((Compare("a", "truthy"), AnyOf((Compare("b", "truthy"), Compare("c", "truthy"))))),
        "a AND (b OR c)",
    ),
    (Not(AllOf((Compare("a", "truthy"), Compare("b", "truthy")))), "NOT (a AND b)"),
    (Compare("a", "equals", "x"), 'a == "x"'),
    (None, "always"),
]


@pytest.mark.parametrize(("condition", "text"), PRECEDENCE)
def test_a_description_keeps_precedence(condition: Condition | None, text: str) -> None:
    assert describe(condition) == text


@QUICK
@example([True], [1])
@example({"a": [0]}, {"a": [False]})
@given(VALUES, VALUES)
def test_strict_equality_is_an_equivalence_that_never_takes_a_truth_for_a_number(one: Any, two: Any) -> None:
    """`==` is reflexive and symmetric; true is not 1, at any depth; `!=` is its opposite."""
    assert tell(one, "==", one)
    assert tell(one, "==", two) is tell(two, "==", one)
    assert tell(one, "!=", two) is not tell(one, "==", two)
    assert tell(one, "==", two) is (typed(one) == typed(two))


def typed(value: Any) -> Any:
    """A value whose booleans cannot be taken for numbers."""
    match value:
        case bool():
            return ("bool", value)
        case list():
            return [typed(item) for item in value]
        case dict():
            return {name: typed(one) for name, one in value.items()}
        case _:
            return value


@QUICK
@example("nan", "nan")
@example("Infinity", "inf")
@given(VALUES, VALUES)
def test_lenient_equality_is_an_equivalence_that_contains_the_strict_one(one: Any, two: Any) -> None:
    """`equals` is reflexive and symmetric, and true wherever `==` is."""
    assert tell(one, "equals", one)
    assert tell(one, "equals", two) is tell(two, "equals", one)
    assert tell(one, "not_equals", two) is not tell(one, "equals", two)
    assert not tell(one, "==", two) or tell(one, "equals", two)


@pytest.mark.parametrize(
    ("one", "two"), [(" Yes ", True), ("5", 5), ("ABC ", "abc"), (1, True), ("no", False), ("1e1", 10)]
)
def test_lenient_equality_forgives(one: Any, two: Any) -> None:
    assert tell(one, "equals", two)
    assert tell(two, "equals", one)
    assert not tell(one, "==", two)


@QUICK
@given(NAMES, SCALARS)
def test_a_missing_variable_equals_nothing_differs_from_everything_and_does_not_exist(
    name: str, value: Any
) -> None:
    empty = Scope({}, {})
    for operator in ("==", "equals", ">", "<", ">=", "<=", "contains", "truthy", "exists", "in"):
        assert not holds(Compare(name, operator, value), empty)  # type: ignore[arg-type]
    for operator in ("!=", "not_equals", "notExists"):
        assert holds(Compare(name, operator, value), empty)  # type: ignore[arg-type]
    assert unset_in(Compare(name, "==", value), empty) == (name,)


@QUICK
@given(NAMES, SCALARS)
def test_defaults_lie_beneath_comparisons_but_not_beneath_existence(name: str, value: Any) -> None:
    scope = Scope({}, {name: value})
    assert holds(Compare(name, "==", value), scope)
    assert not holds(Compare(name, "exists"), scope)
    assert holds(Compare(name, "notExists"), scope)
    assert scope.value("never-declared") is MISSING


@QUICK
@example("nan", "nan")
@example("inf", 1)
@given(VALUES, VALUES)
def test_an_order_is_strict_and_total_over_numbers_and_silent_elsewhere(one: Any, two: Any) -> None:
    less, equal, more = tell(one, "<", two), tell(one, "equals", two), tell(one, ">", two)
    assert less + more <= 1
    assert tell(one, "<=", two) is (less or (equal and tell(one, "<=", one) and tell(two, "<=", two)))
    assert less is tell(two, ">", one)


@pytest.mark.parametrize("word", ["nan", "inf", "Infinity", "1_000"])
def test_words_are_not_taken_for_numbers(word: str) -> None:
    assert tell(word, "equals", word.upper())
    assert not tell(word, ">", 0)
    assert not tell(word, "equals", 1000)
