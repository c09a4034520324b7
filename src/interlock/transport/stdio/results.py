"""The shapes that both eras of MCP share: tools as listed, replies as results, forms as requests.

What a version of the protocol does not know is left out of what is sent under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.tool import Client, Era, Form, FormAnswer, Reply, RpcFailure, Surface, Tool
from interlock.transport.stdio.rpc import INVALID_PARAMS, Params

Shape: TypeAlias = dict[str, Any]

ANNOTATIONS_SINCE = "2025-03-26"
STRUCTURE_SINCE = ELICITATION_SINCE = "2025-06-18"


class Server(Struct, frozen=True):
    """Who answers."""

    name: str
    version: str


def listed(surface: Surface, version: str) -> list[Shape]:
    """List the tools of a surface as this version of the protocol knows them."""
    return [_tool(tool, version) for tool in surface.tools.values() if tool.listed]


def _tool(tool: Tool, version: str) -> Shape:
    shape: Shape = {"name": tool.name, "description": tool.description, "inputSchema": tool.accepts()}
    if tool.output_schema is not None and version >= STRUCTURE_SINCE:
        shape["outputSchema"] = tool.output_schema
    if version >= ANNOTATIONS_SINCE:
        shape["annotations"] = _annotations(tool)
    return shape


def _annotations(tool: Tool) -> Shape:
    claims = {"readOnlyHint": tool.read_only, "idempotentHint": tool.idempotent}
    claimed = {name: True for name, holds in claims.items() if holds}
    return claimed | {"destructiveHint": False, "openWorldHint": False}


def tool_result(reply: Reply, version: str) -> Shape:
    """Give a reply as the result of `tools/call`; JSON that is already encoded stays as it is."""
    shape: Shape = {"content": [{"type": "text", "text": reply.text}]}
    if reply.structured is not None and version >= STRUCTURE_SINCE:
        shape["structuredContent"] = reply.structured
    if reply.is_error:
        shape["isError"] = True
    if reply.meta:
        shape["_meta"] = reply.meta
    return shape


def elicitation(question: Form) -> Shape:
    """Give a question as the parameters of `elicitation/create`."""
    return {"message": question.message, "requestedSchema": question.schema}


def answer_of(result: Json) -> FormAnswer | None:
    """Read what the user did with a form; None when the client sent no such thing."""
    match result:
        case {"action": "accept", "content": Mapping() as content}:
            return FormAnswer("accept", content)
        case {"action": "accept" | "decline" | "cancel" as action}:
            return FormAnswer(action)
        case _:
            return None


def client_of(info: Json, capabilities: Json, era: Era, version: str) -> Client:
    """Read what the client says of itself; a form needs a client that shows forms."""
    name, release = "unknown", ""
    if isinstance(info, Mapping):
        name, release = _word(info.get("name")) or name, _word(info.get("version"))
    return Client(name, release, era, version >= ELICITATION_SINCE and _shows_forms(capabilities))


def _word(value: Json) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""


def _shows_forms(capabilities: Json) -> bool:
    match capabilities:
        case {"elicitation": Mapping() as modes}:
            return "form" in modes or "url" not in modes
        case _:
            return False


def tool_named(params: Params) -> str | RpcFailure:
    """Read which tool is called."""
    name = params.get("name")
    return name if isinstance(name, str) else invalid_params("name must be a string")


def invalid_params(details: str) -> RpcFailure:
    """Refuse parameters of the protocol itself; a tool's own arguments are the surface's to refuse."""
    return RpcFailure(INVALID_PARAMS, f"Invalid params: {details}", {"details": details})
