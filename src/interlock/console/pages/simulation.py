"""A workflow tried out without an agent: what a run would ask next, and what each answer leads to.

The answers so far are in the address, as the numbers of the choices; nothing is stored.
"""

from __future__ import annotations

from interlock.authoring.library import Loaded
from interlock.authoring.simulate.walk import MOST_CHOICES, SimulatedWalk, WalkedItem, walk_through
from interlock.core.definition.program import Plan
from interlock.core.run.outcomes import Done, PendingLine, pending_line
from interlock.core.values import Json
from interlock.ledger.queries.status import Shown, step_label
from interlock.ledger.queries.story import StoryMark, marks_of, prompt_of
from interlock.ledger.runs.position import subject_of

SEPARATOR = "."
NUMBERS = {str(number): number for number in range(1, MOST_CHOICES + 1)}


class SimulatedItem(Shown, frozen=True):
    """A step, question or input that a run would wait for; `marks` say what happened on the way to it."""

    pending: PendingLine
    id: str
    activity: str
    prompt: str
    chosen: str
    marks: tuple[StoryMark, ...]


class SimulatedChoice(Shown, frozen=True):
    """An answer: what it sets, and what the run would wait for then."""

    label: str
    effect: str
    follows: PendingLine


class SimulationPage(Shown, frozen=True):
    """A walk through a workflow. `answers` are those that were used; `ended` is the status at its end."""

    workflow_id: str
    name: str
    hash: str
    answers: str
    items: tuple[SimulatedItem, ...]
    choices: tuple[SimulatedChoice, ...]
    ended: str
    variables: dict[str, Json]


def simulation_page(loaded: Loaded, answers: str) -> SimulationPage:
    """Walk through a workflow by these answers, numbers of choices that count from 1."""
    walk = walk_through(loaded.workflow, [NUMBERS.get(word, 0) for word in answers.split(SEPARATOR)])
    return SimulationPage(
        workflow_id=loaded.workflow.id,
        name=loaded.workflow.name,
        hash=loaded.hash,
        answers=SEPARATOR.join(map(str, walk.answers)),
        items=tuple(simulated_item(walk.plan, item) for item in walk.items),
        choices=tuple(
            SimulatedChoice(
                choice.label,
                choice.effect,
                pending_line(choice.outcome.awaited, walk.plan.scope(choice.outcome.state.variables)),
            )
            for choice in walk.choices
        ),
        ended=walk_end(walk),
        variables=dict(walk.items[-1].reached.state.variables) if walk.items else {},
    )


def simulated_item(plan: Plan, item: WalkedItem) -> SimulatedItem:
    reached = item.reached
    line = pending_line(reached.awaited, plan.scope(reached.state.variables))
    return SimulatedItem(
        pending=line,
        id=step_label(subject_of(reached.awaited)) or line.id,
        activity=reached.state.visit.activity or "",
        prompt=prompt_of(plan, reached.state, reached.awaited),
        chosen=item.chosen,
        marks=tuple(mark for event in reached.events for mark in marks_of(event)),
    )


def walk_end(walk: SimulatedWalk) -> str:
    """Return how the walk ended; empty while it waits."""
    reached = walk.items[-1].reached if walk.items else None
    if reached is not None and isinstance(reached.awaited, Done):
        return reached.state.status
    return "" if walk.choices else "stuck"
