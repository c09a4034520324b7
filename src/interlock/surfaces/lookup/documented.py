"""What the lookup document says of its tools: schemas and examples in its own terms.

`mode` and `context`, which its companion adds, are accepted without being part of its schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.call import PromptTexts
from interlock.surfaces.tool import Handler, tool

PROMPTS = PromptTexts(
    start='Work through the workflow {id}. Call workflow_get with id "{id}", then workflow_next with '
    'workflowId "{id}", completedSteps{inputs}, after every step until isComplete.',
    inputs=" and context {json}",
)


Schema = Mapping[str, Json]

_ID_PATTERN = "^[a-z0-9-]+$"
_EXAMPLE_ID = "ai-task-implementation"
_EXAMPLE_NAME = "AI Task Prompt Workflow"


class Documented(Struct, frozen=True):
    """What a tool takes and returns."""

    accepts: Schema
    returns: Schema | None = None
    examples: Schema = {}


def _object(properties: Mapping[str, Json], *required: str, closed: bool = True) -> Schema:
    ending = {"additionalProperties": False} if closed else {}
    return {"type": "object", "properties": properties, "required": list(required), **ending}


def _id(description: str) -> Schema:
    return {
        "type": "string",
        "description": description,
        "pattern": _ID_PATTERN,
        "minLength": 3,
        "maxLength": 64,
    }


def _example(method: str, params: Schema, response: Schema) -> Schema:
    return {"request": {"method": method, "params": params}, "response": response}


def _strings() -> Schema:
    return {"type": "array", "items": {"type": "string"}}


_ENTRY = ("id", "name", "description", "category", "version")

LIST = Documented(
    _object({}),
    _object(
        {
            "workflows": {
                "type": "array",
                "items": _object({name: {"type": "string"} for name in _ENTRY}, *_ENTRY, closed=False),
            }
        },
        "workflows",
        closed=False,
    ),
    _example(
        "workflow_list",
        {},
        {
            "workflows": [
                {
                    "id": _EXAMPLE_ID,
                    "name": _EXAMPLE_NAME,
                    "description": "Guides through task understanding → planning → implementation"
                    " → verification",
                    "category": "development",
                    "version": "1.0.0",
                }
            ]
        },
    ),
)

NEXT = Documented(
    _object(
        {
            "workflowId": _id("The workflow ID"),
            "currentStep": _id("Current step ID (optional)"),
            "completedSteps": {
                "type": "array",
                "description": "Array of completed step IDs",
                "items": {"type": "string", "pattern": _ID_PATTERN},
                "uniqueItems": True,
            },
            "context": {
                "type": "object",
                "description": "Optional execution context for evaluating step conditions. Can contain"
                " variables like taskScope, userExpertise, complexity, etc.",
                "additionalProperties": True,
            },
        },
        "workflowId",
        "completedSteps",
    ),
    _object(
        {"step": {"type": "object"}, "guidance": {"type": "object"}, "isComplete": {"type": "boolean"}},
        "step",
        "guidance",
        "isComplete",
        closed=False,
    ),
    _example(
        "workflow_next",
        {"workflowId": _EXAMPLE_ID, "completedSteps": [], "context": {"taskId": "TASK-123"}},
        {
            "step": {
                "id": "understand",
                "title": "Understand the task",
                "prompt": "Analyze the requirements...",
            },
            "guidance": {"prompt": "PREP: ... IMPLEMENT: ... VERIFY: ..."},
            "isComplete": False,
        },
    ),
)

_VERDICT = _object(
    {"valid": {"type": "boolean"}, "issues": _strings(), "suggestions": _strings()}, "valid", closed=False
)

VALIDATE = Documented(
    _object(
        {
            "workflowId": _id("The workflow ID"),
            "stepId": _id("The step ID to validate"),
            "output": {"type": "string", "description": "The step output to validate", "minLength": 1},
        },
        "workflowId",
        "stepId",
        "output",
    ),
    _VERDICT,
    _example(
        "workflow_validate",
        {
            "workflowId": _EXAMPLE_ID,
            "stepId": "understand",
            "output": "I have analyzed the requirements.",
        },
        {"valid": True, "issues": [], "suggestions": []},
    ),
)

VALIDATE_JSON = Documented(
    _object({"workflowJson": {"type": "string", "minLength": 1}}, "workflowJson"),
    _VERDICT,
)


def workflow_schema() -> dict[str, Any]:
    """The JSON Schema of a workflow as this surface shows it; its `$id` makes the reference resolve."""
    raw = Path(__file__).with_name("workflow.schema.json").read_bytes()
    schema: dict[str, Any] = msgspec.json.decode(raw)
    return schema


GET = Documented(
    _object({"id": _id("The workflow ID to retrieve")}, "id"),
    {"type": "object", "$ref": "workflow.schema.json", "$defs": {"workflow": workflow_schema()}},
    _example(
        "workflow_get",
        {"id": _EXAMPLE_ID},
        {
            "id": _EXAMPLE_ID,
            "name": _EXAMPLE_NAME,
            "description": "Complete task implementation with verification",
            "preconditions": ["Task description is clear and complete"],
            "steps": [
                {
                    "id": "understand",
                    "title": "Deep understanding of task and codebase",
                    "prompt": "Analyze the task description...",
                    "requireConfirmation": True,
                }
            ],
        },
    ),
)


def documented(document: Documented, *, listed: bool = True) -> Callable[[Handler], Handler]:
    """Declare a tool as its document describes it. All of them read, and none needs a store."""
    return tool(
        read_only=True,
        idempotent=True,
        listed=listed,
        uses_store=False,
        input_schema=document.accepts,
        output_schema=document.returns,
        examples=document.examples,
    )
