"""An activity as a flat program: what is done, asked and repeated, in the order a run meets it.

Operations have keys, never indices (rule 37), so that a state names what comes next.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.condition_uses import EVERYTHING, FLOW, conditions_of, item_conditions
from interlock.core.definition.conditions import Scope, holds, tests_of, variables_of
from interlock.core.definition.expressions import ARTIFACTS, root
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
NOT_HANDED_IN = "not handed in"
OTHER = "another value"


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
    """The operations of an activity by their keys, which the log has too, and which follows which."""

    ops: Mapping[str, Op]
    following: Mapping[str, str]
    first: str

    def after(self, key: str) -> str:
        return self.following[key]

    def head(self, loop_id: str) -> EnterLoop:
        """Return the operation that enters a loop."""
        head = self.ops[loop_key(loop_id)]
        assert isinstance(head, EnterLoop)
        return head

    def tail(self, loop_id: str) -> RepeatLoop:
        """Return the operation that repeats a loop, or leaves it."""
        tail = self.ops[_tail_key(loop_id)]
        assert isinstance(tail, RepeatLoop)
        return tail


def step_key(step_id: str) -> str:
    return f"step:{step_id}"


def confirmation_key(step_id: str) -> str:
    return f"confirm:{step_id}"


def loop_key(loop_id: str) -> str:
    return f"loop:{loop_id}"


def _tail_key(loop_id: str) -> str:
    return f"tail:{loop_id}"


class Choices(Struct, frozen=True):
    """The values that a variable is known to take; `closed` says that there are no others."""

    values: tuple[Json, ...] = ()
    closed: bool = False

    @property
    def text(self) -> str:
        """The values as JSON, because a word is not a number; empty if none is known."""
        shown = [msgspec.json.encode(value).decode() for value in self.values]
        return " | ".join([*shown, *([f"<{OTHER}>"] if shown and not self.closed else [])])


class Plan:
    """A workflow made ready to run: its programs and defaults, computed once."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.quoted = _quoted(workflow)
        unquoted: dict[str, Json] = {
            name: dict.fromkeys(fields, NOT_HANDED_IN) for name, fields in self.quoted.items()
        }
        self.defaults = {**workflow.defaults(), **({ARTIFACTS: unquoted} if unquoted else {})}
        self.types = {known.name: known.type for known in workflow.variables if known.typed}
        self.legal = {known.name: known.values for known in workflow.variables if known.values}
        self._programs: dict[str, Program] = {}

    def program(self, activity_id: str) -> Program:
        """Return the activity's program, which is made when it is first asked for."""
        if activity_id in self._programs:
            return self._programs[activity_id]
        activity = self.workflow.activity(activity_id)
        assert activity is not None, f"the pinned workflow has no activity {activity_id!r}"
        ops = list(_flatten(activity.items))
        keys = [*(op.key for op in ops), END]
        following = dict(itertools.pairwise(keys))
        linked = {op.key: op for op in ops}
        for op in ops:
            if isinstance(op, EnterLoop):
                linked[op.key] = replace(op, after=following[_tail_key(op.loop.id)])
            elif isinstance(op, RepeatLoop):
                first = following[loop_key(op.loop.id)]
                linked[op.key] = replace(op, first=first, after=following[op.key])
        self._programs[activity_id] = Program(linked, following, keys[0])
        return self._programs[activity_id]

    @cached_property
    def decisive(self) -> Mapping[str, tuple[Json, ...]]:
        """The variables that conditions read, each with its default and the values it is compared with."""
        compared: dict[str, dict[str, Json]] = {}
        for condition in conditions_of(self.workflow, FLOW):
            for test in tests_of(condition):
                values = test.value if isinstance(test.value, (list, tuple)) else [test.value]
                known = compared.setdefault(test.variable.partition(".")[0], {})
                if test.operator in ("==", "!=", "equals", "not_equals", "in") and "." not in test.variable:
                    known.update({repr(value): value for value in values if value is not None})
        for variable in self.workflow.variables:
            if values_known := compared.get(variable.name):
                others = (True, False) if variable.type == "boolean" else (variable.default,)
                values_known.update({repr(value): value for value in others if value is not None})
        return {name: tuple(values.values()) for name, values in compared.items()}

    def choices(self, name: str) -> Choices:
        """Return the values that a variable may have, else those that conditions compare it with."""
        if legal := self.legal.get(name):
            return Choices(legal, closed=True)
        compared = self.decisive.get(name, ())
        if self.types.get(name) == "boolean" or (compared and all(isinstance(it, bool) for it in compared)):
            return Choices((True, False), closed=True)
        return Choices(compared)

    @cached_property
    def item_names(self) -> Mapping[str, str]:
        """The lists that loops go through, each with the variable that holds the item of a round."""
        items = (item for activity in self.workflow.activities for item in walk(activity.items))
        loops = (loop for loop in items if isinstance(loop, Loop) and loop.kind == "forEach")
        return {loop.items or "items": loop.variables()[-1] for loop in loops}

    @cached_property
    def looped(self) -> Mapping[str, Mapping[str, bool]]:
        """The lists that loops go through, each with the members of an item that they read.

        Of a member it says whether it is a list itself.
        """
        looped: dict[str, dict[str, bool]] = {}
        for activity in self.workflow.activities:
            for loop in walk(activity.items):
                if isinstance(loop, Loop) and loop.kind == "forEach":
                    looped.setdefault(loop.items or "items", {}).update(_members_read(loop))
        return looped

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The variables that say whether the agent can use a secret; none ever holds one."""
        items = (item for activity in self.workflow.activities for item in walk(activity.items))
        needs = (need for item in items if isinstance(item, Step) for need in item.user_input)
        return frozenset(need.key for need in needs if need.is_secret and need.key)

    @cached_property
    def decisions(self) -> Mapping[str, tuple[tuple[Gate, Variables], ...]]:
        """What options of required gates set, by variable."""
        setting: dict[str, tuple[tuple[Gate, Variables], ...]] = {}
        gates = [gate for activity in self.workflow.activities for gate in activity.gates() if gate.required]
        for gate in gates:
            for sets in (option.effect.set_variables for option in gate.options):
                for name in {root(path) for path in sets}:
                    setting[name] = (*setting.get(name, ()), (gate, sets))
        return setting

    @cached_property
    def decided_only(self) -> Mapping[str, str]:
        """The variables that only answers to required gates set, each with such a gate (rule 26).

        Not those that steps or inputs supply, questions show, or loops, modes and their own gates go by.
        """
        activities = self.workflow.activities
        items = [item for activity in activities for item in walk(activity.items)]
        steps = [item for item in items if isinstance(item, Step)]
        supplied = {root(need.key or "") for step in steps for need in step.user_input}
        supplied |= {root(mode.activation_variable) for mode in self.workflow.modes}
        supplied |= {root(path) for gate in items if isinstance(gate, Gate) for path in gate.text_paths()}
        supplied |= {root(str(loop.items or loop.count)) for loop in items if isinstance(loop, Loop)}
        return {
            name: deciding[0][0].id
            for name, deciding in self.decisions.items()
            if name not in supplied
            and not any(step.sets(name) for step in steps)
            and all(name in gate.only_sets for gate, _ in deciding)
        }

    @cached_property
    def _shown(self) -> Mapping[str, frozenset[str]]:
        """The variables that items show in their texts or repeat over, each with those items."""
        showing: dict[str, frozenset[str]] = {}
        for activity in self.workflow.activities:
            for item in walk(activity.items):
                for name in map(root, item.shown_paths()):
                    showing[name] = showing.get(name, frozenset()) | {item.id}
        return showing

    def produced(self, step: Step, scope: Scope) -> tuple[str, ...]:
        """Name what a step must set: what it is declared to set and others need.

        A condition needs it; in files whose declarations are complete also another item that shows it, unless
        it has a default (rule 31).
        """
        names = (
            action.produces
            for action in step.actions
            if action.produces and self._needs(action.produces, step) and holds(action.condition, scope)
        )
        return tuple(dict.fromkeys(names))

    def _needs(self, name: str, step: Step) -> bool:
        if name in self.decisive or not self.workflow.dialect.declares_sets or name in self.defaults:
            return name in self.decisive
        return bool(self._shown.get(name, frozenset()) - {step.id})

    def scope(self, variables: Variables) -> Scope:
        """Return what conditions see: a mode that is on puts its defaults over the declared ones."""
        scope = Scope(variables, self.defaults)
        for mode in self.workflow.modes:
            if mode.defaults and scope.value(mode.activation_variable) is True:
                scope = Scope(variables, {**scope.defaults, **mode.defaults})
        return scope


def _quoted(workflow: Workflow) -> dict[str, set[str]]:
    """Return the fields of artifacts that texts and conditions quote, by artifact."""
    items = (item for activity in workflow.activities for item in walk(activity.items))
    read = (variables_of(condition) for condition in conditions_of(workflow, EVERYTHING))
    quoted: dict[str, set[str]] = {}
    for path in itertools.chain(*(item.shown_paths() for item in items), *read):
        base, _, member = path.partition(".")
        name, _, field = member.partition(".")
        if base == ARTIFACTS and field:
            quoted.setdefault(name, set()).add(field)
    return quoted


def _members_read(loop: Loop) -> dict[str, bool]:
    """Return the members of the loop's item that its body reads, and which of them are lists."""
    item, members = loop.variables()[-1], dict[str, bool]()
    for path, is_list in _read_in(loop.body, item):
        base, _, member = path.removesuffix(".length").partition(".")
        if base == item and member:
            members[member] = members.get(member, False) or is_list or path.endswith(".length")
    return {
        member: is_list
        for member, is_list in members.items()
        if not any(other.startswith(f"{member}.") for other in members)  # an object is shown by its members
    }


