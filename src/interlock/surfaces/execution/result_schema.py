"""What start_workflow and continue_workflow return, as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.values import Json

_TOKEN: Mapping[str, Json] = {"type": "string"}

RESULT: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["ok", "blocked"]},
        "stateToken": _TOKEN,
        "ackToken": _TOKEN,
        "checkpointToken": _TOKEN,
        "pending": {"type": ["object", "null"]},
        "isComplete": {"type": "boolean"},
        "nextIntent": {"type": "string"},
        "blockers": {"type": "array"},
        "warnings": {"type": "array"},
        "session": {"type": "object"},
        "workflow": {"type": "object"},
        "status": {"type": "string"},
        "abandoned": {"type": "object"},
        "gaps": {"type": "integer"},
        "preferences": {"type": "object"},
        "recap": {"type": "object"},
        "branches": {"type": "object"},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "retry": {"type": "object"},
        "details": {"type": "object"},
    },
}
