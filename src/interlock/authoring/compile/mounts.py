"""What a source makes of a workflow's id: mounts rename it, and the reserved namespace is kept (rule 38)."""

from __future__ import annotations

import msgspec

from interlock.authoring.compile.ids import (
    DOTLESS,
    FOLDER_ID,
    LEGACY_ID,
    LONGEST_ID,
    NAMESPACED,
    RESERVED,
    suggested,
)
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.sources.sources import Source
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Form, Workflow
from interlock.core.values import Json


def check_id(declared: Json, form: Form, at: SourceLocation, report: Report) -> None:
    """Report an id that no workflow of its form can have."""
    if not isinstance(declared, str) or not declared:
        return
    patterns, shape = (
        ((FOLDER_ID,), "my-workflow") if form == "activities" else ((NAMESPACED, DOTLESS), "team.name")
    )
    if not any(pattern.fullmatch(declared) for pattern in patterns) or len(declared) > LONGEST_ID:
        report.add("IL401", f"'{declared[:80]}' is not an id such as {shape}", at / "id")


def mounted(workflow: Workflow, source: Source, at: SourceLocation, report: Report) -> Workflow:
    """Give the workflow the id it has in its source, and report a namespace that is missing or taken."""
    if workflow.form == "activities":
        return workflow
    if source.namespace is not None and (workflow.id.startswith(RESERVED) or "." not in workflow.id):
        name = workflow.id.removeprefix(RESERVED)
        workflow = msgspec.structs.replace(workflow, id=f"{source.namespace}.{name}")
        if not NAMESPACED.fullmatch(workflow.id):
            report.add("IL401", f"'{source.namespace}' is not a name to mount under", at / "id")
    if workflow.id.startswith(RESERVED) and source.kind != "bundled":
        report.add("IL403", f"'{workflow.id}' is in the reserved namespace wr", at / "id")
    if "." not in workflow.id:
        report.add(
            LEGACY_ID,
            f"'{workflow.id}' has no namespace",
            at / "id",
            f"rename it to '{suggested(workflow.id, source.kind)}'",
        )
    return workflow
