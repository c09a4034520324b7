"""Values worth trying: those that the conditions of a workflow mention, and one other.

An agent may set any variable at any time; a simulation sets one at the steps whose prompts name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from math import prod
from typing import Any

import msgspec

from interlock.core.definition.condition_uses import FLOW, Decides, conditions_of
from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, tests_of
from interlock.core.definition.expressions import ARTIFACTS, artifact_name, root
from interlock.core.definition.program import LOOP_CONTROL
from interlock.core.definition.variable_sets import sets_of
from interlock.core.definition.workflow import Loop, Step, Workflow, walk
from interlock.core.values import MISSING, Json
from interlock.core.variables.typed_values import converted

MOST_VALUES = 24
MOST_FIELDS = 8
MOST_TOGETHER = 128
OTHER = "another value"
ITEM = "an item"
SIMULATED: frozenset[Decides] = FLOW | {"set"}  # what the server sets decides later conditions
OTHERS: Mapping[str | None, Json] = {"array": [ITEM], "object": {ITEM: OTHER}}
ITEMS: Mapping[str | None, Json] = {**OTHERS, "number": 1, "boolean": True}


class Trials:
    """What may be tried in one workflow: values by variable, and the variables that each step may set."""

    def __init__(self, workflow: Workflow) -> None:
        activities = workflow.activities
        self._loops = [
            item for activity in activities for item in walk(activity.items) if isinstance(item, Loop)
        ]
        conditions = list(conditions_of(workflow, SIMULATED))
        self._comparisons = [comparison for condition in conditions for comparison in tests_of(condition)]
        self._witnesses = [dict(_witness(condition)) for condition in conditions]
        self._modes = [mode.activation_variable for mode in workflow.modes]
        self._types = {known.name: known.type for known in workflow.variables if known.typed}
        self._legal = {known.name: known.values for known in workflow.variables if known.values}
        local = {name for loop in self._loops for name in loop.variables()}
        paths = [comparison.variable for comparison in self._comparisons] + self._modes
        paths += [path for loop in self._loops for path in loop.repeats_over]
        deciding = dict.fromkeys(map(root, paths))
        self.values = {name: self._values(name) for name in deciding if name not in {*local, ARTIFACTS}}
        self.setters = {
            step.id: tuple(self._set_by(step)) for activity in activities for step in activity.steps()
        }
        by_steps = {name for names in self.setters.values() for name in names}
        self.given = tuple(name for name in self.values if name not in by_steps | _set_by_server(workflow))

    def _values(self, name: str, lists: tuple[str, ...] = ()) -> list[Json]:
        """Return the values to try; `lists` are the variables whose items these values are."""
        if legal := self._legal.get(name):
            return [*legal[:MOST_VALUES]]
        loops = [loop for loop in self._loops if loop.items == name]
        lengths = [comparison for comparison in self._comparisons if comparison.variable == f"{name}.length"]
        if loops or lengths:
            contained = [
                it.value for it in self._comparisons if (it.variable, it.operator) == (name, "contains")
            ]
            lists_tried = self._lists(loops, lengths, (*lists, name), contained)
            return _distinct(lists_tried)[:MOST_VALUES]
        values: list[Json] = []
        if any(loop.count == name for loop in self._loops):
            values += [2, 0]
        if name in self._modes:
            values += [True, False]
        values += _mentioned(comparison for comparison in self._comparisons if comparison.variable == name)
        values += self._objects(name)
        kind = self._types.get(name)
        fit = [OTHERS.get(kind, value) if value == OTHER else value for value in values]
        return _distinct(value for value in fit if converted(kind, value) is not MISSING)[:MOST_VALUES]

    def _lists(
        self, loops: list[Loop], lengths: list[Compare], lists: tuple[str, ...], contained: list[Json]
    ) -> Iterator[Json]:
        elements: list[Json] = [ITEM, *contained]
        for loop in loops:
            if loop.item_var and loop.item_var not in lists:
                typed = ITEMS.get(self._types.get(loop.item_var), ITEM)
                elements = self._values(loop.item_var, lists) or [typed, *elements[1:]]
        yield elements[:1]
        yield []
        yield elements[:2] if len(elements) > 1 else elements * 2
        yield from ([element] for element in elements[1:])
        for comparison in lengths:
            size = comparison.value if isinstance(comparison.value, int) else 0
            yield from ([elements[0]] * length for length in (size, size + 1) if length <= 20)

    def _objects(self, name: str) -> Iterator[Json]:
        """Yield objects that have the fields which conditions look into."""
        fields: dict[str, list[Compare]] = {}
        for comparison in self._comparisons:
            if comparison.variable.startswith(f"{name}."):
                fields.setdefault(comparison.variable, []).append(comparison)
        if not fields:
            return
        for values in islice(product(*map(_mentioned, fields.values())), MOST_FIELDS):
            made: dict[str, Any] = {}
            for path, value in zip(fields, values, strict=True):
                _, *outer, last = path.split(".")
                inner = made
                for name_of_field in outer:
                    inner = inner.setdefault(name_of_field, {})
                inner[last] = value
            yield made

    def _set_by(self, step: Step) -> Iterator[str]:
        """Yield the variables that the step must produce, asks the user for, or names in its prompt.

        A prompt names a variable in backticks, or as a word that cannot be anything else.
        """
        asked = {*(action.produces for action in step.actions), *(wanted.key for wanted in step.user_input)}
        prompt = "\n".join(fragment.text for fragment in step.prompt)
        for name in self.values:
            is_unusual = "_" in name or not name.islower()
            word = rf"(?<![\w{{.]){re.escape(name)}(?![\w}}])"
            if name in asked or f"`{name}`" in prompt or (is_unusual and re.search(word, prompt)):
                yield name

    def handed_in(self, step: Step) -> Iterator[tuple[Mapping[str, Json], ...]]:
        """Yield what a step may hand in: each decision about a loop, each value that a condition compares."""
        choices = (list(self._artifacts(contract.artifact)) for contract in step.contracts)
        yield from islice(product(*(artifacts for artifacts in choices if artifacts)), MOST_TOGETHER)

    def _artifacts(self, kind: str) -> Iterator[Mapping[str, Json]]:
        if kind == LOOP_CONTROL:
            yield from ({"kind": kind, "decision": word} for word in ("stop", "continue"))
            return
        own, fields = f"{ARTIFACTS}.{artifact_name(kind)}.", dict[str, list[Compare]]()
        for comparison in self._comparisons:
            if comparison.variable.startswith(own):
                fields.setdefault(comparison.variable.removeprefix(own), []).append(comparison)
        if fields:
            for values in islice(product(*map(_mentioned, fields.values())), MOST_FIELDS):
                yield {"kind": kind, **dict(zip(fields, values, strict=True))}

    def assignments(self, names: Iterable[str]) -> list[dict[str, Json]]:
        """Return assignments of these variables together: all if they are few, else a selection."""
        wanted = [name for name in names if name in self.values]
        if not wanted:
            return [{}]
        if prod(max(1, len(self.values[name])) for name in wanted) <= MOST_TOGETHER:
            combinations = product(*(self.values[name] for name in wanted))
            return [dict(zip(wanted, values, strict=True)) for values in combinations]
        # The selection has each value of each variable once, and makes every condition true once.
        first = {name: self.values[name][0] for name in wanted if self.values[name]}
        selected = [{**first, name: value} for name in wanted for value in self.values[name]]
        for witness in self._witnesses:
            part = {name: value for name, value in witness.items() if name in wanted}
            if len(part) > 1:
                selected.append({**first, **part})
        return selected


def _set_by_server(workflow: Workflow) -> set[str]:
    """Return the variables that options, actions and modes write."""
    names = {mode.activation_variable for mode in workflow.modes if mode.defaults}
    return names | {each.name for each in sets_of(workflow) if each.by in ("option", "server")}


def _mentioned(comparisons: Iterable[Compare]) -> Iterator[Json]:
    """Yield the values that these comparisons name, then one that none of them names."""
    values = _distinct(value for comparison in comparisons for value in _values_in(comparison))
    yield from values
    if not values:
        return
    if any(isinstance(value, bool) for value in values):
        yield from (True, False)
    elif all(isinstance(value, (int, float)) for value in values):
        yield max(value for value in values if isinstance(value, (int, float))) + 1
    else:
        yield OTHER


def _values_in(comparison: Compare) -> list[Json]:
    value = comparison.value
    match comparison.operator:
        case ">" | "<" | ">=" | "<=":
            number = value if isinstance(value, (int, float)) else 0
            return [number - 1, number, number + 1]
        case "in":
            return list(value)[:3] if isinstance(value, (list, tuple)) else []
        case "truthy":
            return [True]
        case "exists" | "notExists":
            return [OTHER, None]
        case "contains":
            return [[value], []]
        case _:
            return [value]


def _witness(condition: Condition) -> Iterator[tuple[str, Json]]:
    """Yield variables that make a condition true, as far as that is known without solving it."""
    match condition:
        case Compare():
            if "." not in condition.variable and condition.operator in ("==", "equals", "truthy"):
                yield condition.variable, True if condition.operator == "truthy" else condition.value
        case AllOf():
            for part in condition.conditions:
                yield from _witness(part)
        case AnyOf():
            for part in condition.conditions[:1]:
                yield from _witness(part)
        case Not():
            return


def _distinct(values: Iterable[Json]) -> list[Json]:
    """Return each value once; 0 and false are different."""
    return list({msgspec.json.encode(value): value for value in values}.values())
