"""Names of workflows: their patterns, what is reserved, and how the lookup surface shows them (rule 38)."""

from __future__ import annotations

import re
from typing import Literal

from interlock.core.workflow import Workflow

IdStatus = Literal["namespaced", "legacy"]

NAMESPACED = re.compile(r"[a-z][a-z0-9_-]*\.[a-z0-9][a-z0-9_-]*")
DOTLESS = re.compile(r"[a-z0-9][a-z0-9_-]*")
FOLDER_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
RESERVED = "wr."
LONGEST_ID = 128


def status_of(workflow: Workflow) -> IdStatus:
    return "namespaced" if "." in workflow.id or workflow.form == "activities" else "legacy"


def suggested(workflow_id: str) -> str:
    return f"user.{workflow_id.replace('-', '_')}"


def lookup_id(workflow_id: str) -> str:
    """The id as the lookup surface shows it."""
    return workflow_id.replace(".", "-").replace("_", "-")
