"""The parts of a workflow that a run can touch, and which of them the events of a run show touched.

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


class CoveragePart(Struct, frozen=True):
    """Something that happens in a run or does not; `detail` is an option, or where a way leads."""

    kind: PartKind
    activity: str
    id: str
    detail: str = ""

    def __str__(self) -> str:
        location = f"{self.activity}/{self.id}" if self.activity not in ("", "main", self.id) else self.id
        match self.kind:
            case "option":
                return f"option '{self.detail}' of {location}"
            case "way":
                return f"way from {self.activity} to {self.detail}"
            case "skip":
                return f"passing {location} by"
            case _:
                return f"{self.kind} {location}"


def parts_of(workflow: Workflow) -> list[CoveragePart]:
    """Everything that some run should touch, each once, in reading order."""
    found = list(_entrance(workflow))
    for activity in workflow.activities:
        for item in walk(activity.items):
            found += _parts(activity.id, item)
        found += _ways(activity)
    return list(dict.fromkeys(found))


def _entrance(workflow: Workflow) -> Iterator[CoveragePart]:
    if workflow.initial is None and len(workflow.activities) > 1:
        gate = entrance_gate(workflow)
        yield from _parts("", gate)


def _parts(activity: str, item: Item) -> Iterator[CoveragePart]:
    match item:
        case Step():
            yield CoveragePart("step", activity, item.id)
            conditional = item.condition is not None
        case Gate():
            yield CoveragePart("gate", activity, item.id)
            yield from (CoveragePart("option", activity, item.id, option.id) for option in item.options)
            conditional = item.condition is not None
        case Loop():
            yield CoveragePart("loop", activity, item.id)
            conditional = item.run_condition is not None
    if conditional:
        yield CoveragePart("skip", activity, item.id)


def _ways(activity: Activity) -> Iterator[CoveragePart]:
    targets = [exit_.to for exit_ in activity.transitions]
    targets += [branch.to for one in activity.decisions for branch in one.branches if branch.to]
    return (CoveragePart("way", activity.id, activity.id, to) for to in targets)


def touched(events: Iterable[e.Event], activity: str | None) -> Iterator[CoveragePart]:
    """The parts that these events show, beginning in this activity."""
    here = activity or ""
    for event in events:
        match event:
            case e.ActivityEntered():
                here = event.activity
            case e.ActivityLeft():
                yield from (CoveragePart("way", here, here, to) for to in (event.to, *event.skipping))
            case e.StepCompleted():
                yield CoveragePart("step", here, event.step)
            case e.StepSkipped():
                yield CoveragePart("skip", here, event.step)
            case e.GateOpened():
                yield CoveragePart("gate", here, event.gate)
            case e.GateResolved(option=str() as option):
                yield CoveragePart("option", here, event.gate, option)
            case e.GatePassed(because="condition"):
                yield CoveragePart("skip", here, event.gate)
            case e.LoopEntered():
                yield CoveragePart("loop", here, event.loop)
            case e.LoopLeft(because="passed"):
                yield CoveragePart("skip", here, event.loop)
            case _:
                continue


class Share(Struct, frozen=True):
    """How many parts of a measure were touched."""

    touched: int
    total: int

    @property
    def percent(self) -> float:
        return 100.0 * self.touched / self.total if self.total else 100.0


def shares(every: Iterable[CoveragePart], seen: set[CoveragePart]) -> dict[Measure, Share]:
    """Coverage by measure."""
    found: dict[Measure, Share] = {}
    for measure in dict.fromkeys(MEASURES.values()):
        parts = [part for part in every if MEASURES[part.kind] == measure]
        found[measure] = Share(sum(part in seen for part in parts), len(parts))
    return found
