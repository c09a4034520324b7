"""The tools of the session surface as data: what an agent reads before it has read anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.surfaces.session import params as p
from interlock.surfaces.shared import params as shared
from interlock.surfaces.tool import Tool

if TYPE_CHECKING:
    from interlock.surfaces.session.surface import SessionSurface

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Begin with discover. Tokens are opaque: copy them whole, "
    "and use the newest. The server holds variables, answers and position; read _meta.validation."
)


def tools(surface: SessionSurface) -> tuple[Tool, ...]:
    """Every tool of the surface, in the order in which an agent needs them."""
    return (*_bootstrap(surface), *_workflow(surface), *_checkpoints(surface), *_texts(surface))


def _bootstrap(surface: SessionSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "discover",
            "Start here: server, version, and how to work with it.",
            shared.Nothing,
            surface.discover,
            read_only=True,
        ),
        Tool(
            "list_workflows",
            "List workflows: id, title, version, tags.",
            shared.Nothing,
            surface.list_workflows,
            read_only=True,
        ),
        Tool("health_check", "Server status.", shared.Nothing, surface.shared.health_check, read_only=True),
        Tool(
            "start_session",
            "Start a session of a workflow, inherit one by session_token, or start a child with "
            "parent_session_token. Returns session_token.",
            p.StartSession,
            surface.start_session,
        ),
        Tool(
            "get_workflow_status",
            "Where the session stands: active, blocked or completed, activity, last checkpoint, parent.",
            shared.WithToken,
            surface.get_workflow_status,
            read_only=True,
        ),
    )


def _workflow(surface: SessionSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "get_workflow",
            "The primary skill, then rules, variables, modes, initialActivity and activities; "
            "summary=false gives the whole definition.",
            shared.GetWorkflow,
            surface.reading.get_workflow,
            read_only=True,
        ),
        Tool(
            "next_activity",
            "Orchestrator: leave the current activity, its steps done, and enter the next. The first is "
            "initialActivity. Refused while a checkpoint is unanswered. Then get_activity.",
            shared.NextActivity,
            surface.next_activity,
            idempotent=True,
        ),
        Tool(
            "get_activity",
            "Worker: the current activity with steps, checkpoints, loops and transitions.",
            p.GetActivity,
            surface.reading.get_activity,
            read_only=True,
        ),
    )


def _checkpoints(surface: SessionSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "yield_checkpoint",
            "Worker: stop at a checkpoint. Hand the checkpoint_handle to the orchestrator and wait. "
            "One that is already answered returns its answer.",
            p.YieldCheckpoint,
            surface.checkpoints.yield_checkpoint,
        ),
        Tool(
            "resume_checkpoint",
            "Worker: go on after the orchestrator has answered.",
            p.ResumeCheckpoint,
            surface.checkpoints.resume_checkpoint,
        ),
        Tool(
            "present_checkpoint",
            "Orchestrator: the open checkpoint's message and options, to show to the user.",
            p.PresentCheckpoint,
            surface.checkpoints.present_checkpoint,
            read_only=True,
        ),
        Tool(
            "respond_checkpoint",
            "Orchestrator: answer with exactly one of option_id (the user's choice), auto_advance, "
            "condition_not_met. Effects are applied and returned.",
            p.RespondCheckpoint,
            surface.checkpoints.respond_checkpoint,
            idempotent=True,
        ),
    )


def _texts(surface: SessionSurface) -> tuple[Tool, ...]:
    return (
        Tool(
            "get_skills",
            "The workflow's primary skill.",
            p.GetActivity,
            surface.reading.get_skills,
            read_only=True,
        ),
        Tool(
            "get_skill",
            "The skill of a step, of the activity, or before any activity of the workflow.",
            p.GetSkill,
            surface.reading.get_skill,
            read_only=True,
        ),
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
