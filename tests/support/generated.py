"""Workflows and agents out of thin air: every shape the compiler may hand to the core, small enough to end.

Transitions lead forwards unless asked otherwise and loops run at most three times, so that a run that does
not end is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from hypothesis import strategies as st

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator
from interlock.core.definition.workflow import (
    TERMINAL,
    Action,
    Activity,
    ActivityMode,
    Branch,
    Contract,
    DecisionPoint,
    Effect,
    Gate,
    Item,
    Loop,
    LoopKind,
    Option,
    Rule,
    Step,
    Transition,
    UserInput,
    Variable,
    Workflow,
)
from interlock.core.values import Json

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

NAMES = st.sampled_from("abcd")
PATHS = st.sampled_from(["a", "b", "c", "d", "a.b", "b.length", "other"])
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-3, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "yes", "No ", "5", "word", "0"]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
DELTAS = st.dictionaries(NAMES, VALUES | st.none(), max_size=3)
OPERATORS: list[Operator] = [
    "==",
    "!=",
    ">",
    "<",
    ">=",
    "<=",
    "exists",
    "notExists",
    "truthy",
    "equals",
    "not_equals",
    "contains",
    "startsWith",
    "endsWith",
    "in",
]
COMPARES = st.builds(Compare, PATHS, st.sampled_from(OPERATORS), VALUES | st.none())
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    COMPARES,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, max_size=2).map(tuple)),
        st.builds(AnyOf, st.lists(inner, max_size=2).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=3,
)
MAYBE = st.none() | CONDITIONS
ROUND = Contract(
    ref="test.round",
    artifact="test.round",
    schema={"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
    example={"kind": "test.round", "size": 1},
)
WORD = Rule("contains", "say the word", value="word")


class Author:
    """Draws one workflow; ids never repeat, as the compiler sees to."""

    def __init__(self, draw: Draw[Any], *, defaults: bool, circles: bool) -> None:
        self.draw = draw
        self.defaults = defaults
        self.circles = circles
        self.number = count(1)

    def workflow(self) -> Workflow:
        ids = [f"act{number}" for number in range(self.draw(st.integers(1, 4)))]
        ahead = [ids if self.circles else ids[index + 1 :] for index in range(len(ids))]
        activities = tuple(
            self.activity(activity_id, [*later, TERMINAL])
            for activity_id, later in zip(ids, ahead, strict=True)
        )
        return Workflow(
            id="test.any",
            name="Any",
            description="",
            version="1.0.0",
            activities=activities,
            initial=self.draw(st.sampled_from([ids[0], None])),
            variables=tuple(
                self.draw(st.lists(self.variables(), max_size=2, unique_by=lambda variable: variable.name))
            ),
            modes=tuple(self.draw(st.lists(self.modes(ids), max_size=1))),
        )

    def variables(self) -> st.SearchStrategy[Variable]:
        return st.builds(Variable, NAMES, default=SCALARS, has_default=st.booleans())

    def modes(self, ids: list[str]) -> st.SearchStrategy[ActivityMode]:
        skips = st.lists(st.sampled_from(ids), max_size=1).map(tuple)
        return st.builds(
            ActivityMode, st.just("quick"), st.just("Quick"), st.just("a"), skip_activities=skips
        )

    def activity(self, activity_id: str, ahead: list[str]) -> Activity:
        return Activity(
            id=activity_id,
            name=activity_id,
            items=self.items(ahead, depth=0, most=3),
            decisions=self.decisions(ahead),
            transitions=self.transitions(ahead),
            entry_actions=self.actions(),
            exit_actions=self.actions(),
        )

    def transitions(self, ahead: list[str]) -> tuple[Transition, ...]:
        conditional = st.builds(Transition, st.sampled_from(ahead), CONDITIONS)
        listed = self.draw(st.lists(conditional, max_size=2))
        if not listed or self.defaults or self.draw(st.booleans()):
            default = self.draw(st.lists(st.sampled_from(ahead), min_size=int(bool(listed)), max_size=1))
            listed += [Transition(target, default=True) for target in default]
        return tuple(listed)

    def decisions(self, ahead: list[str]) -> tuple[DecisionPoint, ...]:
        if self.draw(st.integers(0, 3)):
            return ()
        target = st.none() | st.sampled_from(ahead)
        branch = st.builds(
            Branch, st.just("branch"), st.just("Branch"), MAYBE, to=target, default=st.booleans()
        )
        return (DecisionPoint("which", "Which", tuple(self.draw(st.lists(branch, min_size=1, max_size=2)))),)

    def items(self, ahead: list[str], *, depth: int, most: int) -> tuple[Item, ...]:
        size = self.draw(st.integers(int(depth > 0), most))
        return tuple(self.item(ahead, depth) for _ in range(size))

    def item(self, ahead: list[str], depth: int) -> Item:
        kinds = ["step", "step", "gate", "loop"] if depth < 2 else ["step", "gate"]
        match self.draw(st.sampled_from(kinds)):
            case "step":
                return self.step()
            case "gate":
                return self.gate(ahead)
            case _:
                return self.loop(ahead, depth)

    def step(self) -> Step:
        step_id = f"step{next(self.number)}"
        asks = UserInput("needs_user_artifact", "Where is it?", key="given")
        return Step(
            id=step_id,
            title=step_id,
            condition=self.draw(MAYBE),
            confirm=self.draw(st.sampled_from([False, False, True]) | CONDITIONS),
            contracts=self.draw(st.sampled_from([(), (), (ROUND,)])),
            criteria=self.draw(st.sampled_from([None, None, WORD])),
            user_input=self.draw(st.sampled_from([(), (), (asks,)])),
            actions=self.actions(),
        )

    def actions(self) -> tuple[Action, ...]:
        action = st.builds(
            Action, st.just("set"), NAMES, value=SCALARS, has_value=st.booleans(), condition=MAYBE
        )
        return tuple(self.draw(st.lists(action, max_size=1)))

    def gate(self, ahead: list[str]) -> Gate:
        gate_id = f"gate{next(self.number)}"
        options = tuple(self.option(ahead, number) for number in range(self.draw(st.integers(1, 3))))
        return Gate(
            id=gate_id,
            name=gate_id,
            message=f"{gate_id}?",
            options=options,
            condition=self.draw(MAYBE),
            required=self.draw(st.sampled_from([True, True, False])),
            blocking=self.draw(st.booleans()),
            default_option=self.draw(st.none() | st.sampled_from([option.id for option in options])),
            auto_advance_ms=self.draw(st.none() | st.just(1000)),
        )

    def option(self, ahead: list[str], number: int) -> Option:
        effect = st.builds(
            Effect,
            st.dictionaries(NAMES, SCALARS | st.none(), max_size=1),
            st.sampled_from([None, None, None, *ahead]),
            st.lists(st.sampled_from(ahead[:-1] or ["nowhere"]), max_size=1).map(tuple),
        )
        return Option(f"option{number}", f"Option {number}", effect=self.draw(effect))

    def loop(self, ahead: list[str], depth: int) -> Loop:
        loop_id = f"loop{next(self.number)}"
        kind: LoopKind = self.draw(st.sampled_from(["while", "until", "doWhile", "for", "forEach"]))
        return Loop(
            id=loop_id,
            title=loop_id,
            kind=kind,
            body=self.items(ahead, depth=depth + 1, most=2),
            max_iterations=self.draw(st.integers(1, 3)),
            run_condition=self.draw(MAYBE),
            condition=self.draw(MAYBE),
            break_condition=self.draw(MAYBE),
            count=self.draw(st.integers(0, 4) | NAMES),
            items=self.draw(NAMES),
            item_var=self.draw(st.none() | NAMES),
            index_var=self.draw(st.none() | NAMES),
            iteration_var=self.draw(st.none() | NAMES),
            steered=kind in ("while", "until", "doWhile") and self.draw(st.booleans()),
        )


@st.composite
def workflows(draw: Draw[Any], *, defaults: bool = False, circles: bool = False) -> Workflow:
    """Any workflow whose transitions lead forwards, or with `circles` anywhere.

    `defaults` gives every activity an open way out.
    """
    return Author(draw, defaults=defaults, circles=circles).workflow()


def decision(gate: str, option: str) -> dict[str, Json]:
    return {"kind": "wr.decision", "checkpointId": gate, "optionId": option}
