"""The names of steps on this surface: `-` for `.`, `_` and `#`, and a number after a duplicate (rule 38).

A step's name depends on the workflow alone, so that what is listed, offered and validated is the same step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TypeAlias

from msgspec import Struct

from interlock.core.definition.workflow import Step, Workflow

StepKey: TypeAlias = tuple[str, str]

_NUMBER = re.compile(r"[2-9]|[1-9][0-9]{1,5}")
_DASHED = str.maketrans("._#", "---")


class Names(Struct, frozen=True):
    """The names of all steps, by activity and step id, and the steps by name."""

    by_step: Mapping[StepKey, str]
    steps: Mapping[str, Step]

    def find(self, step_id: str) -> Step | None:
        """Find a step by its name, or by the name of one of its instances."""
        name = dashed(step_id)
        if name in self.steps:
            return self.steps[name]
        first, _, number = name.rpartition("-")
        return self.steps.get(first) if _NUMBER.fullmatch(number) else None


class Visits:
    """Names each visit of a step: the bare name first, then `-2`, `-3`, past the names of other steps."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._last: dict[str, int] = {}

    def name(self, key: StepKey) -> str:
        """Name the next visit of the step."""
        name = self._names.by_step[key]
        if name not in self._last:
            self._last[name] = 1
            return name
        number = next(n for n in count(self._last[name] + 1) if f"{name}-{n}" not in self._names.steps)
        self._last[name] = number
        return f"{name}-{number}"


def shown_ids(ids: Iterable[str]) -> dict[str, str]:
    """Name workflows as this surface shows them; of two that would look alike the second gets a number."""
    shown: dict[str, str] = {}
    for workflow_id in sorted(ids):
        first = dashed(workflow_id)
        numbered = (f"{first}-{n}" for n in count(2))
        name = first if first not in shown else next(name for name in numbered if name not in shown)
        shown[name] = workflow_id
    return shown


def dashed(id_: str) -> str:
    """Write an id as this surface shows it."""
    return id_.translate(_DASHED).lower()


def names_of(workflow: Workflow) -> Names:
    """Name every step of the workflow, in the order of its activities."""
    by_step: dict[StepKey, str] = {}
    steps: dict[str, Step] = {}
    for activity in workflow.activities:
        for step in activity.steps():
            first = name = dashed(step.id)
            if first in steps:
                name = next(numbered for n in count(2) if (numbered := f"{first}-{n}") not in steps)
            by_step[activity.id, step.id] = name
            steps[name] = step
    return Names(by_step, steps)
