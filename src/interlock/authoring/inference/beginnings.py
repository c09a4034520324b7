"""Where a run of an activity workflow begins if its head file does not say so (rule 35)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Loop, Workflow, walk
from interlock.core.engine.paths.exits import possible_exits


def with_beginning(workflow: Workflow, at: SourceLocation, draft: CompileDraft) -> Workflow:
    """Begin with the one activity that no other leads to; activities without exits to others are independent.

    A guess among several would let an agent begin after a gate, so that is an error.
    """
    led_to = _led_to(workflow)
    if workflow.initial is not None or not led_to or draft.unusable:
        return workflow
    first = [activity.id for activity in workflow.activities if activity.id not in led_to]
    if len(first) == 1:
        message = f"a run begins with '{first[0]}', the only activity that no other leads to"
        draft.report.add("IL225", message, at, f"add 'initialActivity: {first[0]}'")
        return replace(workflow, initial=first[0])
    candidates = first or [activity.id for activity in workflow.activities]
    found = f"no other activity leads to {', '.join(first)}" if first else "another leads to every activity"
    next_action = f"add 'initialActivity' with one of {', '.join(candidates)}"
    draft.report.add("IL226", f"it is not clear where a run begins: {found}", at, next_action)
    return workflow


def _led_to(workflow: Workflow) -> set[str]:
    """Name the activities that another one leads to or runs in a loop."""
    names = {activity.id for activity in workflow.activities}
    led_to = set[str]()
    for activity in workflow.activities:
        loops = (item for item in walk(activity.items) if isinstance(item, Loop))
        targets = {exit_.to for exit_ in possible_exits(workflow, activity)}
        targets.update(name for loop in loops for name in loop.activities)
        led_to |= (targets & names) - {activity.id}
    return led_to
