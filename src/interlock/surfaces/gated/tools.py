"""The tools of the gated door as data: what an agent reads before it has read anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.surfaces.gated import params as p
from interlock.surfaces.shared import params as shared
from interlock.surfaces.tool import Tool

if TYPE_CHECKING:
    from interlock.surfaces.gated.surface import GatedSurface

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Begin with discover. Tokens are opaque: copy them whole, "
    "and use the newest. Answer every pending checkpoint with the user's choice before the next activity."
)


def tools(door: GatedSurface) -> tuple[Tool, ...]:
    """Every tool of the door, in the order in which an agent needs them."""
    return (*_bootstrap(door), *_workflow(door), *_texts(door))


def _bootstrap(door: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "discover",
            "Start here: server, version, workflows, and how to work with them.",
            shared.Nothing,
            door.discover,
            read_only=True,
        ),
        Tool("list_workflows", "List the workflows.", shared.Nothing, door.list_workflows, read_only=True),
        Tool("health_check", "Server status.", shared.Nothing, door.health_check, read_only=True),
        Tool(
            "start_session",
            "Start a session of a workflow, or inherit one by session_token. Returns session_token.",
            p.StartSession,
            door.start_session,
        ),
    )


def _workflow(door: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "get_workflow",
            "Rules, variables, modes, initialActivity and activities; summary=false gives all of it.",
            shared.GetWorkflow,
            door.get_workflow,
            read_only=True,
        ),
        Tool(
            "next_activity",
            "Leave the current activity, its steps done, and enter the next; returns it whole. The first is "
            "initialActivity. Refused while a required checkpoint is pending.",
            shared.NextActivity,
            door.next_activity,
            idempotent=True,
        ),
        Tool(
            "get_checkpoint",
            "A checkpoint's message and options, to show to the user.",
            p.GetCheckpoint,
            door.get_checkpoint,
            read_only=True,
        ),
        Tool(
            "respond_checkpoint",
            "Answer a pending checkpoint with exactly one of option_id (the user's choice), auto_advance, "
            "condition_not_met. Effects are applied and returned.",
            p.RespondCheckpoint,
            door.respond_checkpoint,
            idempotent=True,
        ),
    )


def _texts(door: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool("get_skills", "The workflow's skills.", p.GetSkills, door.get_skills, read_only=True),
        Tool("get_skill", "The skill of a step.", p.GetSkill, door.get_skill, read_only=True),
        Tool("get_resource", "A resource's text.", p.GetResource, door.get_resource, read_only=True),
        Tool(
            "get_trace",
            "The calls of this session, or those that trace tokens name.",
            shared.GetTrace,
            door.get_trace,
            read_only=True,
        ),
    )
