"""Which variables can still decide something from a position on: states that agree on them are equal.

A variable that is always written before anything reads it does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from interlock.authoring.simulate.candidates import SIMULATED
from interlock.core.definition.condition_uses import exit_conditions, item_conditions, names_read
from interlock.core.definition.expressions import root
from interlock.core.definition.program import (
    END,
    AskGate,
    ConfirmStep,
    DoStep,
    EnterLoop,
    Plan,
    RepeatLoop,
)
from interlock.core.definition.workflow import Action, Activity, Item, Loop, walk
from interlock.core.engine.paths.exits import PossibleExit, possible_exits


class Liveness:
    """Computed once for a workflow, asked at every state. `setters` are the variables that steps produce."""

    def __init__(self, plan: Plan, setters: Mapping[str, Sequence[str]]) -> None:
        self._plan = plan
        self._setters = setters
        self._always = {mode.activation_variable for mode in plan.workflow.modes}
        self._entry: dict[str, set[str]] = {activity.id: set() for activity in plan.workflow.activities}
        self._exits: dict[str, list[PossibleExit]] = {
            activity.id: list(possible_exits(plan.workflow, activity))
            for activity in plan.workflow.activities
        }
        self._tables: dict[str, dict[str, frozenset[str]]] = {}
        grown = True
        while grown:  # until no activity has more variables that matter at its entry
            grown = False
            for activity in plan.workflow.activities:
                table = self._tables[activity.id] = self._table(activity)
                first = table[plan.program(activity.id).first] - set(_written(activity.entry_actions))
                grown = grown or not first <= self._entry[activity.id]
                self._entry[activity.id] |= first

    def at(self, activity: str | None, key: str) -> frozenset[str]:
        """Return the variables that matter from this operation on."""
        if activity is None:
            return frozenset().union(*self._entry.values())
        return self._tables[activity][key]

    def after(self, activity: str, key: str) -> frozenset[str]:
        """Return the variables that matter after this operation."""
        return self._tables[activity][self._plan.program(activity).after(key)]

    def _table(self, activity: Activity) -> dict[str, frozenset[str]]:
        """Read the program backwards, from the exits to the first item.

        What is always written before it is read does not matter; an item in a loop may run again, so
        nothing that it writes is forgotten.
        """
        exits = self._exits[activity.id]
        live = self._always | names_read(exit_conditions(activity), SIMULATED) | self._live_at(exits)
        table, depth = {END: frozenset(live)}, 0
        for op in reversed(list(self._plan.program(activity.id).ops.values())):
            depth += isinstance(op, RepeatLoop) - isinstance(op, EnterLoop)
            match op:
                case DoStep(step=step):
                    if depth == 0 and step.condition is None:
                        live = live - {*self._setters.get(step.id, ()), *_written(step.actions)}
                    live = live | _read_by(step)
                case AskGate(gate=gate) | ConfirmStep(gate=gate):
                    if depth == 0 and gate.condition is None and gate.required:
                        written: set[str] = set.intersection(
                            *(set(option.effect.set_variables) for option in gate.options)
                        )
                        live = live - written
                    chosen = self._live_at(exit_ for exit_ in exits if exit_.gate == gate.id)
                    live = live | _read_by(gate) | chosen
                case EnterLoop(loop=loop) | RepeatLoop(loop=loop):
                    live = live.union(_read_by(loop), *map(_read_by, walk(loop.body)))
            table[op.key] = frozenset(live)
        return table

    def _live_at(self, exits: Iterable[PossibleExit]) -> set[str]:
        return {name for exit_ in exits for name in self._entry.get(exit_.to, ())}


def _written(actions: Iterable[Action]) -> Iterator[str]:
    for action in actions:
        if action.assigns and action.condition is None:
            yield action.assigns


def _read_by(item: Item) -> set[str]:
    repeated_over = item.repeats_over if isinstance(item, Loop) else ()
    return names_read(item_conditions(item), SIMULATED) | set(map(root, repeated_over))
