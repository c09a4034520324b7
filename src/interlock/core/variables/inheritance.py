"""What a parent passes on to a child that it triggers (rule 35)."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.definition.program import Plan
from interlock.core.run.state import RunState
from interlock.core.values import Variables, set_names
from interlock.core.variables.writes import barred


class Passed(Struct, frozen=True):
    """What a child begins with: variables of its parent, and which of them no agent may write."""

    variables: Variables = {}
    inherited: tuple[str, ...] = ()


def passed_on(plan: Plan, state: RunState, workflow_id: str) -> Passed | None:
    """Return what the current activity passes to a child of this workflow; None if it triggers none.

    What a question owns and nobody has set is null: the child does not come to know it either.
    """
    activity = plan.workflow.activity(state.activity)
    if activity is None:
        return None
    triggers = [*activity.triggers, *(trigger for step in activity.steps() for trigger in step.triggers)]
    trigger = next((trigger for trigger in triggers if trigger.workflow == workflow_id), None)
    if trigger is None:
        return None
    known, owned = set_names(state.variables), barred(plan, state)
    names = [name for name in trigger.pass_context if name in known or name in owned]
    passed = {name: state.variables.get(name) for name in names}
    return Passed(passed, tuple(name for name in passed if name in owned))
