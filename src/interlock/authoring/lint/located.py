"""The items and conditions of a compiled workflow, each with the source location that it was written at."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.condition_uses import ConditionUse, activity_conditions, item_conditions
from interlock.core.definition.variable_sets import VariableSet, activity_sets, item_sets
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow, walk

_KINDS = {Step: "step", Gate: "gate", Loop: "loop"}


def item_location(activity: Activity, item: Item, draft: CompileDraft) -> SourceLocation | None:
    """Return where an item was written; None if it was inlined from another activity."""
    return draft.locations.get((activity.id, _KINDS[type(item)], item.id))


def activity_location(activity: Activity, head: SourceLocation, draft: CompileDraft) -> SourceLocation:
    """Return where an activity was written; the only one of a step workflow is its head file."""
    return draft.locations.get((activity.id, "activity", activity.id), head)


def located_items(workflow: Workflow, draft: CompileDraft) -> Iterator[tuple[Item, SourceLocation]]:
    """Yield every item that was written where it stands, with its source location."""
    for activity in workflow.activities:
        for item in walk(activity.items):
            if (location := item_location(activity, item, draft)) is not None:
                yield item, location


def located_sets(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[VariableSet, SourceLocation]]:
    """Yield all that sets a variable with its source location; that of an effect is its key."""
    for activity in workflow.activities:
        home = activity_location(activity, head, draft)
        yield from ((each, home.first_of(each.paths)) for each in activity_sets(activity))
    for item, location in located_items(workflow, draft):
        for each in item_sets(item):
            found = location.first_of(each.paths)
            yield each, replace(found, on_key=True) if each.by == "option" else found


def located_conditions(
    workflow: Workflow, head: SourceLocation, draft: CompileDraft
) -> Iterator[tuple[ConditionUse, SourceLocation]]:
    """Yield every condition with its source location: those of all items, then those of activities."""
    for item, location in located_items(workflow, draft):
        yield from ((use, location.first_of(use.paths)) for use in item_conditions(item))
    for activity in workflow.activities:
        home = activity_location(activity, head, draft)
        yield from ((use, home.first_of(use.paths)) for use in activity_conditions(activity))
