"""An activity as a flat program: what is done, asked and repeated, in the order a run meets it.

Positions are keys, never indices (rule 37), so that a state says where it stands in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope
from interlock.core.definition.workflow import (
    Activity,
    Contract,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Workflow,
    walk,
)
from interlock.core.values import Json, Variables

END = "end"
ENTRANCE = "choose-activity"
LOOP_CONTROL = "wr.loop_control"


class DoStep(Struct, frozen=True):
    """Hand out a step."""

    key: str
    step: Step


class ConfirmStep(Struct, frozen=True):
    """Ask whether the step before is good enough (rule 25)."""

    key: str
    step: Step
    gate: Gate


class AskGate(Struct, frozen=True):
    """Ask the gate's question."""

    key: str
    gate: Gate


class EnterLoop(Struct, frozen=True):
    """Enter a loop, or pass it by to `after`."""

    key: str
    loop: Loop
    after: str


class RepeatLoop(Struct, frozen=True):
    """Repeat the loop from `first`, or leave it to `after`."""

    key: str
    loop: Loop
    first: str
    after: str


Op: TypeAlias = DoStep | ConfirmStep | AskGate | EnterLoop | RepeatLoop


class Program(Struct, frozen=True):
    ops: Mapping[str, Op]
    following: Mapping[str, str]
    first: str

    def after(self, key: str) -> str:
        return self.following[key]


class Plan:
    """A workflow made ready to run: its programs and defaults, computed once."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.defaults = workflow.defaults()
        self._programs: dict[str, Program] = {}

    def program(self, activity_id: str) -> Program:
        if activity_id not in self._programs:
            activity = self.workflow.activity(activity_id)
            assert activity is not None, f"the pinned workflow has no activity {activity_id!r}"
            self._programs[activity_id] = _program(activity)
        return self._programs[activity_id]

    def scope(self, variables: Variables) -> Scope:
        return Scope(variables, self.defaults)


def _program(activity: Activity) -> Program:
    ops = list(_flatten(activity.items))
    keys = [op.key for op in ops]
    following = dict(zip(keys, [*keys[1:], END], strict=False))  # no keys at all, where there is no work
    placed = {op.key: _linked(op, following) for op in ops}
    return Program(placed, following, keys[0] if keys else END)


def _flatten(items: Sequence[Item]) -> Iterator[Op]:
    for item in items:
        match item:
            case Step():
                yield DoStep(f"step:{item.id}", item)
                if item.confirm is not False:
                    yield ConfirmStep(f"confirm:{item.id}", item, confirmation(item))
            case Gate():
                yield AskGate(f"gate:{item.id}", item)
            case Loop():
                yield EnterLoop(f"loop:{item.id}", item, "")
                yield from _flatten(steered(item).body)
                yield RepeatLoop(f"tail:{item.id}", item, "", "")


def _linked(op: Op, following: Mapping[str, str]) -> Op:
    match op:
        case EnterLoop():
            return EnterLoop(op.key, op.loop, following[f"tail:{op.loop.id}"])
        case RepeatLoop():
            return RepeatLoop(op.key, op.loop, following[f"loop:{op.loop.id}"], following[op.key])
        case _:
            return op


def steered(loop: Loop) -> Loop:
    """Make sure that some step of a steered loop must decide, the last one if none says so."""
    if not loop.steered or any(_decides(item) for item in walk(loop.body)):
        return loop
    last = next((item for item in reversed(loop.body) if isinstance(item, Step)), None)
    if last is None:
        return loop
    body = tuple(_deciding(item) if item is last else item for item in loop.body)
    return replace(loop, body=body)


def _decides(item: Item) -> bool:
    return isinstance(item, Step) and any(one.artifact == LOOP_CONTROL for one in item.contracts)


def _deciding(item: Item) -> Item:
    assert isinstance(item, Step)
    return replace(item, contracts=(*item.contracts, loop_control()))


def loop_control() -> Contract:
    """The decision that a steered loop goes by."""
    choices: list[Json] = ["continue", "stop"]
    return Contract(
        ref="wr.contracts.loop_control",
        artifact=LOOP_CONTROL,
        schema={"type": "object", "required": ["decision"], "properties": {"decision": {"enum": choices}}},
        example={"kind": LOOP_CONTROL, "decision": "stop"},
    )


def confirmation(step: Step) -> Gate:
    """The gate that a step with `requireConfirmation` puts behind itself."""
    return Gate(
        id=f"confirm-{step.id}",
        name=f"Confirm: {step.title}",
        message=f"Step '{step.title}' is done. Go on, or revise it?",
        options=(Option("proceed", "Proceed"), Option("revise", "Revise", "Do the step again")),
        bound_to=step.id,
    )
