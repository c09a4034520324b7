"""Which variables can still decide something from a place on: two states that agree on them are one.

A variable that is always written again before anything reads it does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from interlock.authoring.simulate.candidates import item_conditions, way_conditions
from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.program import (
    END,
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Op,
    Plan,
    RepeatLoop,
)
from interlock.core.definition.workflow import Action, Activity, Gate, Item, Loop, walk


class Liveness:
    """Computed once for a workflow, asked at every state. `setters` are the variables that steps produce."""

    def __init__(self, plan: Plan, setters: Mapping[str, Sequence[str]]) -> None:
        self._plan = plan
        self._setters = setters
        self._always = {mode.activation_variable for mode in plan.workflow.modes}
        self._entry: dict[str, set[str]] = {one.id: set() for one in plan.workflow.activities}
        self._tables: dict[str, dict[str, frozenset[str]]] = {}
        while self._widen():
            pass

    def at(self, activity: str | None, key: str) -> frozenset[str]:
        """The variables that matter from this place on."""
        if activity is None:
            return frozenset().union(*self._entry.values())
        return self._tables[activity][key]

    def after(self, activity: str, key: str) -> frozenset[str]:
        """The variables that matter behind this place."""
        return self._tables[activity][self._plan.program(activity).after(key)]

    def _widen(self) -> bool:
        """Look at every activity once more; say whether something new came up."""
        grown = False
        for activity in self._plan.workflow.activities:
            table = self._tables[activity.id] = self._table(activity)
            first = table[self._plan.program(activity.id).first] - set(_written(activity.entry_actions))
            grown = grown or not first <= self._entry[activity.id]
            self._entry[activity.id] |= first
        return grown

    def _table(self, activity: Activity) -> dict[str, frozenset[str]]:
        """Read the program backwards, from the ways out to the first item."""
        live = self._always | _bases(_variables(way_conditions(activity)))
        live |= {name for target in targets_of(activity) for name in self._entry.get(target, ())}
        found, depth = {END: frozenset(live)}, 0
        for op in reversed(list(self._plan.program(activity.id).ops.values())):
            depth += isinstance(op, RepeatLoop) - isinstance(op, EnterLoop)
            live = self._before(op, live, looping=depth > 0)
            found[op.key] = frozenset(live)
        return found

    def _before(self, op: Op, live: set[str], *, looping: bool) -> set[str]:
        """What matters before an item; within a loop it may come again, so nothing is forgotten there."""
        match op:
            case DoStep():
                sure = not looping and op.step.condition is None
                written = {*self._setters.get(op.step.id, ()), *_written(op.step.actions)} if sure else set()
                return (live - written) | _read_by(op.step)
            case AskGate() | ConfirmStep():
                written = set() if looping else _always_set(op.gate)
                ahead = {name for one in _leads_to(op.gate) for name in self._entry.get(one, ())}
                return (live - written) | _read_by(op.gate) | ahead
            case EnterLoop() | RepeatLoop():
                return live.union(_read_by(op.loop), *map(_read_by, walk(op.loop.body)))


def _written(actions: Iterable[Action]) -> Iterator[str]:
    for one in actions:
        if one.action == "set" and one.target and one.has_value and one.condition is None:
            yield one.target


def _always_set(gate: Gate) -> set[str]:
    if gate.condition is not None or not gate.required:
        return set()
    return set.intersection(*(set(option.effect.set_variables) for option in gate.options))


def _read_by(item: Item) -> set[str]:
    names = _bases(_variables(item_conditions(item)))
    if isinstance(item, Loop):
        names |= _bases(one for one in (item.items, item.count) if isinstance(one, str))
    return names


def _variables(conditions: Iterable[Condition]) -> Iterator[str]:
    return (name for one in conditions for name in variables_of(one))


def _bases(paths: Iterable[str]) -> set[str]:
    return {path.partition(".")[0] for path in paths}


def targets_of(activity: Activity) -> Iterator[str]:
    """The activities that ways, branches and options lead to."""
    yield from (exit_.to for exit_ in activity.transitions)
    yield from (branch.to for one in activity.decisions for branch in one.branches if branch.to)
    for gate in activity.gates():
        yield from _leads_to(gate)


def _leads_to(gate: Gate) -> Iterator[str]:
    return (one.effect.transition_to for one in gate.options if one.effect.transition_to)
