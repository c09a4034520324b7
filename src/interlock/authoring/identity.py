"""Names of workflows: namespaces, what is reserved, and what a mount makes of an id (rule 38)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from interlock.authoring.diagnostics import Report
from interlock.authoring.parsed import Spot
from interlock.authoring.sources import Source
from interlock.core.workflow import Workflow

IdStatus = Literal["namespaced", "legacy"]

NAMESPACED = re.compile(r"[a-z][a-z0-9_-]*\.[a-z0-9][a-z0-9_-]*")
DOTLESS = re.compile(r"[a-z0-9][a-z0-9_-]*")
FOLDER_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
RESERVED = "wr."


def mounted(workflow: Workflow, source: Source, at: Spot, report: Report) -> Workflow:
    """Give the workflow the id it has in its source, and report what is wrong with it."""
    if workflow.form == "activities":
        return _folder(workflow, at, report)
    if not (NAMESPACED.fullmatch(workflow.id) or DOTLESS.fullmatch(workflow.id)):
        report.add("IL401", f"'{workflow.id}' is not an id such as team.name", at / "id")
        return workflow
    if source.namespace is not None and (workflow.id.startswith(RESERVED) or "." not in workflow.id):
        name = workflow.id.removeprefix(RESERVED)
        return msgspec.structs.replace(workflow, id=f"{source.namespace}.{name}")
    if workflow.id.startswith(RESERVED) and source.kind != "bundled":
        report.add("IL403", f"'{workflow.id}' is in the reserved namespace wr", at / "id")
    if "." not in workflow.id:
        report.add(
            "IL402",
            f"'{workflow.id}' has no namespace",
            at / "id",
            f"rename it to '{suggested(workflow.id)}'",
        )
    return workflow


def _folder(workflow: Workflow, at: Spot, report: Report) -> Workflow:
    if not FOLDER_ID.fullmatch(workflow.id):
        report.add("IL401", f"'{workflow.id}' is not an id such as my-workflow", at / "id")
    return workflow


def status_of(workflow: Workflow) -> IdStatus:
    return "namespaced" if "." in workflow.id or workflow.form == "activities" else "legacy"


def suggested(workflow_id: str) -> str:
    return f"user.{workflow_id.replace('-', '_')}"


def lookup_id(workflow_id: str) -> str:
    """The id as the lookup surface shows it."""
    return workflow_id.replace(".", "-").replace("_", "-")
