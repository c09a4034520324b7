"""Walks through a workflow by chosen answers, without an agent: what is next, and what can be answered.

A walk is a list of numbers, one per choice, so it needs no memory. An agent is trusted to do its work;
what it would report to steer the run is a choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.simulate.candidates import Trials
from interlock.authoring.simulate.explore import PossibleCommands, trusted_step
from interlock.authoring.simulate.liveness import Liveness
from interlock.core.definition.program import LOOP_CONTROL, Plan
from interlock.core.definition.prompts import effect_text
from interlock.core.definition.workflow import Workflow, with_steps
from interlock.core.engine.decide import outcome_of
from interlock.core.run.commands import StartRun
from interlock.core.run.outcomes import Decided, NeedAnswer, Refusal
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json, Variables

MOST_CHOICES = 24
MOST_ANSWERS = 500
LEAVE = "Leave it unanswered"


class WalkChoice(Struct, frozen=True):
    """Something that can be answered, what it sets, and what comes of it."""

    label: str
    effect: str
    outcome: Decided


class WalkedItem(Struct, frozen=True):
    """An item that the walk has reached, with the outcome that led to it. `chosen` is what was answered."""

    reached: Decided
    chosen: str = ""


class SimulatedWalk(Struct, frozen=True):
    """The items so far, of which the last waits for one of the choices, or is the end.

    Before the start, `items` is empty and the choices are the variables to start with.
    """

    plan: Plan
    items: tuple[WalkedItem, ...]
    choices: tuple[WalkChoice, ...]
    answers: tuple[int, ...]


def walk_through(workflow: Workflow, answers: Sequence[int]) -> SimulatedWalk:
    """Give these answers in turn; the number of a choice counts from 1. The first that is none ends it."""
    activities = tuple(
        replace(activity, items=with_steps(activity.items, trusted_step)) for activity in workflow.activities
    )
    plan = Plan(replace(workflow, activities=activities, declares_sets=False))
    trials = Trials(plan.workflow)
    possible = PossibleCommands(plan, trials, Liveness(plan, trials.setters))
    choices = _starts(plan, trials)
    items: list[WalkedItem] = []
    given: list[int] = []
    if len(choices) == 1:  # nothing to choose before the start
        items.append(WalkedItem(choices[0].outcome))
        choices = _choices(plan, possible, choices[0].outcome)
    for number in answers[:MOST_ANSWERS]:
        if not 1 <= number <= len(choices):
            break
        chosen = choices[number - 1]
        items = [*items[:-1], *(replace(item, chosen=chosen.label) for item in items[-1:])]
        items.append(WalkedItem(chosen.outcome))
        given.append(number)
        choices = _choices(plan, possible, chosen.outcome)
    return SimulatedWalk(plan, tuple(items), choices, tuple(given))


def _starts(plan: Plan, trials: Trials) -> tuple[WalkChoice, ...]:
    """Return what a run can be started with: values that nobody sets on the way and conditions read."""
    started = []
    for variables in trials.assignments(trials.given)[:MOST_CHOICES]:
        start = StartRun(EXECUTION, 0, "sha256:0", "simulation", PRESETS["guided"], variables)
        outcome = outcome_of(plan, RunState(), start)
        if isinstance(outcome, Decided):
            started.append(WalkChoice(f"Start with {values_text(variables)}", "", outcome))
    return tuple(started)


def _choices(plan: Plan, possible: PossibleCommands, reached: Decided) -> tuple[WalkChoice, ...]:
    """Return what can be answered where the walk is; an answer that the run would refuse is left out."""
    gate = reached.awaited.gate if isinstance(reached.awaited, NeedAnswer) else None
    options = [(option.label, effect_text(option.effect)) for option in gate.options] if gate else []
    found = []
    for number, command in enumerate(islice(possible.at(reached.state, reached.awaited), MOST_CHOICES)):
        outcome = outcome_of(plan, reached.state, replace(command, reports=False))
        if isinstance(outcome, Refusal) or outcome.blockers:
            continue
        if gate is not None:
            label, effect = options[number] if number < len(options) else (LEAVE, "")
        else:
            label = " and ".join(("Done", *map(_handed_in, command.output.artifacts)))
            effect = values_text(command.variables)
        found.append(WalkChoice(label, effect, outcome))
    return tuple(found)


def _handed_in(artifact: Mapping[str, Json]) -> str:
    """Name the decision about a loop, or what conditions read of another artifact."""
    fields = {name: value for name, value in artifact.items() if name != "kind"}
    return str(artifact["decision"]) if artifact["kind"] == LOOP_CONTROL else values_text(fields)


def values_text(variables: Variables) -> str:
    """Return what is set, for people."""
    return "; ".join(f"{name} = {msgspec.json.encode(value).decode()}" for name, value in variables.items())
