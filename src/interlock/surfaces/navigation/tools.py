"""The tools of the navigation surface as data: names, descriptions and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from interlock.surfaces.call import Call, Outcome, PromptTexts
from interlock.surfaces.navigation import params as p
from interlock.surfaces.navigation.reading import CatalogueTools
from interlock.surfaces.navigation.texts import Texts
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Tool

INSTRUCTIONS = (
    "Interlock walks you through a workflow. nav_start gives a situation: do what availableActions.required "
    "asks, report it with nav_action, and pass on the newest state each time. At a checkpoint ask the user. "
    "Not sure what to start? get_activities. No state of earlier work? nav_start with find."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call nav_start with workflow_id "{id}"{inputs}, do '
    "what availableActions.required asks, and report it with nav_action, until the workflow is complete.",
    inputs=" and initial_variables {json}",
    resume='Call nav_situation with state "{token}", and go on from the situation that it shows.',
)


class NavigationHandlers(Protocol):
    """The methods of the navigation surface that handle calls."""

    def nav_start(self, params: p.NavStart, call: Call) -> Outcome: ...
    def nav_situation(self, params: p.NavState, call: Call) -> Outcome: ...
    def nav_action(self, params: p.NavAction, call: Call) -> Outcome: ...
    def nav_checkpoint(self, params: p.NavState, call: Call) -> Outcome: ...


def tools(handlers: NavigationHandlers, reading: CatalogueTools, texts: Texts) -> tuple[Tool, ...]:
    """Return every tool of the surface, in the document's order."""
    return (
        Tool(
            "nav_start",
            "Start a workflow (workflow_id), or list earlier work (find).",
            p.NavStart,
            handlers.nav_start,
        ),
        Tool(
            "nav_situation",
            "Show the situation again; takes the token of any surface.",
            p.NavState,
            handlers.nav_situation,
            read_only=True,
        ),
        Tool(
            "nav_action",
            "Take an available action: complete_step (step_id), respond_to_checkpoint (checkpoint_id, "
            "option_id: the user's choice), transition (activity_id), advance_loop (loop_id, loop_items), "
            "abandon (note). "
            "The same call again returns the same answer; an older state starts a new branch.",
            p.NavAction,
            handlers.nav_action,
            idempotent=True,
        ),
        Tool(
            "nav_checkpoint",
            "Show the checkpoint that waits for the user.",
            p.NavState,
            handlers.nav_checkpoint,
            read_only=True,
        ),
        _reading_tool("list_workflows", "List all workflows.", NoParams, reading.list_workflows),
        _reading_tool("get_workflow", "Get a whole workflow definition.", p.OfWorkflow, reading.get_workflow),
        _reading_tool(
            "get_workflow_activity",
            "Get one activity: steps, checkpoints, loops, transitions.",
            p.OfActivity,
            reading.get_workflow_activity,
        ),
        _reading_tool(
            "get_checkpoint",
            "Get a checkpoint's question, options and effects.",
            p.OfCheckpoint,
            reading.get_checkpoint,
        ),
        _reading_tool(
            "validate_transition",
            "Say whether one activity may lead to another.",
            p.ValidateTransition,
            reading.validate_transition,
        ),
        _reading_tool("health_check", "Say whether the server works.", NoParams, reading.health_check),
        _reading_tool(
            "get_activities",
            "Start here: match the user's goal to an activity.",
            NoParams,
            reading.get_activities,
        ),
        _reading_tool("get_activity", "Get an activity of the index.", p.GetActivity, reading.get_activity),
        _reading_tool("get_skills", "Summarize all skills and what they enable.", NoParams, texts.get_skills),
        _reading_tool(
            "list_skills", "List universal skills, and a workflow's own.", p.ListSkills, texts.list_skills
        ),
        _reading_tool(
            "get_skill", "Get a skill: the workflow's own, else universal.", p.GetSkill, texts.get_skill
        ),
        _reading_tool(
            "list_workflow_resources",
            "List a workflow's resources.",
            p.OfWorkflow,
            texts.list_workflow_resources,
        ),
        _reading_tool("get_resource", "Get a resource by index, e.g. 03.", p.OfIndex, texts.get_resource),
        _reading_tool("list_templates", "List a workflow's templates.", p.OfWorkflow, texts.list_templates),
        _reading_tool("get_template", "Get a template by index.", p.OfIndex, texts.get_template),
        _reading_tool(
            "discover_resources",
            "List every workflow, activity, skill, resource and template by id.",
            NoParams,
            texts.discover_resources,
        ),
    )


def _reading_tool(
    name: str, description: str, params: type[Struct], handler: Callable[[Any, Call], Outcome]
) -> Tool:
    return Tool(name, description, params, handler, read_only=True, uses_store=False)
