"""Where a workflow stands after some steps: the engine itself is run again, in memory, from the start.

Nobody answers here. Gates are left out, so that the context says what they would have decided; the run
never stops, so that confirmations pass, a loop steered by a decision is gone through once, and a loop or
way without its input is passed by with a warning. Independent activities begin with the one that the
context names as `choose-activity`, else with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import ENTRANCE, Plan
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow
from interlock.core.engine.decide import decide
from interlock.core.engine.draft import PASSED_OVER
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.outcomes import Decided, Done, NeedStep
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


class Astray(Struct, frozen=True):
    """The workflow goes round without ever reaching a step or its end."""

    activity: str | None


def position(
    workflow: Workflow, names: Names, completed: AbstractSet[str], context: Variables
) -> Offered | Astray:
    """Run the workflow until a step is due that is not among the completed ones."""
    plan = Plan(_without_gates(workflow, context))
    visits, warnings, passes = Visits(names), dict[str, None](), 0
    run = _decided(plan, RunState(), StartRun(EXECUTION, 0, "", "", PRESETS["never-stop"], context))
    while passes < MOST_PASSES:
        warnings.update(dict.fromkeys(_warnings(run)))
        match run.awaited:
            case NeedStep(step=step):
                name = visits.name((run.state.activity or "", step.id))
                if name not in completed:
                    return Offered(plan, run.state, step, name, tuple(warnings))
                passes = 0
            case Done():
                return Offered(plan, run.state, None, "", tuple(warnings))
            case _:
                passes += 1
        run = _decided(plan, run.state, _ACK)
    return Astray(run.state.activity)


def _decided(plan: Plan, state: RunState, command: StartRun | AcknowledgeStep) -> Decided:
    outcome = decide(plan, state, command)
    assert isinstance(outcome, Decided), "a run that never stops refuses no acknowledgement"
    return outcome


def _without_gates(workflow: Workflow, context: Variables) -> Workflow:
    activities = tuple(_ungated(activity) for activity in workflow.activities)
    return replace(workflow, activities=activities, initial=_initial(workflow, context))


def _initial(workflow: Workflow, context: Variables) -> str | None:
    if workflow.initial is not None:
        return workflow.initial
    ids = [activity.id for activity in workflow.activities]
    return next((one for one in ids if one == context.get(ENTRANCE)), ids[0])


def _ungated(activity: Activity) -> Activity:
    return replace(activity, items=tuple(_work(activity.items)))


def _work(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        match item:
            case Step():
                yield item
            case Loop() if body := tuple(_work(item.body)):
                yield replace(item, body=body)
            case Loop() | Gate():
                continue


def _warnings(decided: Decided) -> Iterator[str]:
    """Name what was passed over because of unset variables (rule 20), and loops and exits without input."""
    yield from (notice.message for notice in decided.notices if notice.code == PASSED_OVER)
    for event in decided.events:
        if isinstance(event, e.GapRecorded) and event.detail in ("missing_input", "loop_limit"):
            yield event.summary
