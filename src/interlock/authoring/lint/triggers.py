"""Workflows that a workflow starts as its children; only a list of all can tell whether they exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from interlock.authoring.compile.items import Draft
from interlock.authoring.diagnostics.diagnostic import Mention, Problem
from interlock.authoring.text.locations import Spot
from interlock.core.definition.workflow import Trigger, Workflow


def mentions_of(workflow: Workflow, head: Spot, draft: Draft) -> Iterator[Mention]:
    """Every trigger of the workflow that was written in a file of its own."""
    for activity in workflow.activities:
        home = draft.spots.get((activity.id, "activity", activity.id), head)
        yield from _mentions(activity.triggers, home)
        for step in activity.steps():
            if (spot := draft.spots.get((activity.id, "step", step.id))) is not None:
                yield from _mentions(step.triggers, spot)


def _mentions(triggers: Sequence[Trigger], at: Spot) -> Iterator[Mention]:
    for trigger in triggers:
        spot = (at / "triggers").holding(trigger.workflow)
        place = spot.place()
        yield Mention(trigger.workflow, spot.parsed.file, place.line, place.column)


def unknown(missing: Sequence[Mention], known: Collection[str], workflow_id: str) -> Iterator[Problem]:
    """Report the workflows that nothing provides."""
    from interlock.authoring.diagnostics.codes import CODES, did_you_mean

    for one in missing:
        message = f"unknown workflow '{one.workflow}'"
        fix = did_you_mean(one.workflow, known) or CODES["IL218"].fix
        yield Problem("IL218", message, fix, one.file, one.line, one.column, "warning", workflow_id)
