"""Which step is due after some steps: the engine runs again, in memory, from the start of the workflow.

Gates are left out, so that the context says what they would have decided. The run never stops:
confirmations pass, a steered loop runs once, and a loop or exit without its input is passed with a warning.
Independent activities begin with the one that the context names as `choose-activity`, else with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import ENTRANCE, Plan
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow
from interlock.core.engine.decide import outcome_of
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.notices import PASSED_OVER
from interlock.core.run.outcomes import Decided, Done, NeedInput, NeedStep
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Variables
from interlock.surfaces.lookup.names import Names, Visits

MOST_PASSES = 1000
_ACK: Final = AcknowledgeStep(EXECUTION, 0, Terms("agent"))


class Offered(Struct, frozen=True):
    """The step to do next, under the name of this visit; no step when all is done."""

    plan: Plan
    state: RunState
    step: Step | None
    name: str
    warnings: tuple[str, ...]


class Endless(Struct, frozen=True):
    """The workflow goes in a circle without ever reaching a step or its end."""

    activity: str | None


def due_step(
    workflow: Workflow, names: Names, completed: AbstractSet[str], context: Variables
) -> Offered | Endless:
    """Run the workflow until a step is due that is not among the completed ones.

    An optional step is passed over if a later one is completed.
    """
    activities = tuple(
        replace(activity, items=tuple(_without_gates(activity.items))) for activity in workflow.activities
    )
    ids, chosen = [activity.id for activity in activities], context.get(ENTRANCE)
    initial = workflow.initial or (chosen if isinstance(chosen, str) and chosen in ids else ids[0])
    plan = Plan(replace(workflow, activities=activities, initial=initial))
    visits, warnings, passes = Visits(names), dict[str, None](), 0
    optional: Offered | None = None  # the first one since the last completed step
    run = _decided(plan, RunState(), StartRun(EXECUTION, 0, "", "", PRESETS["never-stop"], context))
    while passes < MOST_PASSES:
        # What was passed over because of unset variables (rule 20), and loops and exits without their input.
        passed_over = [notice.message for notice in run.notices.listed if notice.code == PASSED_OVER]
        gaps = [event for event in run.events if isinstance(event, e.GapRecorded)]
        limits = [gap.summary for gap in gaps if gap.detail == "loop_limit"]
        warnings.update(dict.fromkeys((*passed_over, *limits)))
        match run.awaited:
            case NeedStep(step=step):
                name = visits.name((run.state.activity or "", step.id))
                if name in completed:
                    optional, passes = None, 0
                elif step.required:
                    return optional or Offered(plan, run.state, step, name, tuple(warnings))
                else:
                    passes += 1
                    optional = optional or Offered(plan, run.state, step, name, tuple(warnings))
            case Done():
                return optional or Offered(plan, run.state, None, "", tuple(warnings))
            case NeedInput(message=message, example=example):
                shape = f" Send in context: {msgspec.json.encode(example).decode()}." if example else ""
                warnings[f"{message}{shape}"] = None
                passes += 1
            case _:
                passes += 1
        run = _decided(plan, run.state, _ACK)
    return Endless(run.state.activity)


def _decided(plan: Plan, state: RunState, command: StartRun | AcknowledgeStep) -> Decided:
    outcome = outcome_of(plan, state, command)
    assert isinstance(outcome, Decided), "a run that never stops refuses no acknowledgement"
    return outcome


def _without_gates(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        match item:
            case Step():
                yield item
            case Loop() if body := tuple(_without_gates(item.body)):
                yield replace(item, body=body)
            case Loop() | Gate():
                continue
