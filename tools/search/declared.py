"""Where a workflow's plain data says that a run may go, given what conditions see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from tools.search.workflows import END, StepData, Test, WorkflowData, questions

Value: TypeAlias = Callable[[str], Any]  # what conditions see under a path; None if it is unset


def decided_only(data: WorkflowData) -> frozenset[str]:
    """Name what options of required gates set and nobody else supplies: it is never the agent's."""
    asked = list(questions(data))
    decided = {name for question in asked if question.required for name in question.sets}
    supplied = {name for item in data.items() if isinstance(item, StepData) for name in item.sets}
    supplied |= {question.id for question in asked if question.kind == "input"}
    supplied |= {name.partition(".")[0] for question in asked for name in question.shows}
    supplied |= {it.when[0] for it in asked if it.when is not None and it.when[0] in it.sets}
    supplied |= {data.mode[0]} if data.mode is not None else set()
    return frozenset(decided - supplied)


def open_exits(data: WorkflowData, activity_id: str, value: Value) -> set[str]:
    """Return the targets whose condition holds, or is the agent's to claim."""
    activity = data.activity(activity_id)
    assert activity is not None
    if not activity.exits:
        return {END}
    return {
        past_skipped(data, leads.to, value) for leads in activity.exits if _is_open(data, leads.when, value)
    }


def _is_open(data: WorkflowData, when: Test | None, value: Value) -> bool:
    """An agent may claim what nobody has set, unless a question decides it."""
    if when is None or value(when[0]) == when[1]:
        return True
    return value(when[0]) is None and not any(when[0] in question.sets for question in questions(data))


def past_skipped(data: WorkflowData, to: str, value: Value) -> str:
    """Return where an exit leads if a mode skips its target."""
    skipped = data.activity(to) if data.mode is not None and to == data.mode[1] else None
    if skipped is None or data.mode is None or value(data.mode[0]) is not True:
        return to
    return skipped.exits[-1].to if skipped.exits else END


def passed_by(data: WorkflowData, start: str, to: str, value: Value) -> set[str]:
    """Return the activities on any declared path to a target, without both ends.

    Where none leads there, and from the beginning (an empty start), paths begin with the first activity.
    Where those do not lead there either, nothing is skipped.
    """
    for whole in (data, replace(data, mode=None)):
        for begin in dict.fromkeys((start, data.activities[0].id)):
            if paths := list(_paths(whole, begin, to, value)):
                return {name for path in paths for name in path} - {start}
    return set()


def _paths(
    data: WorkflowData, start: str, to: str, value: Value, trail: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the declared paths to a target, without it."""
    activity = data.activity(start)
    if activity is None or start in trail:
        return
    for target in [past_skipped(data, leads.to, value) for leads in activity.exits] or [END]:
        if target == to:
            yield (*trail, start)
        else:
            yield from _paths(data, target, to, value, (*trail, start))
