"""What sets variables in a workflow: one walk, with who gives each value and where the file says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, assert_never

from msgspec import Struct

from interlock.core.definition.condition_uses import FieldPath
from interlock.core.definition.workflow import Action, Activity, Gate, Item, Loop, Step, Workflow, walk
from interlock.core.values import Json

SetBy = Literal["option", "server", "agent", "user", "loop"]


class VariableSet(Struct, frozen=True):
    """A variable that something sets, and its path below the item or activity that has it in the file.

    Options and the server set a `value` that the file has; agent, user and loop give one in the run.
    """

    name: str
    by: SetBy
    paths: tuple[FieldPath, ...]
    value: Json = None


def sets_of(workflow: Workflow) -> Iterator[VariableSet]:
    """Yield all that sets a variable, activity by activity."""
    for activity in workflow.activities:
        yield from activity_sets(activity)
        for item in walk(activity.items):
            yield from item_sets(item)


def activity_sets(activity: Activity) -> Iterator[VariableSet]:
    """Yield what entering and leaving an activity sets."""
    yield from action_sets(activity.entry_actions, ("entryActions",))
    yield from action_sets(activity.exit_actions, ("exitActions",))


def item_sets(item: Item) -> Iterator[VariableSet]:
    """Yield what an item declares to set, without the items in a loop."""
    match item:
        case Step():
            for need in item.user_input:
                if need.key:
                    yield VariableSet(need.key, "user", (("userInput",),))
            yield from action_sets(item.actions, ("sets",), ("actions",))
        case Gate():
            for index, option in enumerate(item.options):
                for name, value in option.effect.set_variables.items():
                    path = ("options", index, "effect", "setVariable", name)
                    yield VariableSet(name, "option", (path,), value)
        case Loop():
            yield from (VariableSet(name, "loop", ((),)) for name in item.variables())
        case _:
            assert_never(item)


def action_sets(actions: Iterable[Action], *paths: FieldPath) -> Iterator[VariableSet]:
    """Yield what actions set; one without a value asks the agent to set the variable."""
    for action in actions:
        if action.assigns:
            yield VariableSet(action.assigns, "server", paths, action.value)
        elif action.produces:
            yield VariableSet(action.produces, "agent", paths)
