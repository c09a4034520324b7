"""Which step is due after some steps: the engine runs again, in memory, from the start of the workflow.

Gates set nothing, so that the context says what they would have decided; a question that comes right before
the step, and is not decided so, is a warning. The run never stops:
confirmations pass, a steered loop runs once, and a loop or exit without its input is passed with a warning.
A completed step hands in the artifacts of `context.artifacts`, since the client keeps what it has done.
Independent activities begin with the one that the context names as `choose-activity`, else with the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope
from interlock.core.definition.expressions import ARTIFACTS, artifact_name
from interlock.core.definition.program import ENTRANCE, Plan
from interlock.core.definition.prompts import effect_text, interpolate, rendered_option
from interlock.core.definition.workflow import Effect, Gate, Item, Loop, Option, Step, Workflow
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.requirements import unmet
from interlock.core.run import events as e
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.notices import PASSED_OVER
from interlock.core.run.outcomes import Decided, Done, NeedAnswer, NeedInput, NeedStep
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables, set_names
from interlock.core.variables.typed_values import NOT_TAKEN
from interlock.surfaces.lookup.names import Names, Visits

MOST_PASSES = 1000
ONCE = "Loop '{loop}' was counted once: if it was decided to continue, do its steps again before going on."
ASK = "Ask the user ('{gate}'), and send in context what the answer sets:"
ASK_AGAIN = "If the user was not asked in this round, ask again ('{gate}'), and send what the answer sets:"
HANDED_IN = "What step '{step}' hands in is read later. {why}. Send in context: {example}."
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
    plan = _plan(workflow, context)
    visits, warnings, passes = Visits(names), dict[str, None](), 0
    optional: Offered | None = None  # the first one since the last completed step
    recent = list[str]()  # steered loops that were left and questions that were reached since then
    reached = Counter[tuple[str | None, str]]()
    own = {name: value for name, value in context.items() if name != ARTIFACTS}
    run = _decided(plan, RunState(), StartRun(EXECUTION, 0, "", "", PRESETS["never-stop"], own))
    warnings.update(
        dict.fromkeys(notice.message for notice in run.notices.listed if notice.code == NOT_TAKEN)
    )
    while passes < MOST_PASSES:
        ack = _ACK
        # What was passed over because of unset variables (rule 20), and loops and exits without their input.
        passed_over = [notice.message for notice in run.notices.listed if notice.code == PASSED_OVER]
        gaps = [event for event in run.events if isinstance(event, e.GapRecorded)]
        limits = [gap.summary for gap in gaps if gap.detail == "loop_limit"]
        warnings.update(dict.fromkeys((*passed_over, *limits)))
        recent += [ONCE.format(loop=left.loop) for left in run.events if _is_undecided(left)]
        match run.awaited:
            case NeedStep(step=step):
                name = visits.name((run.state.visit.activity or "", step.id))
                if name in completed:
                    optional, passes = None, 0
                    recent.clear()
                    output = _kept_output(step, context)
                    warnings.update(dict.fromkeys(_lacking_artifacts(plan, run.state, step, name, output)))
                    ack = replace(_ACK, output=output)
                elif step.required:
                    return optional or Offered(plan, run.state, step, name, (*warnings, *recent))
                else:
                    passes += 1
                    optional = optional or Offered(plan, run.state, step, name, (*warnings, *recent))
            case NeedAnswer(gate=gate):
                passes += 1
                place = run.state.visit.activity, gate.id
                recent += _question(workflow, plan, run.state, place, is_again=reached[place] > 0)
                reached[place] += 1
            case Done():
                return optional or Offered(plan, run.state, None, "", (*warnings, *recent))
            case NeedInput(message=message, example=example):
                shape = f" Send in context: {msgspec.json.encode(example).decode()}." if example else ""
                warnings[f"{message}{shape}"] = None
                passes += 1
            case _:
                passes += 1
        run = _decided(plan, run.state, ack)
    return Endless(run.state.visit.activity)


def _plan(workflow: Workflow, context: Variables) -> Plan:
    activities = tuple(
        replace(activity, items=tuple(_without_effects(activity.items))) for activity in workflow.activities
    )
    ids, chosen = [activity.id for activity in activities], context.get(ENTRANCE)
    initial = workflow.initial or (chosen if isinstance(chosen, str) and chosen in ids else ids[0])
    return Plan(replace(workflow, activities=activities, initial=initial))


def _kept_output(step: Step, context: Variables) -> Output:
    """Return the artifacts of a completed step, by the names that conditions read them by (rule 19)."""
    kept = context.get(ARTIFACTS)
    artifacts = kept if isinstance(kept, Mapping) else {}
    named = (
        (contract.artifact, artifacts.get(artifact_name(contract.artifact))) for contract in step.contracts
    )
    return Output(
        "", tuple({**fields, "kind": kind} for kind, fields in named if isinstance(fields, Mapping))
    )


def _lacking_artifacts(plan: Plan, state: RunState, step: Step, name: str, output: Output) -> Iterator[str]:
    """Say which artifact of a completed step the context lacks, or has in a form that does not count."""
    scope = plan.scope(state.variables)
    for contract in step.contracts:
        if (read_as := artifact_name(contract.artifact)) not in plan.quoted:
            continue
        only = replace(step, contracts=(contract,), criteria=None, hands_in=(), user_input=())
        for blocker in unmet(plan, only, output, scope, set_names(state.variables)):
            example: Json = {ARTIFACTS: {read_as: contract.shown_example}}
            shown = msgspec.json.encode(example).decode()
            yield HANDED_IN.format(step=name, why=blocker.message.rstrip("."), example=shown)


def _question(
    workflow: Workflow, plan: Plan, state: RunState, place: tuple[str | None, str], *, is_again: bool
) -> Iterator[str]:
    """Say what the user is asked here, unless the context has what the answer sets.

    What it has may be from the round before, and then only the client knows.
    """
    activity, gate_id = place
    found = workflow.activity(activity)
    gate = found.gate(gate_id) if found is not None else None
    scope = plan.scope(state.variables)
    if gate is None or not gate.required or (_is_decided(gate, scope) and not is_again):
        return
    options = "; ".join(_option_line(option) for option in gate.options)
    asking = (ASK_AGAIN if is_again else ASK).format(gate=gate.id)
    yield f"{asking} {interpolate(gate.message, scope)} {options}."


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


def _is_undecided(event: e.Event) -> TypeGuard[e.LoopLeft]:
    return isinstance(event, e.LoopLeft) and event.because == "undecided"


def _decided(plan: Plan, state: RunState, command: StartRun | AcknowledgeStep) -> Decided:
    outcome = outcome_of(plan, state, command)
    assert isinstance(outcome, Decided), "a run that never stops refuses no acknowledgement"
    return outcome


def _without_effects(items: tuple[Item, ...]) -> Iterator[Item]:
    """Return the items with gates that set nothing; those of a loop without steps stand in its place."""
    for item in items:
        match item:
            case Step():
                yield item
            case Loop():
                body = tuple(_without_effects(item.body))
                has_steps = any(isinstance(part, (Step, Loop)) for part in body)
                yield from [replace(item, body=body)] if has_steps else body
            case Gate():
                options = tuple(replace(option, effect=Effect()) for option in item.options)
                yield Gate(item.id, item.name, item.message, options, item.condition)
