"""The workflows that a workflow starts as its children; only a listing of all shows whether they exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.diagnostics.diagnostic import Diagnostic, Mention
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Trigger, Workflow


def mentions_of(workflow: Workflow, head: SourceLocation, draft: CompileDraft) -> Iterator[Mention]:
    """Yield every trigger that was written in a file of this workflow."""
    for activity in workflow.activities:
        home = draft.locations.get((activity.id, "activity", activity.id), head)
        yield from _mentions(activity.triggers, home)
        for step in activity.steps():
            if (location := draft.locations.get((activity.id, "step", step.id))) is not None:
                yield from _mentions(step.triggers, location)


def _mentions(triggers: Sequence[Trigger], at: SourceLocation) -> Iterator[Mention]:
    for trigger in triggers:
        location = (at / "triggers").holding(trigger.workflow).located()
        yield Mention(trigger.workflow, at.parsed.file, location.line, location.column)


def unknown(missing: Sequence[Mention], known: Collection[str], workflow_id: str) -> Iterator[Diagnostic]:
    """Report the workflows that no source provides."""
    from interlock.authoring.diagnostics.codes import CODES, did_you_mean

    for mention in missing:
        message = f"unknown workflow '{mention.workflow}'"
        next_action = did_you_mean(mention.workflow, known) or CODES["IL218"].next_action
        yield Diagnostic(
            "IL218", message, next_action, mention.file, mention.line, mention.column, "warning", workflow_id
        )
