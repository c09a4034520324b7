"""A workflow as a drawing: a card per activity, a row per item, an arrow per target. Formats render it.

Within a card or a loop, arrows say which item may follow which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from interlock.authoring.lint.contradictions import are_opposites, contradicts
from interlock.core.definition.conditions import AllOf, Condition, Scope, describe, holds, variables_of
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow
from interlock.core.engine.paths.exits import PossibleExit, possible_exits

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
    flow: tuple[Arrow, ...] = ()


class Card(Struct, frozen=True):
    """An activity."""

    id: str
    title: str
    rows: tuple[Row, ...]
    flow: tuple[Arrow, ...]


class Arrow(Struct, frozen=True):
    """A transition from card to card or row to row; without a label it is the only one, or always open.

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
        rows = tuple(_row(item, targets) for item in activity.items)
        cards.append(Card(activity.id, activity.name, rows, tuple(_flow(activity.items))))
        arrows += _arrows(workflow, activity, exits)
    return Drawing(workflow.id, workflow.name, tuple(cards), tuple(arrows))


def _row(item: Item, targets: Mapping[tuple[str, str], str]) -> Row:
    match item:
        case Step():
            inferred = f"by its text sets {', '.join(item.inferred)}" if item.inferred else ""
            checked = "".join(f"checked by {check.run or check.id}" for check in item.checks[:1])
            checked += f" and {len(item.checks) - 1} more" if len(item.checks) > 1 else ""
            notes = _joined(_when(item.condition), *item.asks, inferred, checked)
            return Row("step", item.id, item.title, notes)
        case Gate():
            choices = tuple(
                DrawnOption(option.id, targets.get((item.id, option.id))) for option in item.options
            )
            return Row("gate", item.id, item.name, _joined(_when(item.condition), item.place), choices)
        case Loop():
            note = _joined(_repetition(item), _when(item.run_condition))
            rows = tuple(_row(inner, targets) for inner in item.body)
            return Row("loop", item.id, item.title, note, rows=rows, flow=tuple(_flow(item.body)))


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _flow(items: Sequence[Item]) -> Iterator[Arrow]:
    """Yield an arrow for each item that may follow another; one with a condition may be passed over."""
    for index, start in enumerate((None, *items)):
        name = START if start is None else start.id
        # A drawing takes it that a step leaves the variables of its own condition alone.
        given = start.condition if isinstance(start, Step) else None
        passed, otherwise = list[Condition](), ""
        options = [option.id for option in start.options] if isinstance(start, Gate) else []
        for item in items[index:]:
            condition = item.run_condition if isinstance(item, Loop) else item.condition
            if condition in passed or (given and condition and contradicts(AllOf((given, condition)))):
                continue
            chosen = _deciding_options(start, condition)
            label = " or ".join(chosen) or (describe(condition) if condition else "")
            yield Arrow(name, item.id, label or otherwise)
            options = [option for option in options if option not in chosen]
            otherwise = " or ".join(options) if chosen else "else"
            if condition in (None, given) or (chosen and not options):
                break
            if any(are_opposites(other, condition) for other in passed):
                break
            passed.append(condition)
        else:
            yield Arrow(name, END, otherwise)


def _deciding_options(start: Item | None, condition: Condition | None) -> list[str]:
    """Return the options of a gate that make the condition true, if its options decide it."""
    if not isinstance(start, Gate) or condition is None:
        return []
    scopes = {option.id: Scope(option.effect.set_variables, {}) for option in start.options}
    if any(not scope.is_set(path) for scope in scopes.values() for path in variables_of(condition)):
        return []
    return [option for option, scope in scopes.items() if holds(condition, scope)]


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
