"""Which step is due after some steps: the engine runs again, in memory, from the start of the workflow.

Gates are left out, so that the context says what they would have decided; a question that comes right before
the step, and is not decided so, is a warning. The run never stops:
confirmations pass, a steered loop runs once, and a loop or exit without its input is passed with a warning.
Independent activities begin with the one that the context names as `choose-activity`, else with the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import ENTRANCE, Plan
from interlock.core.definition.prompts import effect_text, interpolate, rendered_option
from interlock.core.definition.workflow import Gate, Item, Loop, Option, Step, Workflow, walk
from interlock.core.engine.decide import outcome_of
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.notices import PASSED_OVER
from interlock.core.run.outcomes import Decided, Done, NeedInput, NeedStep
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Variables, set_names
from interlock.surfaces.lookup.names import Names, Visits

MOST_PASSES = 1000
ONCE = "Loop '{loop}' was counted once: if it was decided to continue, do its steps again before going on."
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
    """Find the step that is due, with what the user is to be asked before it."""
    offered = _due(workflow, names, completed, context)
    if isinstance(offered, Endless):
        return offered
    asked = _questions_before(workflow, offered)
    return replace(offered, warnings=(*offered.warnings, *asked))


def _questions_before(workflow: Workflow, offered: Offered) -> Iterator[str]:
    """Say what the user is asked right before a step, or at the end, and the context does not decide."""
    variables, activity = offered.state.variables, workflow.activity(offered.state.visit.activity)
    scope = offered.plan.scope(variables)
    gates = list[Gate]()
    for item in walk(activity.items) if activity is not None else ():
        if isinstance(item, Gate):
            gates.append(item)
        elif isinstance(item, Step):
            if offered.step is not None and item.id == offered.step.id:
                break
            gates.clear()
    for gate in gates:
        if gate.required and not _is_decided(gate, scope) and holds(gate.condition, scope):
            question = interpolate(gate.message, scope)
            options = "; ".join(_option_line(option) for option in gate.options)
            asking = f"Ask the user ('{gate.id}'), and send in context what the answer sets:"
            yield f"{asking} {question} {options}."


def _is_decided(gate: Gate, scope: Scope) -> bool:
    """Say whether the context has what the answer sets.

    What the question shows or its condition reads was there before: it has to be what an option sets.
    """
    if gate.only_sets & set_names(scope.variables):
        return True
    effects = (rendered_option(option, scope).effect.set_variables for option in gate.options)
    return any(
        effect and all(scope.variables.get(name) == value for name, value in effect.items())
        for effect in effects
    )


def _option_line(option: Option) -> str:
    effect = effect_text(option.effect)
    return f"{option.id} ({option.label}){f': {effect}' if effect else ''}"


def _due(
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
    once = list[str]()  # the steered loops that were left since then
    run = _decided(plan, RunState(), StartRun(EXECUTION, 0, "", "", PRESETS["never-stop"], context))
    while passes < MOST_PASSES:
        # What was passed over because of unset variables (rule 20), and loops and exits without their input.
        passed_over = [notice.message for notice in run.notices.listed if notice.code == PASSED_OVER]
        gaps = [event for event in run.events if isinstance(event, e.GapRecorded)]
        limits = [gap.summary for gap in gaps if gap.detail == "loop_limit"]
        warnings.update(dict.fromkeys((*passed_over, *limits)))
        once += [ONCE.format(loop=left.loop) for left in run.events if _is_undecided(left)]
        match run.awaited:
            case NeedStep(step=step):
                name = visits.name((run.state.visit.activity or "", step.id))
                if name in completed:
                    optional, passes = None, 0
                    once.clear()
                elif step.required:
                    return optional or Offered(plan, run.state, step, name, (*warnings, *once))
                else:
                    passes += 1
                    optional = optional or Offered(plan, run.state, step, name, (*warnings, *once))
            case Done():
                return optional or Offered(plan, run.state, None, "", (*warnings, *once))
            case NeedInput(message=message, example=example):
                shape = f" Send in context: {msgspec.json.encode(example).decode()}." if example else ""
                warnings[f"{message}{shape}"] = None
                passes += 1
            case _:
                passes += 1
        run = _decided(plan, run.state, _ACK)
    return Endless(run.state.visit.activity)


def _is_undecided(event: e.Event) -> TypeGuard[e.LoopLeft]:
    return isinstance(event, e.LoopLeft) and event.because == "undecided"


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