def _read_in(items: Sequence[Item], name: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths that items read, and whether they go through what is there.

    An inner loop may use the name for its own items.
    """
    for item in items:
        conditions = (variables_of(use.condition) for use in item_conditions(item))
        for path in itertools.chain(item.shown_paths(), *conditions):
            yield path, isinstance(item, Loop) and path == item.items
        if isinstance(item, Loop) and name not in item.variables():
            yield from _read_in(item.body, name)


def _flatten(items: Sequence[Item]) -> Iterator[Op]:
    for item in items:
        match item:
            case Step():
                yield DoStep(step_key(item.id), item)
                if item.may_confirm:
                    yield ConfirmStep(confirmation_key(item.id), item, confirmation(item))
            case Gate():
                yield AskGate(f"gate:{item.id}", item)
            case Loop():
                yield EnterLoop(loop_key(item.id), item, "")
                yield from _flatten(steered(item).body)
                yield RepeatLoop(_tail_key(item.id), item, "", "")


def steered(loop: Loop) -> Loop:
    """Make sure that some step of a steered loop must decide, the last one if none says so."""
    contracts = (contract for step in steering_steps(loop) for contract in step.contracts)
    decided = any(contract.artifact == LOOP_CONTROL for contract in contracts)
    last = next((item for item in reversed(loop.body) if isinstance(item, Step)), None)
    if not loop.steered or decided or last is None:
        return loop
    deciding = replace(last, contracts=(*last.contracts, loop_control()))
    return replace(loop, body=tuple(deciding if item is last else item for item in loop.body))


def steering_steps(loop: Loop) -> Iterator[Step]:
    """Yield the steps whose decisions steer the loop: those of a steered loop inside it steer that one."""
    for item in loop.body:
        if isinstance(item, Step):
            yield item
        elif isinstance(item, Loop) and not item.steered:
            yield from steering_steps(item)


def loop_control() -> Contract:
    """The contract of the decision that steers a loop."""
    choices: list[Json] = ["continue", "stop"]
    return Contract(
        ref="wr.contracts.loop_control",
        artifact=LOOP_CONTROL,
        schema={"type": "object", "required": ["decision"], "properties": {"decision": {"enum": choices}}},
        example={"kind": LOOP_CONTROL, "decision": "stop"},
    )


def gates_of(activity: Activity) -> list[Gate]:
    """Return every gate of an activity in order; a step that may ask for confirmation brings one."""
    gates: list[Gate] = []
    for item in walk(activity.items):
        match item:
            case Gate():
                gates.append(item)
            case Step() if item.may_confirm:
                gates.append(confirmation(item))
    return gates


def confirmation(step: Step) -> Gate:
    """The gate that follows a step with `requireConfirmation`."""
    return Gate(
        id=f"confirm-{step.id}",
        name=f"Confirm: {step.title}",
        message=f"Step '{step.title}' is done. Go on, or revise it?",
        options=(Option("proceed", "Proceed"), Option("revise", "Revise", "Do the step again")),
        bound_to=step.id,
    )


def entrance_gate(workflow: Workflow) -> Gate:
    """The first gate of a workflow of independent activities: which one to enter (rule 35)."""
    return Gate(
        id=ENTRANCE,
        name="Choose an activity",
        message=f"'{workflow.name}' has independent activities. Which one fits the goal?",
        options=tuple(
            Option(activity.id, activity.name, activity.problem or activity.description)
            for activity in workflow.activities
        ),
    )
