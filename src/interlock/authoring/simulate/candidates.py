"""Values worth trying: those that the conditions of a workflow mention, and one other.

An agent may set any variable at any time; a simulation lets it set one at the steps whose words name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice, product

import msgspec

from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow, walk
from interlock.core.values import Json

MOST_VALUES = 24
MOST_FIELDS = 8
MOST_TOGETHER = 128
OTHER = "another value"
ITEM = "an item"


def conditions_of(activity: Activity) -> Iterator[Condition]:
    """Every condition that the activity's flow depends on."""
    for item in walk(activity.items):
        yield from item_conditions(item)
    yield from way_conditions(activity)


def way_conditions(activity: Activity) -> Iterator[Condition]:
    """The conditions on the ways out."""
    exits = [exit_.condition for exit_ in activity.transitions]
    exits += [branch.condition for one in activity.decisions for branch in one.branches]
    return (one for one in exits if one is not None)


def item_conditions(item: Item) -> Iterator[Condition]:
    match item:
        case Step():
            found = [item.condition, *(action.condition for action in item.actions)]
        case Gate():
            found = [item.condition]
        case Loop():
            found = [item.run_condition, item.condition, item.break_condition]
    return (one for one in found if one is not None)


def tests_in(condition: Condition) -> Iterator[Compare]:
    """The comparisons that a condition is made of."""
    match condition:
        case Compare():
            yield condition
        case AllOf() | AnyOf():
            for part in condition.conditions:
                yield from tests_in(part)
        case Not():
            yield from tests_in(condition.condition)


class Trials:
    """What may be tried in one workflow: values by variable, and the variables that a step may set."""

    def __init__(self, workflow: Workflow) -> None:
        self._loops = [
            one for each in workflow.activities for one in walk(each.items) if isinstance(one, Loop)
        ]
        conditions = [one for each in workflow.activities for one in conditions_of(each)]
        self._tests = [test for condition in conditions for test in tests_in(condition)]
        self._wholes = [dict(_witness(condition)) for condition in conditions]
        self._modes = [mode.activation_variable for mode in workflow.modes]
        own = {name for loop in self._loops for name in loop.variables()}
        self.values = {name: self._values(name) for name in self._names() if name not in own}
        self.setters = {
            step.id: tuple(self._set_by(step)) for each in workflow.activities for step in each.steps()
        }
        named = {name for names in self.setters.values() for name in names} | _server_sets(workflow)
        self.given = tuple(name for name in self.values if name not in named)

    def _names(self) -> list[str]:
        """The variables that decide something, without the paths into them."""
        paths = [test.variable for test in self._tests] + self._modes
        paths += [loop.items for loop in self._loops if loop.items]
        paths += [loop.count for loop in self._loops if isinstance(loop.count, str)]
        return list(dict.fromkeys(path.partition(".")[0] for path in paths))

    def _values(self, name: str) -> list[Json]:
        return _distinct(self._candidates(name))[:MOST_VALUES]

    def _candidates(self, name: str) -> Iterator[Json]:
        loops = [loop for loop in self._loops if loop.items == name]
        lengths = [test for test in self._tests if test.variable == f"{name}.length"]
        if loops or lengths:
            yield from self._lists(loops, lengths)
            return
        if any(loop.count == name for loop in self._loops):
            yield from (2, 0)
        if name in self._modes:
            yield from (True, False)
        direct = [test for test in self._tests if test.variable == name]
        yield from _mentioned(direct)
        yield from self._objects(name)

    def _lists(self, loops: list[Loop], lengths: list[Compare]) -> Iterator[Json]:
        element: list[Json] = [ITEM]
        for loop in loops:
            element = (self._values(loop.item_var) if loop.item_var else []) or element
        yield element[:1]
        yield []
        yield element[:2] if len(element) > 1 else element * 2
        yield from ([one] for one in element[1:])
        for test in lengths:
            size = test.value if isinstance(test.value, int) else 0
            yield from ([element[0]] * one for one in (size, size + 1) if one <= 20)

    def _objects(self, name: str) -> Iterator[Json]:
        """Objects that have the fields which conditions look into."""
        paths = [test.variable for test in self._tests if test.variable.startswith(f"{name}.")]
        fields = {
            path: [test for test in self._tests if test.variable == path] for path in dict.fromkeys(paths)
        }
        tried = [list(_mentioned(tests)) for tests in fields.values()]
        for chosen in islice(product(*tried), MOST_FIELDS) if tried else ():
            made: dict[str, Json] = {}
            for path, value in zip(fields, chosen, strict=True):
                _put(made, path.split(".")[1:], value)
            yield made

    def _set_by(self, step: Step) -> Iterator[str]:
        produced = {one.target for one in step.actions if one.action == "set" and not one.has_value}
        asked = {one.key for one in step.user_input}
        words = "\n".join(fragment.text for fragment in step.prompt)
        for name in self.values:
            if name in produced or name in asked or _names(words, name):
                yield name

    def assignments(self, names: Iterable[str]) -> list[dict[str, Json]]:
        """Ways to set these variables together: all of them where they are few, else a telling choice."""
        wanted = [name for name in names if name in self.values]
        if not wanted:
            return [{}]
        count = 1
        for name in wanted:
            count *= max(1, len(self.values[name]))
        if count <= MOST_TOGETHER:
            return [
                dict(zip(wanted, one, strict=True))
                for one in product(*(self.values[each] for each in wanted))
            ]
        return list(self._telling(wanted))

    def _telling(self, wanted: list[str]) -> Iterator[dict[str, Json]]:
        """Each value of each variable once, and every condition made true once."""
        first = {name: self.values[name][0] for name in wanted if self.values[name]}
        for name in wanted:
            yield from ({**first, name: value} for value in self.values[name])
        for whole in self._wholes:
            part = {name: value for name, value in whole.items() if name in wanted}
            if len(part) > 1:
                yield {**first, **part}


