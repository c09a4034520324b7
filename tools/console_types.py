"""Write the TypeScript types of the console's pages and actions from the structs that the server sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from interlock.console.actions import (
    AbandonRequest,
    ActionDone,
    DecideRequest,
    ForkRequest,
    ModeRequest,
    NoteRequest,
    TrustRequest,
)
from interlock.console.answers import ConsoleError
from interlock.console.pages.comparison import Comparison
from interlock.console.pages.health import DoctorReport, HealthPage, SettingsPage
from interlock.console.pages.inbox_pages import InboxPage, InboxQuestion
from interlock.console.pages.run_pages import (
    KeepRequest,
    RemovalPage,
    RemoveRequest,
    RunsChanged,
    RunsPage,
    ViewRequest,
)
from interlock.console.pages.search_pages import SearchPage
from interlock.console.pages.session_pages import EventsPage, ForkText, NodePage, SessionPage
from interlock.console.pages.simulation import SimulationPage
from interlock.console.pages.trust_pages import TrustPage
from interlock.console.pages.workflow_pages import BuiltinsPage, RunGraph, WorkflowPage, WorkflowsPage
from interlock.ledger.queries.branch_artifacts import BranchArtifacts

TARGET = Path(__file__).resolve().parents[1] / "console" / "src" / "types.ts"
SENT = [
    InboxPage,
    InboxQuestion,
    RunsPage,
    RemovalPage,
    RunsChanged,
    SessionPage,
    NodePage,
    ForkText,
    EventsPage,
    BranchArtifacts,
    RunGraph,
    Comparison,
    WorkflowsPage,
    WorkflowPage,
    SimulationPage,
    BuiltinsPage,
    SearchPage,
    HealthPage,
    DoctorReport,
    SettingsPage,
    TrustPage,
    ActionDone,
    ConsoleError,
]
RECEIVED = [
    DecideRequest,
    NoteRequest,
    ModeRequest,
    ForkRequest,
    AbandonRequest,
    KeepRequest,
    RemoveRequest,
    ViewRequest,
    TrustRequest,
]
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
HEAD = "// Written by tools/console_types.py from the structs of the server. Do not edit.\n"


def typescript() -> str:
    """Return the declarations of everything that is sent and received."""
    _, components = msgspec.json.schema_components([*SENT, *RECEIVED], ref_template="{name}")
    received = {struct.__name__ for struct in RECEIVED}
    declared = [HEAD]
    for name, schema in components.items():
        if "properties" not in schema:
            declared.append(f"export type {name} = {type_of(schema)};\n")
            continue
        required = schema.get("required", ())
        lines = [
            f"  {field}{'' if field in required or name not in received else '?'}: {type_of(part)};"
            for field, part in schema["properties"].items()
        ]
        declared.append("\n".join([f"export interface {name} {{", *lines, "}\n"]))
    return "\n".join(declared)


def type_of(schema: dict[str, Any]) -> str:
    """Return a schema as a type."""
    match schema:
        case {"$ref": str(name)}:
            return name
        case {"anyOf": list(choices)}:
            return " | ".join(type_of(choice) for choice in choices)
        case {"enum": list(values)}:
            return " | ".join(msgspec.json.encode(value).decode() for value in values)
        case {"const": value}:
            return msgspec.json.encode(value).decode()
        case {"prefixItems": list(items)}:
            return f"[{', '.join(type_of(item) for item in items)}]"
        case {"type": "array", "items": dict(items)}:
            return f"Array<{type_of(items)}>"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"Record<string, {type_of(values)}>"
        case {"type": "object"}:
            return "Record<string, unknown>"
        case {"type": list(types)}:
            return " | ".join(PLAIN.get(each, "unknown") for each in types)
        case {"type": str(plain)}:
            return PLAIN[plain]
        case _:
            return "unknown"


if __name__ == "__main__":
    TARGET.write_text(typescript())
