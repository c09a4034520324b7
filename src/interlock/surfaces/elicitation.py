"""A gate as a form for the user: the model writes tool arguments, it does not write these answers."""

from __future__ import annotations

from interlock.core.definition.prompts import interpolate
from interlock.core.definition.workflow import Gate
from interlock.core.engine.gates import shown
from interlock.core.values import Json
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Form

CHOICE = "choice"


def gate_question(at: Position, gate: Gate) -> Ask:
    """Put a gate to the user as a form with one choice."""
    options: list[Json] = [{"const": one.id, "title": one.label} for one in gate.options]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {CHOICE: {"type": "string", "oneOf": options}, "note": {"type": "string"}},
        "required": [CHOICE],
    }
    message = interpolate(gate.message, at.plan.scope(at.state.variables))
    return Ask({gate.id: Form(message, schema)}, shown(gate))
