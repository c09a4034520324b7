"""A workflow as a picture: a card an activity, a row an item, an arrow a way. Formats only render it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from interlock.core.definition.conditions import Condition, describe
from interlock.core.definition.workflow import END_WORDS, Activity, Gate, Item, Loop, Step, Workflow

RowKind = Literal["step", "gate", "loop"]

START = "(start)"
END = "(end)"


class DrawnOption(Struct, frozen=True):
    """An option of a gate, and the activity it leads to at once, if any."""

    id: str
    to: str | None = None


class Row(Struct, frozen=True):
    """An item; a loop holds rows of its own."""

    kind: RowKind
    id: str
    title: str
    note: str = ""
    choices: tuple[DrawnOption, ...] = ()
    rows: tuple[Row, ...] = ()


class Card(Struct, frozen=True):
    id: str
    title: str
    rows: tuple[Row, ...]


class Arrow(Struct, frozen=True):
    """A way from card to card; without a label it is the only one, or always open.

    `reasons` are the parts of the label; a gate's are `gate: option`.
    """

    start: str
    end: str
    label: str = ""
    reasons: tuple[str, ...] = ()


class Drawing(Struct, frozen=True):
    id: str
    title: str
    cards: tuple[Card, ...]
    arrows: tuple[Arrow, ...]

    def card(self, card_id: str) -> Card | None:
        return next((card for card in self.cards if card.id == card_id), None)

    def exits(self, card_id: str) -> list[Arrow]:
        return [arrow for arrow in self.arrows if arrow.start == card_id]


def drawing_of(workflow: Workflow) -> Drawing:
    """Draw a compiled workflow."""
    cards = tuple(Card(one.id, one.name, tuple(map(_row, one.items))) for one in workflow.activities)
    first = [workflow.initial] if workflow.initial else [one.id for one in workflow.activities]
    arrows = [Arrow(START, name) for name in first]
    for activity in workflow.activities:
        arrows += _joined(activity.id, _ways(workflow, activity))
    return Drawing(workflow.id, workflow.name, cards, tuple(arrows))


def _row(item: Item) -> Row:
    match item:
        case Step():
            return Row("step", item.id, item.title, _when(item.condition))
        case Gate():
            choices = tuple(DrawnOption(one.id, _shown(one.effect.transition_to)) for one in item.options)
            return Row("gate", item.id, item.name, _when(item.condition), choices)
        case Loop():
            note = "; ".join(one for one in (_rhythm(item), _when(item.run_condition)) if one)
            return Row("loop", item.id, item.title, note, rows=tuple(map(_row, item.body)))


def _shown(target: str | None) -> str | None:
    return "end" if target in END_WORDS else target


def _when(condition: Condition | None) -> str:
    return f"if {describe(condition)}" if condition is not None else ""


def _rhythm(loop: Loop) -> str:
    """How a loop repeats, in a few words."""
    most = f"at most {loop.max_iterations} times"
    if loop.steered:
        return f"until told to stop, {most}"
    match loop.kind:
        case "forEach":
            return f"for each of {loop.items}"
        case "for":
            return f"{loop.count} times"
        case "until":
            return f"until {describe(loop.condition)}, {most}"
        case "while" | "doWhile":
            return f"while {describe(loop.condition)}, {most}" if loop.condition else most


def _ways(workflow: Workflow, activity: Activity) -> Iterator[tuple[str, str]]:
    """Targets with the reason for each, in the order in which they are looked at (rule 21)."""
    for gate in activity.gates():
        for option in gate.options:
            if option.effect.transition_to:
                yield _end(workflow, option.effect.transition_to), f"{gate.id}: {option.id}"
    for decision in activity.decisions:
        for branch in decision.branches:
            if branch.to:
                yield _end(workflow, branch.to), describe(branch.condition) if branch.condition else "else"
    several = len(activity.transitions) > 1
    for exit_ in activity.transitions:
        label = describe(exit_.condition) if exit_.condition else "else" if several else ""
        yield _end(workflow, exit_.to), label
    if not activity.transitions:
        yield END, ""


def _end(workflow: Workflow, target: str) -> str:
    return END if workflow.is_end(target) else target


def _joined(start: str, exits: Iterator[tuple[str, str]]) -> Iterator[Arrow]:
    """One arrow a target; its label gathers the reasons."""
    gathered: dict[str, list[str]] = {}
    for target, label in exits:
        gathered.setdefault(target, []).append(label)
    for target, labels in gathered.items():
        shown = [one for one in dict.fromkeys(labels) if one]
        yield Arrow(start, target, " or ".join(shown), tuple(shown))
