"""The tools of the gated surface as data: what an agent reads before it has read anything else."""

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


def tools(surface: GatedSurface) -> tuple[Tool, ...]:
    """Every tool of the surface, in the order in which an agent needs them."""
    return (*_bootstrap(surface), *_workflow(surface), *_texts(surface))


def _bootstrap(surface: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "discover",
            "Start here: server, version, workflows, and how to work with them.",
            shared.Nothing,
            surface.discover,
            read_only=True,
        ),
        Tool("list_workflows", "List the workflows.", shared.Nothing, surface.list_workflows, read_only=True),
        Tool("health_check", "Server status.", shared.Nothing, surface.shared.health_check, read_only=True),
        Tool(
            "start_session",
            "Start a session of a workflow, or inherit one by session_token. Returns session_token.",
            p.StartSession,
            surface.start_session,
        ),
    )


def _workflow(surface: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "get_workflow",
            "Rules, variables, modes, initialActivity and activities; summary=false gives all of it.",
            shared.GetWorkflow,
            surface.reading.get_workflow,
            read_only=True,
        ),
        Tool(
            "next_activity",
            "Leave the current activity, its steps done, and enter the next; returns it whole. The first is "
            "initialActivity. Refused while a required checkpoint is pending.",
            shared.NextActivity,
            surface.next_activity,
            idempotent=True,
        ),
        Tool(
            "get_checkpoint",
            "A checkpoint's message and options, to show to the user.",
            p.GetCheckpoint,
            surface.get_checkpoint,
            read_only=True,
        ),
        Tool(
            "respond_checkpoint",
            "Answer a pending checkpoint with exactly one of option_id (the user's choice), auto_advance, "
            "condition_not_met. Effects are applied and returned.",
            p.RespondCheckpoint,
            surface.respond_checkpoint,
            idempotent=True,
        ),
    )


def _texts(surface: GatedSurface) -> tuple[Tool, ...]:
    return (
        Tool("get_skills", "The workflow's skills.", p.GetSkills, surface.reading.get_skills, read_only=True),
        Tool("get_skill", "The skill of a step.", p.GetSkill, surface.reading.get_skill, read_only=True),
        Tool(
            "get_resource", "A resource's text.", p.GetResource, surface.reading.get_resource, read_only=True
        ),
        Tool(
            "get_trace",
            "The calls of this session, or those that trace tokens name.",
            shared.GetTrace,
            surface.shared.get_trace,
            read_only=True,
        ),
    )
