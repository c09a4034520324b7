"""A workflow as a drawing: a card per activity, a row per item, an arrow per target. Formats render it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from interlock.core.definition.conditions import Condition, describe
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow
from interlock.core.engine.exits import PossibleExit, possible_exits

RowKind = Literal["step", "gate", "loop"]

START = "(start)"
END = "(end)"


class DrawnOption(Struct, frozen=True):
    """An option of a gate, and the activity that it leads to, if any."""

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
    """An activity."""

    id: str
    title: str
    rows: tuple[Row, ...]


class Arrow(Struct, frozen=True):
    """A transition from card to card; without a label it is the only one, or always open.

    `reasons` are the parts of the label; those of a gate have the form `gate: option`.
    """

    start: str
    end: str
    label: str = ""
    reasons: tuple[str, ...] = ()


class Drawing(Struct, frozen=True):
    """A whole workflow."""

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
    cards, arrows = list[Card](), list[Arrow]()
    first = [workflow.initial] if workflow.initial else [activity.id for activity in workflow.activities]
    arrows += [Arrow(START, name) for name in first]
    for activity in workflow.activities:
        exits = [exit_ for exit_ in possible_exits(workflow, activity) if not exit_.skipping]
        targets = {
            (exit_.gate, exit_.option): "end" if workflow.is_end(exit_.to) else exit_.to for exit_ in exits
        }
        cards.append(Card(activity.id, activity.name, tuple(_row(item, targets) for item in activity.items)))
        arrows += _arrows(workflow, activity, exits)
    return Drawing(workflow.id, workflow.name, tuple(cards), tuple(arrows))


def _row(item: Item, targets: Mapping[tuple[str, str], str]) -> Row:
    match item:
        case Step():
            return Row("step", item.id, item.title, _when(item.condition))
        case Gate():
            choices = tuple(
                DrawnOption(option.id, targets.get((item.id, option.id))) for option in item.options
            )
            return Row("gate", item.id, item.name, _when(item.condition), choices)
        case Loop():
            note = "; ".join(part for part in (_repetition(item), _when(item.run_condition)) if part)
            rows = tuple(_row(inner, targets) for inner in item.body)
            return Row("loop", item.id, item.title, note, rows=rows)


def _when(condition: Condition | None) -> str:
    return f"if {describe(condition)}" if condition is not None else ""


def _repetition(loop: Loop) -> str:
    """Say how a loop repeats, in a few words."""
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


def _arrows(workflow: Workflow, activity: Activity, exits: list[PossibleExit]) -> list[Arrow]:
    """Return one arrow per target; its label contains the reasons of all exits to it."""
    reasons: dict[str, list[str]] = {}
    for exit_ in exits:
        if exit_.via == "option":
            reason = f"{exit_.gate}: {exit_.option}"
        elif exit_.condition is not None:
            reason = describe(exit_.condition)
        else:
            reason = "else" if exit_.via in ("decision", "closed") or len(activity.transitions) > 1 else ""
        target = END if workflow.is_end(exit_.to) else exit_.to
        reasons.setdefault(target, []).append(reason)
    arrows = []
    for target, labels in reasons.items():
        shown = tuple(reason for reason in dict.fromkeys(labels) if reason)
        arrows.append(Arrow(activity.id, target, " or ".join(shown), shown))
    return arrows
