"""The conditions of a workflow: one walk over all of them, with what each decides and where its file has it.

Whoever asks about conditions takes the uses that it is about, so that a new place for a condition is known
to the compiler, the linter, the simulator and the engine at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, TypeAlias, assert_never, get_args

from msgspec import Struct

from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.expressions import root
from interlock.core.definition.workflow import (
    Action,
    Activity,
    AllRules,
    AnyRule,
    Criteria,
    Gate,
    Item,
    Loop,
    NotRule,
    Rule,
    Step,
    Workflow,
    walk,
)

FieldPath: TypeAlias = tuple[str | int, ...]
Decides = Literal["run", "repeat", "confirm", "exit", "set", "text", "check", "rule"]

EVERYTHING: frozenset[Decides] = frozenset(get_args(Decides))
FLOW: frozenset[Decides] = frozenset(("run", "repeat", "confirm", "exit"))  # where a run goes


class ConditionUse(Struct, frozen=True):
    """A condition, what it decides, and its path below the item or activity that has it in the file.

    The families of files write some conditions in different fields, so that there can be several `paths`.
    """

    condition: Condition
    decides: Decides
    paths: tuple[FieldPath, ...]


def conditions_of(workflow: Workflow, deciding: Collection[Decides]) -> Iterator[Condition]:
    """Yield the conditions that decide one of these, activity by activity."""
    for activity in workflow.activities:
        uses = [use for item in walk(activity.items) for use in item_conditions(item)]
        uses += activity_conditions(activity)
        yield from (use.condition for use in uses if use.decides in deciding)


def names_read(uses: Iterable[ConditionUse], deciding: Collection[Decides]) -> set[str]:
    """Name the variables that these conditions read, as far as they decide one of these."""
    return {root(path) for use in uses if use.decides in deciding for path in variables_of(use.condition)}


def item_conditions(item: Item) -> Iterator[ConditionUse]:
    """Yield the conditions of an item, without those of the items in a loop."""
    match item:
        case Step():
            yield from _use(item.condition, "run", ("runCondition",), ("condition",))
            if not isinstance(item.confirm, bool):
                yield from _use(item.confirm, "confirm", ("requireConfirmation",))
            for fragment in item.prompt:
                yield from _use(fragment.when, "text", ("promptFragments",), ("parallelDelegations",))
            yield from _action_conditions(item.actions, "actions")
            for index, check in enumerate(item.checks):
                yield from _use(check.condition, "check", ("checks", index, "when"))
            for rule in _rules(item.criteria):
                yield from _use(rule.condition, "rule", ("validationCriteria",))
        case Gate():
            yield from _use(item.condition, "run", ("condition",))
        case Loop():
            yield from _use(item.run_condition, "run", ("runCondition",))
            source = ("loop", "conditionSource", "condition")
            yield from _use(item.condition, "repeat", ("condition",), source, ("loop", "condition"))
            yield from _use(item.break_condition, "repeat", ("breakCondition",), ("loop", "breakCondition"))
        case _:
            assert_never(item)


def activity_conditions(activity: Activity) -> Iterator[ConditionUse]:
    """Yield the conditions that belong to an activity itself and not to one of its items."""
    yield from exit_conditions(activity)
    yield from _action_conditions(activity.entry_actions, "entryActions")
    yield from _action_conditions(activity.exit_actions, "exitActions")


def exit_conditions(activity: Activity) -> Iterator[ConditionUse]:
    """Yield the conditions of the activity's exits: branches of decisions, then transitions (rule 21)."""
    for index, decision in enumerate(activity.decisions):
        for number, branch in enumerate(decision.branches):
            path = ("decisions", index, "branches", number, "condition")
            yield from _use(branch.condition, "exit", path)
    for index, transition in enumerate(activity.transitions):
        yield from _use(transition.condition, "exit", ("transitions", index, "condition"))


def _use(condition: Condition | None, decides: Decides, *paths: FieldPath) -> Iterator[ConditionUse]:
    if condition is not None:
        yield ConditionUse(condition, decides, paths)


def _action_conditions(actions: tuple[Action, ...], field: str) -> Iterator[ConditionUse]:
    for index, action in enumerate(actions):
        yield from _use(action.condition, "set", (field, index, "condition"))


def _rules(criteria: Criteria | None) -> Iterator[Rule]:
    match criteria:
        case None:
            return
        case Rule():
            yield criteria
        case AllRules() | AnyRule():
            for rule in criteria.rules:
                yield from _rules(rule)
        case NotRule():
            yield from _rules(criteria.rule)
        case _:
            assert_never(criteria)
