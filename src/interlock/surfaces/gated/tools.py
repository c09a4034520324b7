"""The tools of the gated surface as data: names, descriptions and parameters."""

from __future__ import annotations

from typing import Protocol

from interlock.surfaces.call import Call, Outcome, PromptTexts
from interlock.surfaces.gated import params as p
from interlock.surfaces.gated.reading import GatedReading
from interlock.surfaces.shared import session_params as shared
from interlock.surfaces.shared.session_tools import SessionTools
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Tool

INSTRUCTIONS = (
    "Interlock runs workflows activity by activity. Begin with discover. Tokens are opaque: copy them whole, "
    "and use the newest. Answer every pending checkpoint with the user's choice before the next activity. "
    "No token of earlier work? start_session with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_session with workflow_id "{id}", then '
    "get_workflow, and go from activity to activity with next_activity.{inputs}",
    inputs=" Send variables {json} with your first next_activity.",
    resume='Call start_session with workflow_id "{id}" and session_token "{token}", and go on from there.',
)


class GatedHandlers(Protocol):
    """The handlers that the gated surface has itself."""

    def discover(self, params: NoParams, call: Call) -> Outcome: ...
    def list_workflows(self, params: NoParams, call: Call) -> Outcome: ...
    def start_session(self, params: p.StartSession, call: Call) -> Outcome: ...
    def next_activity(self, params: shared.NextActivity, call: Call) -> Outcome: ...
    def get_checkpoint(self, params: p.GetCheckpoint, call: Call) -> Outcome: ...
    def respond_checkpoint(self, params: p.RespondCheckpoint, call: Call) -> Outcome: ...


def tools(handlers: GatedHandlers, session_tools: SessionTools, reading: GatedReading) -> tuple[Tool, ...]:
    """Return every tool of the surface, in the order in which an agent needs them."""
    return (
        Tool(
            "discover",
            "Start here: server, version, workflows, and how to work with them.",
            NoParams,
            handlers.discover,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "list_workflows",
            "List the workflows.",
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
            "Start a session of a workflow, or inherit one by session_token. Returns session_token. "
            "With find: lists earlier work.",
            p.StartSession,
            handlers.start_session,
        ),
        Tool(
            "get_workflow",
            "Rules, variables, modes, initialActivity and activities; summary=false gives all of it.",
            shared.GetWorkflow,
            reading.get_workflow,
            read_only=True,
        ),
        Tool(
            "next_activity",
            "Leave the current activity, its steps done, and enter the next; returns it whole. The first is "
            "initialActivity. Refused while a required checkpoint is pending.",
            shared.NextActivity,
            handlers.next_activity,
            idempotent=True,
        ),
        Tool(
            "get_checkpoint",
            "A checkpoint's message and options, for the user; step_manifest claims the steps before it.",
            p.GetCheckpoint,
            handlers.get_checkpoint,
            idempotent=True,
        ),
        Tool(
            "respond_checkpoint",
            "Answer a pending checkpoint with exactly one of option_id (the user's choice), auto_advance, "
            "condition_not_met. It claims the steps before it: send step_manifest. Effects are returned.",
            p.RespondCheckpoint,
            handlers.respond_checkpoint,
            idempotent=True,
        ),
        Tool("get_skills", "The workflow's skills.", p.GetSkills, reading.get_skills, read_only=True),
        Tool(
            "get_skill",
            "The skill of a step, or of the activity.",
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
