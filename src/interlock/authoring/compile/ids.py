"""Ids of workflows: their patterns, the reserved namespace, mounts, and what lookup shows (rule 38)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from interlock.core.definition.workflow import Form, Workflow
from interlock.core.values import Json

if TYPE_CHECKING:
    from interlock.authoring.diagnostics.codes import Report
    from interlock.authoring.sources.sources import Source
    from interlock.authoring.text.locations import SourceLocation

IdStatus = Literal["namespaced", "legacy"]

NAMESPACED = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")
DOTLESS = re.compile(r"[a-z0-9][a-z0-9_-]*")
FOLDER_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
RESERVED = "wr."
LEGACY_ID = "IL402"  # the diagnostic of an id without a namespace
LONGEST_ID = 128
NAMESPACE_OF = {"project": "project", "git": "repo", "plugin": "repo"}


def has_namespace(form: Form) -> bool:
    """Say whether ids of this form have a namespace; those of activity workflows are names of folders."""
    return form == "steps"


def id_status(workflow: Workflow) -> IdStatus:
    return "legacy" if has_namespace(workflow.form) and "." not in workflow.id else "namespaced"


def suggested(workflow_id: str, source: str) -> str:
    """Return the namespaced id that a legacy id should get, by the kind of its source."""
    return f"{NAMESPACE_OF.get(source, 'user')}.{workflow_id}"


def lookup_id(workflow_id: str) -> str:
    """Return the id as the lookup surface shows it."""
    return workflow_id.replace(".", "-").replace("_", "-")


def check_id(declared: Json, form: Form, at: SourceLocation, report: Report) -> None:
    """Report an id that is not valid for a workflow of this form."""
    if not isinstance(declared, str) or not declared:
        return
    is_namespaced = has_namespace(form)
    patterns = (NAMESPACED, DOTLESS) if is_namespaced else (FOLDER_ID,)
    shape = "team.name" if is_namespaced else "my-workflow"
    if not any(pattern.fullmatch(declared) for pattern in patterns) or len(declared) > LONGEST_ID:
        report.add("IL401", f"'{declared[:80]}' is not an id such as {shape}", at / "id")


def mounted_id(workflow_id: str, form: Form, source: Source) -> str:
    """Return the id that a declared id has in its source."""
    is_bare = workflow_id.startswith(RESERVED) or "." not in workflow_id
    if not has_namespace(form) or source.namespace is None or not is_bare:
        return workflow_id
    return f"{source.namespace}.{workflow_id.removeprefix(RESERVED)}"


def is_reserved(workflow_id: str, source: Source) -> bool:
    return workflow_id.startswith(RESERVED) and source.kind != "bundled"


def mounted(workflow: Workflow, source: Source, at: SourceLocation, report: Report) -> Workflow:
    """Give the workflow the id it has in its source, and report a missing or reserved namespace."""
    if not has_namespace(workflow.form):
        return workflow
    new_id = mounted_id(workflow.id, workflow.form, source)
    if new_id != workflow.id:
        workflow = msgspec.structs.replace(workflow, id=new_id)
        if not NAMESPACED.fullmatch(new_id):
            report.add("IL401", f"'{source.namespace}' is not a valid namespace", at / "id")
    if is_reserved(workflow.id, source):
        report.add("IL403", f"'{workflow.id}' is in the reserved namespace wr", at / "id")
    if "." not in workflow.id:
        namespaced = suggested(workflow.id, source.kind)
        report.add(LEGACY_ID, f"'{workflow.id}' has no namespace", at / "id", f"rename it to '{namespaced}'")
    return workflow
