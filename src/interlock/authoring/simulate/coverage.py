"""The parts of a workflow that a run can touch, and which of them the facts of a run show touched.

Scenarios measure their coverage by it, and a simulation finds by it what nothing can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow, walk
from interlock.core.engine.gates import entrance_gate
from interlock.core.run import events as e

PartKind = Literal["step", "gate", "option", "loop", "skip", "way"]
Measure = Literal["steps", "gates", "options", "branches"]

MEASURES: dict[PartKind, Measure] = {
    "step": "steps",
    "gate": "gates",
    "option": "options",
    "loop": "branches",
    "skip": "branches",
    "way": "branches",
}


class Part(Struct, frozen=True):
    """Something that happens in a run or does not; `detail` is an option, or where a way leads."""

    kind: PartKind
    activity: str
    id: str
    detail: str = ""

    def __str__(self) -> str:
        place = f"{self.activity}/{self.id}" if self.activity not in ("", "main", self.id) else self.id
        match self.kind:
            case "option":
                return f"option '{self.detail}' of {place}"
            case "way":
                return f"way from {self.activity} to {self.detail}"
            case "skip":
                return f"passing {place} by"
            case _:
                return f"{self.kind} {place}"


def parts_of(workflow: Workflow) -> list[Part]:
    """Everything that some run should touch, each once, in reading order."""
    found = list(_entrance(workflow))
    for activity in workflow.activities:
        for item in walk(activity.items):
            found += _parts(activity.id, item)
        found += _ways(activity)
    return list(dict.fromkeys(found))


def _entrance(workflow: Workflow) -> Iterator[Part]:
    if workflow.initial is None and len(workflow.activities) > 1:
        gate = entrance_gate(workflow)
        yield from _parts("", gate)


def _parts(activity: str, item: Item) -> Iterator[Part]:
    match item:
        case Step():
            yield Part("step", activity, item.id)
            conditional = item.condition is not None
        case Gate():
            yield Part("gate", activity, item.id)
            yield from (Part("option", activity, item.id, option.id) for option in item.options)
            conditional = item.condition is not None
        case Loop():
            yield Part("loop", activity, item.id)
            conditional = item.run_condition is not None
    if conditional:
        yield Part("skip", activity, item.id)


def _ways(activity: Activity) -> Iterator[Part]:
    targets = [way.to for way in activity.transitions]
    targets += [branch.to for one in activity.decisions for branch in one.branches if branch.to]
    return (Part("way", activity.id, activity.id, to) for to in targets)


def touched(facts: Iterable[e.Event], activity: str | None) -> Iterator[Part]:
    """The parts that these facts show, beginning in this activity."""
    here = activity or ""
    for fact in facts:
        match fact:
            case e.ActivityEntered():
                here = fact.activity
            case e.ActivityLeft():
                yield from (Part("way", here, here, to) for to in (fact.to, *fact.skipping))
            case e.StepCompleted():
                yield Part("step", here, fact.step)
            case e.StepSkipped():
                yield Part("skip", here, fact.step)
            case e.GateOpened():
                yield Part("gate", here, fact.gate)
            case e.GateResolved(option=str() as option):
                yield Part("option", here, fact.gate, option)
            case e.GatePassed(because="condition"):
                yield Part("skip", here, fact.gate)
            case e.LoopEntered():
                yield Part("loop", here, fact.loop)
            case e.LoopLeft(because="passed"):
                yield Part("skip", here, fact.loop)
            case _:
                continue


class Share(Struct, frozen=True):
    """How many parts of a measure were touched."""

    touched: int
    total: int

    @property
    def percent(self) -> float:
        return 100.0 * self.touched / self.total if self.total else 100.0


def shares(every: Iterable[Part], seen: set[Part]) -> dict[Measure, Share]:
    """Coverage by measure."""
    found: dict[Measure, Share] = {}
    for measure in dict.fromkeys(MEASURES.values()):
        parts = [part for part in every if MEASURES[part.kind] == measure]
        found[measure] = Share(sum(part in seen for part in parts), len(parts))
    return found
