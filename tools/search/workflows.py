"""Small workflows as plain data: every workflow of two items, and larger ones by chance.

The oracle reads this data, which therefore shares nothing with the core. The order of items is the order
in which a run meets them: a gate stands where it is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any, Literal, TypeAlias

END = "__terminal__"

Test: TypeAlias = tuple[str, Any]  # a variable, and the value that it must equal


@dataclass(frozen=True)
class StepData:
    """A step; `asks` is what only the user can give, `mentions` a variable that its text forbids to set.

    A count is a number, a value anything. `checked` says that the server runs the check CHECK for it.
    """

    id: str
    required: bool = True
    contract: bool = False
    confirm: bool = False
    asks: Literal["", "approval", "value", "count"] = ""
    sets: tuple[str, ...] = ()
    mentions: str = ""
    when: Test | None = None
    checked: bool = False

    @property
    def confirmation_id(self) -> str:
        return f"confirm-{self.id}"

    @property
    def input_id(self) -> str:
        return f"{self.id}_{self.asks}"


@dataclass(frozen=True)
class OptionData:
    id: str
    sets: tuple[tuple[str, Any], ...] = ()
    to: str | None = None


@dataclass(frozen=True)
class GateData:
    """A gate; `waits_ms` makes it non-blocking: its first option counts after that time.

    `approvers` decide it, if there are any: two of them, and not who started the run.
    """

    id: str
    options: tuple[OptionData, ...]
    shows: tuple[str, ...] = ()
    required: bool = True
    when: Test | None = None
    before: str | None = None
    waits_ms: int | None = None
    approvers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoopData:
    """A loop over the list `over`, or while `test` holds; `item` is the name of the current item."""

    id: str
    body: tuple[ItemData, ...]
    over: str | None = None
    test: Test | None = None
    item: str | None = None
    most: int = 3

    @property
    def names(self) -> frozenset[str]:
        """The names that it sets for each round."""
        return frozenset({"currentIteration", "currentIndex", self.item or "currentItem"})


ItemData: TypeAlias = StepData | GateData | LoopData


@dataclass(frozen=True)
class ExitData:
    to: str
    when: Test | None = None


@dataclass(frozen=True)
class ActivityData:
    id: str
    items: tuple[ItemData, ...]
    exits: tuple[ExitData, ...] = ()


@dataclass(frozen=True)
class WorkflowData:
    """A whole workflow; `mode` is a variable with the activity that it skips.

    `foreign` says that it was written for another server; `child`, that it begins children.
    """

    name: str
    activities: tuple[ActivityData, ...]
    mode: tuple[str, str] | None = None
    foreign: bool = False
    child: bool = False

    def activity(self, activity_id: str | None) -> ActivityData | None:
        return next((activity for activity in self.activities if activity.id == activity_id), None)

    def items(self) -> Iterator[ItemData]:
        return (item for activity in self.activities for item in flat(activity.items))


CHECK = "tests"  # the check that the server runs for steps
SHOWN_CHECK = f"checks.{CHECK}"
STARTER = "ann"
APPROVERS = (STARTER, "bob", "cy")
ENOUGH = 2  # approvers who must agree

TYPES = {
    "target": "string",
    "approved": "boolean",
    "risky": "boolean",
    "again": "boolean",
    "shortcut": "boolean",
    "quick": "boolean",
    "places": "array",
    "parts": "array",
    "plan": "object",
    **{f"s{number}_count": "number" for number in range(1, 5)},
}
DEFAULTS: dict[str, Any] = {"again": True}  # what only answers set: no agent could start the loop
START: dict[str, Any] = {
    "target": "staging",
    "risky": True,
    "places": ["staging", "PRODUCTION"],
    "parts": ["one"],
    "plan": {"host": "staging"},
}


def flat(items: Sequence[ItemData]) -> Iterator[ItemData]:
    """Yield items in order, the bodies of loops after their head."""
    for item in items:
        yield item
        if isinstance(item, LoopData):
            yield from flat(item.body)


@dataclass(frozen=True)
class QuestionData:
    """A gate, a confirmation, or what a step asks: where it stands, and the roots that it reads and sets.

    `place` orders the steps and questions of a workflow. A step's input shares the place of its step, and its
    confirmation stands right after it.
    """

    id: str
    kind: Literal["gate", "confirmation", "input"]
    activity: str
    loops: tuple[str, ...]
    place: float
    reads: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    shows: tuple[str, ...] = ()
    when: Test | None = None
    required: bool = True
    waits_ms: int | None = None
    approvers: tuple[str, ...] = ()
    options: Mapping[str, OptionData] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacedStep:
    """A step, and where it stands."""

    step: StepData
    activity: str
    loops: tuple[str, ...]
    place: int


def placed_steps(data: WorkflowData) -> Iterator[PlacedStep]:
    """Yield every step with its place."""
    for place, (activity, loops, item) in enumerate(_places(data)):
        if isinstance(item, StepData):
            yield PlacedStep(item, activity, loops, place)


def is_held_up(data: WorkflowData) -> bool:
    """Say whether anything in a workflow asks or checks."""
    return any(questions(data)) or any(placed.step.checked for placed in placed_steps(data))


def questions(data: WorkflowData) -> Iterator[QuestionData]:
    """Yield every question of a workflow, in order."""
    for place, (activity, loops, item) in enumerate(_places(data)):
        match item:
            case StepData():
                if item.asks:
                    reads, sets = frozenset({"target"}), frozenset({item.input_id})
                    reads |= {item.when[0]} if item.when else set()
                    shows = ("target",)
                    yield QuestionData(
                        item.input_id, "input", activity, loops, place, reads, sets, shows, item.when
                    )
                if item.confirm:
                    yield QuestionData(item.confirmation_id, "confirmation", activity, loops, place + 0.5)
            case GateData():
                reads = frozenset(name.partition(".")[0] for name in item.shows)
                reads |= {item.when[0]} if item.when else set()
                sets = frozenset(name for option in item.options for name, _ in option.sets)
                yield QuestionData(
                    item.id,
                    "gate",
                    activity,
                    loops,
                    place,
                    reads,
                    sets,
                    item.shows,
                    item.when,
                    item.required,
                    item.waits_ms,
                    item.approvers,
                    {option.id: option for option in item.options},
                )


def _places(data: WorkflowData) -> Iterator[tuple[str, tuple[str, ...], ItemData]]:
    for activity in data.activities:
        yield from _in_order(activity.id, activity.items, ())


def _in_order(
    activity: str, items: Sequence[ItemData], loops: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], ItemData]]:
    for item in items:
        yield activity, loops, item
        if isinstance(item, LoopData):
            yield from _in_order(activity, item.body, (*loops, item.id))


YES_NO = (OptionData("yes", (("approved", True),)), OptionData("no", (("approved", False),)))
PLAIN = (OptionData("yes"), OptionData("no"))
AGAIN = (OptionData("again", (("again", True),)), OptionData("done", (("again", False),)))
AWAY = (OptionData("on"), OptionData("away", to=END))

YES_OR_NOTHING = (OptionData("yes", (("approved", True),)), OptionData("no"))

KINDS: dict[str, ItemData] = {
    "step": StepData("s"),
    "optional": StepData("s", required=False),
    "contract": StepData("s", contract=True),
    "confirm": StepData("s", confirm=True),
    "approval": StepData("s", asks="approval"),
    "value": StepData("s", asks="value"),
    "count": StepData("s", asks="count"),
    "risky-approval": StepData("s", asks="approval", when=("risky", True)),
    "setter": StepData("s", sets=("target",)),
    "optional-setter": StepData("s", required=False, sets=("target", "approved")),
    "prose": StepData("s", mentions="approved"),
    "deploy": StepData("s", when=("approved", True)),
    "gate": GateData("g", YES_NO, ("target",)),
    "yes-or-nothing": GateData("g", YES_OR_NOTHING),
    "dotted": GateData("g", YES_NO, ("plan.host",)),
    "optional-gate": GateData("g", PLAIN, required=False),
    "conditional": GateData("g", PLAIN, when=("risky", True)),
    "listing": GateData("g", YES_NO, ("places",)),
    "away": GateData("g", AWAY),
    "waiting": GateData("g", PLAIN, waits_ms=1000),
    "approvers": GateData("g", YES_NO, ("target",), approvers=APPROVERS),
    "checked": StepData("s", checked=True),
    "each": LoopData("l", (GateData("g", PLAIN, ("item",)),), over="places", item="item"),
    "each-step": LoopData("l", (StepData("s"), GateData("g", PLAIN, ("item",))), over="places", item="item"),
    "each-approval": LoopData("l", (StepData("s", asks="approval"),), over="places", item="item"),
    "each-checked": LoopData("l", (StepData("s", checked=True),), over="places", item="item"),
    "each-reporting": LoopData(
        "l", (StepData("s", checked=True), GateData("g", PLAIN, (SHOWN_CHECK,))), over="parts", item="item"
    ),
    "each-approvers": LoopData(
        "l", (GateData("g", PLAIN, ("item",), approvers=APPROVERS),), over="places", item="item"
    ),
    "each-plain": LoopData("l", (StepData("s"),), over="places", item="item"),
    "while": LoopData("l", (StepData("s"), GateData("g", AGAIN)), test=("again", True)),
    "while-after": LoopData("l", (GateData("g", AGAIN), StepData("s")), test=("again", True)),
    "while-plain": LoopData("l", (StepData("s"),), test=("again", True)),
    "nested": LoopData(
        "l",
        (LoopData("m", (GateData("g", PLAIN, ("item", "part")),), over="parts", item="part"),),
        over="places",
        item="item",
    ),
    "shadowing": LoopData(
        "l",
        (
            GateData("g", PLAIN, ("currentItem",)),
            LoopData("m", (StepData("t"),), over="parts"),
            StepData("s"),
        ),
        over="places",
    ),
}
SHAPES = ("one", "two", "detour", "three", "mode", "child")


def workflow_of(kinds: Sequence[str], shape: str = "one") -> WorkflowData:
    """Build the workflow with these kinds of items in order, spread over the activities of the shape."""
    items = [_numbered(KINDS[kind], number) for number, kind in enumerate(kinds, 1)]
    items = [_bound(items, index) for index in range(len(items))]
    name = f"{shape}[{'+'.join(kinds)}]"
    foreign = "prose" in kinds
    match shape:
        case "one" | "child":
            only = ActivityData("a", tuple(items))
            return WorkflowData(name, (only,), foreign=foreign, child=shape == "child")
        case "two":
            first = ActivityData("a", tuple(items[:-1]), (ExitData("b"),))
            return WorkflowData(name, (first, ActivityData("b", tuple(items[-1:]))), foreign=foreign)
        case "detour":  # `a` may go straight to `c` if `shortcut` is set; otherwise by `b`
            exits = (ExitData("c", ("shortcut", True)), ExitData("b"))
            activities = (
                ActivityData("a", tuple(items[:-2]) or (StepData("s0"),), exits),
                ActivityData("b", tuple(items[-2:-1]), (ExitData("c"),)),
                ActivityData("c", tuple(items[-1:])),
            )
            return WorkflowData(name, activities, foreign=foreign)
        case _:
            activities = (
                ActivityData("a", tuple(items[:-2]) or (StepData("s0"),), (ExitData("b"),)),
                ActivityData("b", tuple(items[-2:-1]), (ExitData("c"),)),
                ActivityData("c", tuple(items[-1:])),
            )
            mode = ("quick", "b") if shape == "mode" else None
            return WorkflowData(name, activities, mode, foreign=foreign)


def _numbered(item: ItemData, number: int) -> ItemData:
    """Return the item, and all in it, with ids of its own."""
    match item:
        case LoopData():
            body = tuple(_numbered(inner, number) for inner in item.body)
            return replace(item, id=f"{item.id}{number}", body=body)
        case _:
            return replace(item, id=f"{item.id}{number}")


def _bound(items: Sequence[ItemData], index: int) -> ItemData:
    """Bind every other gate that stands right before a step to it."""
    item, following = items[index], items[index + 1] if index + 1 < len(items) else None
    if isinstance(item, GateData) and isinstance(following, StepData) and index % 2 == 1:
        return replace(item, before=following.id)
    return item


def two_items() -> Iterator[WorkflowData]:
    """Yield every workflow of two items, in one activity or in two."""
    return _pairs("one", "two")


def spread() -> Iterator[WorkflowData]:
    """Yield the same pairs with a third activity, with a shortcut or a mode, and with a child."""
    return _pairs(*SHAPES[2:])


def _pairs(*shapes: str) -> Iterator[WorkflowData]:
    for shape in shapes:
        for kinds in product(KINDS, repeat=2):
            yield workflow_of(kinds, shape)


def larger(seed: int) -> Iterator[WorkflowData]:
    """Yield workflows of three and four items for ever."""
    random = Random(seed)
    while True:
        kinds = random.choices(list(KINDS), k=random.choice((3, 3, 4)))
        yield workflow_of(kinds, random.choice(SHAPES))
