"""Names of workflows: their patterns, what is reserved, and how the lookup surface shows them (rule 38)."""

from __future__ import annotations

import re
from typing import Literal

from interlock.core.definition.workflow import Workflow

IdStatus = Literal["namespaced", "legacy"]

NAMESPACED = re.compile(r"[a-z][a-z0-9_-]*\.[a-z0-9][a-z0-9_-]*")
DOTLESS = re.compile(r"[a-z0-9][a-z0-9_-]*")
FOLDER_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
RESERVED = "wr."
LEGACY_ID = "IL402"  # the diagnostic of an id without a namespace
LONGEST_ID = 128


def status_of(workflow: Workflow) -> IdStatus:
    return "namespaced" if "." in workflow.id or workflow.form == "activities" else "legacy"


NAMESPACE_OF = {"project": "project", "git": "repo", "plugin": "repo"}


def suggested(workflow_id: str, source: str) -> str:
    """The namespaced name that a legacy id should get, by where its file comes from."""
    return f"{NAMESPACE_OF.get(source, 'user')}.{workflow_id}"


def lookup_id(workflow_id: str) -> str:
    """The id as the lookup surface shows it."""
    return workflow_id.replace(".", "-").replace("_", "-")
