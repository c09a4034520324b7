"""One line of the list of workflows, and how the lines are ordered."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.authoring.compile.ids import IdStatus, id_status, suggested
from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.authoring.sources.sources import SourceKind
from interlock.core.definition.workflow import Form, Kind, Variable, Workflow

HIDDEN = "meta"


class Listed(Struct, frozen=True):
    """A workflow that can be run, without its contents.

    `size` is what an agent can be sent of it, in bytes. `uses` are the workflows and templates that it names.
    """

    id: str
    name: str
    description: str
    version: str
    kind: Kind
    form: Form
    category: str
    tags: tuple[str, ...]
    source: str
    hash: str
    id_status: IdStatus
    suggested_id: str | None = None
    hidden: bool = False
    inputs: tuple[Variable, ...] = ()
    size: int = 0
    uses: tuple[str, ...] = ()


class Shadowed(Struct, frozen=True):
    """A file whose id belongs to a file of a source that outranks its own (rule 38a).

    Files are relative to their sources; the paths are for comparing and are never shown to agents.
    """

    workflow_id: str
    source: str
    file: str
    path: str
    by_source: str
    by_file: str
    by_path: str

    @property
    def message(self) -> str:
        return (
            f"'{self.workflow_id}' of {self.source} ({self.file}) is shadowed by {self.by_source} "
            f"({self.by_file})"
        )


class Listing(Struct, frozen=True):
    """The workflows that can be run, the diagnostics of all files, and which files are shadowed."""

    entries: tuple[Listed, ...]
    diagnostics: tuple[Diagnostic, ...]
    shadowed: tuple[Shadowed, ...] = ()


def listed(workflow: Workflow, digest: str, source: SourceKind, texts: Mapping[str, str]) -> Listed:
    """Return the line of a compiled workflow."""
    status = id_status(workflow)
    steps = [step for activity in workflow.activities for step in activity.steps()]
    triggers = [*(activity.triggers for activity in workflow.activities), *(step.triggers for step in steps)]
    names = {trigger.workflow for each in triggers for trigger in each} | {step.provenance for step in steps}
    return Listed(
        id=workflow.id,
        name=workflow.name,
        description=workflow.description,
        version=workflow.version,
        kind=workflow.kind,
        form=workflow.form,
        category=workflow.category or next(iter(workflow.tags), "general"),
        tags=workflow.tags,
        source=source,
        hash=digest,
        id_status=status,
        suggested_id=suggested(workflow.id, source) if status == "legacy" else None,
        hidden=workflow.id == HIDDEN,
        inputs=workflow.inputs(),
        size=len(msgspec.json.encode(workflow)) + sum(len(text.encode()) for text in texts.values()),
        uses=tuple(sorted(name for name in names if name)),
    )


def in_list_order(entry: Listed) -> tuple[str, str, str, str]:
    """Return a sort key: by namespace, workflows before routines, then by name."""
    namespace = entry.id.partition(".")[0] if "." in entry.id else ""
    return namespace, {"workflow": "0", "routine": "1"}[entry.kind], entry.name, entry.id
