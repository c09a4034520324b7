"""The tools of the session surface as data: names, descriptions and parameters."""

from __future__ import annotations

from typing import Protocol

from interlock.surfaces.call import Call, Outcome, PromptTexts
from interlock.surfaces.session import params as p
from interlock.surfaces.session.checkpoints import Checkpoints
from interlock.surfaces.session.reading import SessionReading
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.session_tools import SessionTools
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Tool

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Begin with discover. Tokens are opaque: copy them whole, "
    "and use the newest. The server holds variables, answers and position; read the warnings in each answer. "
    "No token of earlier work? start_session with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_session with workflow_id "{id}" and an '
    "agent_id of your choice, then get_workflow, and go on with next_activity.{inputs}",
    inputs=" Send variables {json} with your first next_activity.",
    resume='Call start_session with session_token "{token}" and an agent_id of your choice, then '
    "get_workflow_status, and go on from there.",
)


class SessionHandlers(Protocol):
    """The handlers that the session surface has itself."""

    def discover(self, params: NoParams, call: Call) -> Outcome: ...
    def list_workflows(self, params: NoParams, call: Call) -> Outcome: ...
    def start_session(self, params: p.StartSession, call: Call) -> Outcome: ...
    def get_workflow_status(self, params: shared.WithToken, call: Call) -> Outcome: ...
    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome: ...


def tools(
    handlers: SessionHandlers, session_tools: SessionTools, reading: SessionReading, checkpoints: Checkpoints
) -> tuple[Tool, ...]:
    """Return every tool of the surface, in the order in which an agent needs them."""
    return (
        Tool(
            "discover",
            "Start here: server, version, and how to work with it.",
            NoParams,
            handlers.discover,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "list_workflows",
            "List workflows: id, title, version, tags.",
            NoParams,
            handlers.list_workflows,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "health_check",
            "Server status.",
            NoParams,
            session_tools.health_check,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "start_session",
            "Start a session of a workflow, inherit one by session_token, or start a child with "
            "parent_session_token. Returns session_token. With find: lists earlier work.",
            p.StartSession,
            handlers.start_session,
        ),
        Tool(
            "get_workflow_status",
            "Where the session stands: status, activity, last checkpoint, parent.",
            shared.WithToken,
            handlers.get_workflow_status,
            read_only=True,
        ),
        Tool(
            "get_workflow",
            "The primary skill, then rules, variables, modes, initialActivity and activities; "
            "summary=false gives the whole definition.",
            shared.GetWorkflow,
            reading.get_workflow,
            read_only=True,
        ),
        Tool(
            "next_activity",
            "Orchestrator: leave the current activity, its steps done, and enter the next. The first is "
            "initialActivity. Refused while a checkpoint is unanswered. Then get_activity.",
            shared.NextActivity,
            handlers.next_activity,
            idempotent=True,
        ),
        Tool(
            "get_activity",
            "Worker: the current activity with steps, checkpoints, loops and transitions.",
            p.GetActivity,
            reading.get_activity,
            read_only=True,
        ),
        Tool(
            "yield_checkpoint",
            "Worker: stop at a checkpoint. Hand the checkpoint_handle to the orchestrator and wait. "
            "One that is already answered returns its answer.",
            p.YieldCheckpoint,
            checkpoints.yield_checkpoint,
        ),
        Tool(
            "resume_checkpoint",
            "Worker: go on after the orchestrator has answered.",
            p.ResumeCheckpoint,
            checkpoints.resume_checkpoint,
        ),
        Tool(
            "present_checkpoint",
            "Orchestrator: the open checkpoint's message and options, to show to the user.",
            p.PresentCheckpoint,
            checkpoints.present_checkpoint,
            read_only=True,
        ),
        Tool(
            "respond_checkpoint",
            "Orchestrator: answer with exactly one of option_id (the user's choice), auto_advance, "
            "condition_not_met. Effects are applied and returned.",
            p.RespondCheckpoint,
            checkpoints.respond_checkpoint,
            idempotent=True,
        ),
        Tool(
            "get_skills",
            "The workflow's primary skill.",
            p.GetActivity,
            reading.get_skills,
            read_only=True,
        ),
        Tool(
            "get_skill",
            "The skill of a step, of the activity, or before any activity of the workflow.",
            shared.GetSessionSkill,
            reading.get_skill,
            read_only=True,
        ),
        Tool("get_resource", "A resource's text.", p.GetResource, reading.get_resource, read_only=True),
        Tool(
            "get_trace",
            "The calls of this session, or those that trace tokens name.",
            shared.GetTrace,
            session_tools.get_trace,
            read_only=True,
        ),
    )