def _server_sets(workflow: Workflow) -> set[str]:
    """Variables that options, actions and modes write."""
    names = {mode.activation_variable for mode in workflow.modes if mode.defaults}
    for activity in workflow.activities:
        names |= {
            key for gate in activity.gates() for one in gate.options for key in one.effect.set_variables
        }
        actions = [*activity.entry_actions, *activity.exit_actions]
        actions += [action for step in activity.steps() for action in step.actions]
        names |= {one.target for one in actions if one.action == "set" and one.target and one.has_value}
    return names


def _names(words: str, name: str) -> bool:
    """Say whether a text names a variable: in backticks, or as a word that could be nothing else."""
    if f"`{name}`" in words:
        return True
    odd = "_" in name or not name.islower()
    return odd and re.search(rf"(?<![\w{{.]){re.escape(name)}(?![\w}}])", words) is not None


def _mentioned(tests: Iterable[Compare]) -> Iterator[Json]:
    """The values that these comparisons name, then one that none of them names."""
    found = _distinct(value for test in tests for value in _named(test))
    yield from found
    if not found:
        return
    if any(isinstance(one, bool) for one in found):
        yield from (True, False)
    elif all(isinstance(one, (int, float)) for one in found):
        yield max(one for one in found if isinstance(one, (int, float))) + 1
    else:
        yield OTHER


def _named(test: Compare) -> list[Json]:
    match test.operator:
        case ">" | "<" | ">=" | "<=":
            number = test.value if isinstance(test.value, (int, float)) else 0
            return [number - 1, number, number + 1]
        case "in":
            return list(test.value)[:3] if isinstance(test.value, (list, tuple)) else []
        case "truthy":
            return [True]
        case "exists" | "notExists":
            return [OTHER, None]
        case "contains":
            return [[test.value], []]
        case _:
            return [test.value]


def _witness(condition: Condition) -> Iterator[tuple[str, Json]]:
    """Variables that make a condition true, as far as one can tell without solving it."""
    match condition:
        case Compare():
            if "." not in condition.variable and condition.operator in ("==", "equals", "truthy"):
                yield condition.variable, True if condition.operator == "truthy" else condition.value
        case AllOf():
            for part in condition.conditions:
                yield from _witness(part)
        case AnyOf():
            yield from _witness(condition.conditions[0])
        case Not():
            return


def _put(made: dict[str, Json], path: list[str], value: Json) -> None:
    *outer, last = path
    for name in outer:
        inner = made.setdefault(name, {})
        assert isinstance(inner, dict)
        made = inner
    made[last] = value


def _distinct(values: Iterable[Json]) -> list[Json]:
    """Each value once; 0 and false are two."""
    return list({msgspec.json.encode(one): one for one in values}.values())
