"""The tools as data: what an agent reads before it has read anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.core.values import Json
from interlock.surfaces.navigation import params as p
from interlock.surfaces.surface import Tool

if TYPE_CHECKING:
    from interlock.surfaces.navigation.surface import NavigationSurface

INSTRUCTIONS = (
    "Interlock walks you through a workflow. nav_start gives a situation: do what availableActions.required "
    "asks, report it with nav_action, and pass on the newest state each time. At a checkpoint ask the user. "
    "Not sure what to start? get_activities."
)


def tools(door: NavigationSurface) -> tuple[Tool, ...]:
    """Every tool of the door, in the document's order."""
    return _navigating(door)


def _navigating(door: NavigationSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "nav_start",
            "Start a workflow. Returns the first situation: position, availableActions, checkpoint, state.",
            p.NavStart,
            door.nav_start,
            output_schema=SITUATION,
        ),
        Tool(
            "nav_situation",
            "Show the situation again. Changes nothing. Takes the token of any run, from any surface.",
            p.NavState,
            door.nav_situation,
            output_schema=SITUATION,
            read_only=True,
        ),
        Tool(
            "nav_action",
            "Take an available action: complete_step (step_id), respond_to_checkpoint (checkpoint_id, "
            "option_id: the user's choice), transition (activity_id), advance_loop (loop_id, loop_items). "
            "The same call again returns the same answer; an older state starts a new branch. "
            "success false: nothing moved; error says what to do.",
            p.NavAction,
            door.nav_action,
            output_schema=SITUATION,
            idempotent=True,
        ),
        Tool(
            "nav_checkpoint",
            "Show the checkpoint that waits for the user, with its options.",
            p.NavState,
            door.nav_checkpoint,
            read_only=True,
        ),
    )


SITUATION: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "position": {"type": "object"},
        "message": {"type": "string"},
        "availableActions": {"type": "object"},
        "checkpoint": {"type": ["object", "null"]},
        "state": {"type": "string"},
        "error": {"type": "object"},
    },
}
