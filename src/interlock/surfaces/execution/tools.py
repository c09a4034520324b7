"""The tools of the execution surface as data: names, descriptions and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlock.core.values import Json
from interlock.surfaces.call import Call, Outcome, PromptTexts
from interlock.surfaces.execution import params as p
from interlock.surfaces.tool import Tool

INSTRUCTIONS = (
    "Interlock runs workflows one step at a time. list_workflows, then start_workflow; do exactly the "
    "pending step; then continue_workflow with the tokens it gave you. Tokens are opaque: copy them whole. "
    "Lost your place? continue_workflow with only stateToken, or resume_session."
)
PROMPTS = PromptTexts(
    start='Work through the workflow {id} of Interlock. Call start_workflow with workflowId "{id}"{inputs}. '
    "Do exactly the pending step, then call continue_workflow with its tokens, until isComplete is true.",
    inputs=" and context {json}",
    resume='Call continue_workflow with stateToken "{token}" and nothing else, and go on from what it shows.',
)


class ExecutionHandlers(Protocol):
    """The methods of the execution surface that handle calls."""

    def list_workflows(self, params: p.ListWorkflows, call: Call) -> Outcome: ...
    def inspect_workflow(self, params: p.InspectWorkflow, call: Call) -> Outcome: ...
    def start_workflow(self, params: p.StartWorkflow, call: Call) -> Outcome: ...
    def continue_workflow(self, params: p.ContinueWorkflow, call: Call) -> Outcome: ...
    def checkpoint_workflow(self, params: p.CheckpointWorkflow, call: Call) -> Outcome: ...
    def start_session(self, params: p.StartSession, call: Call) -> Outcome: ...
    def resume_session(self, params: p.ResumeSession, call: Call) -> Outcome: ...


def tools(handlers: ExecutionHandlers) -> tuple[Tool, ...]:
    """Return every tool of the surface, in the order in which an agent needs them."""
    return (
        Tool(
            "list_workflows",
            "List the workflows and routines that can be started.",
            p.ListWorkflows,
            handlers.list_workflows,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "inspect_workflow",
            "Show what a workflow is for, and with mode preview its steps, before starting it. Runs nothing.",
            p.InspectWorkflow,
            handlers.inspect_workflow,
            read_only=True,
            uses_store=False,
        ),
        Tool(
            "start_workflow",
            "Start a run. Returns the first pending step and its tokens. Do only that step, then call "
            "continue_workflow. Put the goal or ticket into context (title, goal, ticketId).",
            p.StartWorkflow,
            handlers.start_workflow,
            output_schema=RESULT,
        ),
        Tool(
            "continue_workflow",
            "With ackToken: the pending step is done; records output and returns the next step. Repeating "
            "the same tokens returns the same answer and advances nothing. Without ackToken: shows the "
            "pending step and a recap again and changes nothing; use it after a rewind or when you lost your "
            "place. An answer that says BLOCKED says what is missing: call again with the ackToken in it. "
            "Stop when the answer says that the workflow is complete.",
            p.ContinueWorkflow,
            handlers.continue_workflow,
            output_schema=RESULT,
            idempotent=True,
        ),
        Tool(
            "checkpoint_workflow",
            "Keep notes of work in progress without advancing, so that they survive a rewind. Needs "
            "stateToken and checkpointToken of one response, or a sessionToken.",
            p.CheckpointWorkflow,
            handlers.checkpoint_workflow,
            idempotent=True,
        ),
        Tool(
            "start_session",
            "Open a session for notes before any workflow is started.",
            p.StartSession,
            handlers.start_session,
        ),
        Tool(
            "resume_session",
            "Find earlier work in a new chat, by words or id. Returns tokens to go on with at once.",
            p.ResumeSession,
            handlers.resume_session,
            read_only=True,
        ),
    )


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


def template_of(tool: Tool) -> Mapping[str, Json]:
    """Return a call to fill in: each parameter with a placeholder of its type."""
    properties = tool.argument_schema()["properties"]
    assert isinstance(properties, Mapping)
    template: dict[str, Json] = {}
    for name, schema in properties.items():
        match schema:
            case {"enum": list(choices)}:
                template[name] = f"<{' | '.join(map(str, choices))}>"
            case {"type": json_type}:
                template[name] = f"<{json_type}>"
            case _:
                template[name] = "<value>"
    return template
