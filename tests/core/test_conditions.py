"""Conditions (rule 20): two-valued, defaults beneath the variables, strict and lenient equality apart."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import (
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Not,
    Scope,
    describe,
    holds,
    unset_in,
)


def truth(condition: Condition, defaults: dict[str, object] | None = None, **variables: object) -> bool:
    return holds(condition, Scope(variables, defaults or {}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("==", 1, False), ("!=", 1, True), ("exists", None, False), ("notExists", None, True),
     ("truthy", None, False), (">", 1, False), ("equals", "x", False), ("not_equals", "x", True),
     ("in", ["x"], False), ("contains", "x", False), ("matches", ".*", False)],
)  # fmt: skip
def test_a_variable_nobody_set_equals_nothing_and_differs_from_everything(
    operator: str, value: object, expected: bool
) -> None:
    assert truth(Compare("missing", operator, value)) is expected  # type: ignore[arg-type]


def test_defaults_are_seen_by_comparisons_and_not_by_exists() -> None:
    defaults = {"size": "small"}
    assert truth(Compare("size", "==", "small"), defaults)
    assert not truth(Compare("size", "exists"), defaults)
    assert truth(Compare("size", "==", "large"), defaults, size="large")


@pytest.mark.parametrize(("left", "right"), [(True, 1), (1, True), ("1", 1), ("true", True), ("A", "a")])
def test_strict_equality_does_not_coerce(left: object, right: object) -> None:
    assert not truth(Compare("x", "==", right), x=left)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "right"), [("5", 5), (" Large ", "large"), ("yes", True), ("1", True), (False, "no"), (5.0, "5")]
)
def test_lenient_equality_is_that_of_step_files(left: object, right: object) -> None:
    assert truth(Compare("x", "equals", right), x=left)  # type: ignore[arg-type]


def test_order_needs_two_numbers() -> None:
    assert truth(Compare("n", ">=", 3), n="3.5")
    assert not truth(Compare("n", ">=", 3), n="many")
    assert not truth(Compare("n", "<", 3), n=True)


def test_paths_reach_into_objects() -> None:
    assert truth(Compare("task.size", "==", "L"), task={"size": "L"})
    assert truth(Compare("tasks.length", ">", 1), tasks=[1, 2])


def test_trees_combine() -> None:
    a, b = Compare("a", "truthy"), Compare("b", "truthy")
    assert truth(AllOf((a, AnyOf((b, Not(b))))), a=1)
    assert not truth(AllOf((a, b)), a=1)


def test_the_words_of_a_condition_keep_its_precedence() -> None:
    a, b, c = (Compare(name, "==", name) for name in "abc")
    assert describe(AnyOf((AllOf((a, b)), c))) == '(a == "a" AND b == "b") OR c == "c"'
    assert describe(Not(Compare("x", "exists"))) == "NOT (x exists)"


def test_unset_variables_are_named_once() -> None:
    tree = AllOf((Compare("a", "==", 1), Compare("b", "==", 1), Compare("a", "!=", 2)))
    assert unset_in(tree, Scope({"b": 1}, {})) == ("a",)
