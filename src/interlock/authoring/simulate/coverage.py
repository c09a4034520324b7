"""The parts of a workflow that a run can touch, and which of them the events of a run touched.

Scenarios measure their coverage by them, and a simulation reports those that nothing reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from interlock.core.definition.program import entrance_gate
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow, walk
from interlock.core.engine.paths.exits import possible_exits
from interlock.core.run import events as e

PartKind = Literal["step", "gate", "option", "loop", "skip", "transition"]
Measure = Literal["steps", "gates", "options", "branches"]

MEASURES: dict[PartKind, Measure] = {
    "step": "steps",
    "gate": "gates",
    "option": "options",
    "loop": "branches",
    "skip": "branches",
    "transition": "branches",
}


class CoveragePart(Struct, frozen=True):
    """Something that happens in a run or does not; `detail` is an option, or the target of a transition."""

    kind: PartKind
    activity: str
    id: str
    detail: str = ""

    def __str__(self) -> str:
        item = label(self.activity, self.id)
        match self.kind:
            case "option":
                return f"option '{self.detail}' of {item}"
            case "transition":
                return f"transition from {self.activity} to {self.detail}"
            case "skip":
                return f"skipping {item}"
            case _:
                return f"{self.kind} {item}"


def label(activity: str, item_id: str) -> str:
    """Name an item in one word; the only activity of a step workflow, and its own, are left out."""
    return item_id if activity in ("", "main", item_id) else f"{activity}/{item_id}"


def coverage_parts(workflow: Workflow) -> list[CoveragePart]:
    """Return everything that some run should touch, each once, in reading order."""
    parts: list[CoveragePart] = []
    if workflow.initial is None and len(workflow.activities) > 1:
        parts += _item_parts("", entrance_gate(workflow))
    for activity in workflow.activities:
        for item in walk(activity.items):
            parts += _item_parts(activity.id, item)
        parts += [
            CoveragePart("transition", activity.id, activity.id, exit_.to)
            for exit_ in possible_exits(workflow, activity)
            if exit_.via in ("decision", "transition") and not exit_.skipping
        ]
    return list(dict.fromkeys(parts))


def _item_parts(activity: str, item: Item) -> Iterator[CoveragePart]:
    match item:
        case Step():
            yield CoveragePart("step", activity, item.id)
            condition = item.condition
        case Gate():
            yield CoveragePart("gate", activity, item.id)
            yield from (CoveragePart("option", activity, item.id, option.id) for option in item.options)
            condition = item.condition
        case Loop():
            yield CoveragePart("loop", activity, item.id)
            condition = item.run_condition
    if condition is not None:
        yield CoveragePart("skip", activity, item.id)


def touched(events: Iterable[e.Event], activity: str | None) -> Iterator[CoveragePart]:
    """Yield the parts that these events touched, beginning in this activity."""
    current = activity or ""
    for event in events:
        match event:
            case e.ActivityEntered():
                current = event.activity
            case e.ActivityLeft():
                for target in (event.to, *event.skipping):
                    yield CoveragePart("transition", current, current, target)
            case e.StepCompleted():
                yield CoveragePart("step", current, event.step)
            case e.StepSkipped():
                yield CoveragePart("skip", current, event.step)
            case e.QuestionShown() if not event.input:
                yield CoveragePart("gate", current, event.gate)
            case e.GateResolved(option=str() as option) if event.how != "given":
                yield CoveragePart("option", current, event.gate, option)
            case e.GatePassed(because="condition"):
                yield CoveragePart("skip", current, event.gate)
            case e.LoopEntered():
                yield CoveragePart("loop", current, event.loop)
            case e.LoopLeft(because="passed"):
                yield CoveragePart("skip", current, event.loop)
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
    """Return coverage by measure."""
    by_measure: dict[Measure, Share] = {}
    for measure in dict.fromkeys(MEASURES.values()):
        parts = [part for part in every if MEASURES[part.kind] == measure]
        by_measure[measure] = Share(sum(part in seen for part in parts), len(parts))
    return by_measure
