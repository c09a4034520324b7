"""Where an activity leads (rule 21): one function, in the order that the rule names."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, Scope, is_known_false
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import (
    TERMINAL,
    Activity,
    Branch,
    DecisionPoint,
    Transition,
    Variable,
    Workflow,
)
from interlock.core.engine.paths.exits import ChosenExit, chosen_exit, exits, fallback_exit, possible_exits
from interlock.core.run.state import RunState, Visit
from support.story import activities


def equals(name: str, value: Any = True) -> Condition:
    return Compare(name, "==", value)


def leading(*transitions: Transition, branches: tuple[Branch, ...] = ()) -> Workflow:
    decisions = (DecisionPoint("choice", "Choice", branches),) if branches else ()
    first = Activity("first", "First", transitions=transitions, decisions=decisions)
    return activities(first, Activity("a", "A"), Activity("b", "B"), Activity("c", "C"))


def chosen(workflow: Workflow, **variables: Any) -> tuple[str, str] | None:
    exit_ = chosen_exit(Plan(workflow), RunState(Visit("first"), variables=variables))
    return None if exit_ is None else (exit_.to, exit_.via)


def open_exits(workflow: Workflow, **variables: Any) -> list[str]:
    listed = exits(Plan(workflow), RunState(Visit("first"), variables=variables))
    return [exit_.to for exit_ in listed if exit_.open]


def test_the_default_is_open_only_when_no_condition_holds() -> None:
    workflow = leading(Transition("a", equals("x")), Transition("b", default=True))
    assert (chosen(workflow, x=True), open_exits(workflow, x=True)) == (("a", "transition"), ["a"])
    assert (chosen(workflow, x=False), open_exits(workflow, x=False)) == (("b", "default"), ["b"])
    assert (chosen(workflow), open_exits(workflow)) == (("b", "default"), ["a", "b"])


def test_exits_without_a_condition_are_open_beside_the_default() -> None:
    workflow = leading(Transition("a", equals("x")), Transition("b", default=True), Transition("c"))
    assert open_exits(workflow, x=False) == ["b", "c"]
    assert open_exits(workflow, x=True) == ["a"]


def test_a_default_with_a_condition_counts_as_the_default_if_every_other_condition_is_false() -> None:
    workflow = leading(Transition("a", equals("x"), default=True), Transition("b", equals("y")))
    assert chosen(workflow, x=False, y=True) == ("b", "transition")
    assert open_exits(workflow, x=False, y=True) == ["b"]
    assert chosen(workflow, x=False, y=False) == ("a", "default")
    assert open_exits(workflow, x=False, y=False) == ["a"]


def test_if_values_of_the_run_close_every_exit_the_run_ends() -> None:
    workflow = leading(Transition("a", equals("x")), Transition("b", equals("y")))
    assert chosen(workflow, x=False, y=False) == (TERMINAL, "closed")
    assert open_exits(workflow, x=False, y=False) == [TERMINAL]
    assert chosen(workflow, x=False) is None
    assert open_exits(workflow, x=False) == ["b"]


def test_a_declared_default_value_closes_no_exit_for_good() -> None:
    workflow = leading(Transition("a", equals("x")))
    declared = (Variable("x", default=False, has_default=True),)
    plan = Plan(Workflow(**{**_fields(workflow), "variables": declared}))
    assert chosen_exit(plan, RunState(Visit("first"))) is None
    told = chosen_exit(plan, RunState(Visit("first"), variables={"x": False}))
    assert told is not None
    assert told.via == "closed"


def _fields(workflow: Workflow) -> dict[str, Any]:
    return {name: getattr(workflow, name) for name in workflow.__struct_fields__}


@pytest.mark.parametrize("marked", [True, False])
def test_a_branch_without_a_condition_is_taken_if_no_condition_holds(marked: bool) -> None:
    branches = (Branch("yes", "Yes", equals("x"), "a"), Branch("else", "Else", None, "b", default=marked))
    workflow = leading(Transition("c", default=True), branches=branches)
    assert (chosen(workflow, x=True), open_exits(workflow, x=True)) == (("a", "decision"), ["a"])
    assert (chosen(workflow, x=False), open_exits(workflow, x=False)) == (("b", "decision"), ["b"])
    assert fallback_exit(workflow, workflow.activities[0]) == "b"


def test_an_exit_is_chosen_with_the_condition_that_holds_and_the_default_branch_without_one() -> None:
    branches = (
        Branch("yes", "Yes", equals("x"), "a"),
        Branch("else", "Else", equals("y"), "b", default=True),
    )
    plan = Plan(leading(branches=branches))
    taken = [chosen_exit(plan, RunState(Visit("first"), variables={"x": x})) for x in (True, False)]
    assert taken == [ChosenExit("a", "decision", "x == true"), ChosenExit("b", "decision")]


def test_a_second_branch_without_a_condition_is_never_open() -> None:
    branches = (Branch("one", "One", None, "a"), Branch("two", "Two", None, "b"))
    workflow = leading(branches=branches)
    assert (chosen(workflow), open_exits(workflow)) == (("a", "decision"), ["a"])


def test_a_true_branch_without_a_target_leaves_it_to_the_transitions() -> None:
    branches = (Branch("stay", "Stay", equals("x")), Branch("else", "Else", None, "b", default=True))
    workflow = leading(Transition("c", default=True), branches=branches)
    assert chosen(workflow, x=True) == ("c", "default")


def test_the_end_of_an_activity_whose_exits_are_all_conditional_is_possible() -> None:
    workflow = leading(Transition("a", equals("x")))
    assert [(exit_.to, exit_.via) for exit_ in possible_exits(workflow, workflow.activities[0])] == [
        ("a", "transition"),
        (TERMINAL, "closed"),
    ]


@pytest.mark.parametrize(
    ("condition", "variables", "closed"),
    [
        (equals("x"), {}, False),
        (equals("x"), {"x": None}, False),
        (equals("x"), {"x": False}, True),
        (equals("x"), {"x": True}, False),
        (AllOf((equals("x"), equals("y"))), {"x": False}, True),
        (AllOf((equals("x"), equals("y"))), {"x": True}, False),
        (AnyOf((equals("x"), equals("y"))), {"x": False}, False),
        (AnyOf((equals("x"), equals("y"))), {"x": False, "y": 1}, True),
        (Not(equals("x")), {"x": True}, True),
        (Not(equals("x")), {}, False),
        (Compare("x", "exists"), {}, False),
        (Compare("x", "notExists"), {"x": 1}, True),
        (None, {}, False),
    ],
)
def test_only_values_that_were_set_make_a_condition_known_to_be_false(
    condition: Condition | None, variables: dict[str, Any], closed: bool
) -> None:
    assert is_known_false(condition, Scope(variables, {"x": False, "y": False})) is closed
