"""The MCP objects that both eras share: tools as listed, replies as results, forms as requests.

A field that a version of the protocol does not know is left out of what is sent under that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.call import Address, Call, Client, Elicit, Era, Form, FormAnswer, Reply, RpcError
from interlock.surfaces.tool import Surface
from interlock.transport.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, Params, RpcRefused

JsonObject: TypeAlias = dict[str, Any]

ANNOTATIONS_SINCE = "2025-03-26"
STRUCTURE_SINCE = ELICITATION_SINCE = TITLES_SINCE = "2025-06-18"
ADDRESSES_SINCE = "2025-11-25"

PREFIX = "io.modelcontextprotocol/"  # of the keys in `_meta` that every modern request carries
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_INFO = PREFIX + "clientInfo"
CAPABILITIES = PREFIX + "clientCapabilities"
DOCUMENTS = ("prompts/", "resources/", "completion/")  # methods that few chats use
UNSUPPORTED_VERSION = -32022
RESOURCE_NOT_FOUND = -32002  # of the handshake era; the modern one knows only invalid parameters
COMPLETE = {"resultType": "complete"}
FORM_SECONDS = 600  # for the user to answer a form; silence after that is not an answer
MOST_ROOTS = 64
UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


class ServerInfo(Struct, frozen=True):
    """The server's name and version, as clients see them."""

    name: str
    version: str


def capabilities_of(surface: Surface) -> JsonObject:
    """Return what a server says it can do. The tools of a surface never change; workflows do."""
    capabilities: JsonObject = {"tools": {"listChanged": False}}
    if surface.prompt_texts is not None:
        capabilities["prompts"] = {"listChanged": True}
        capabilities["resources"] = {"listChanged": True, "subscribe": True}
        capabilities["completions"] = {}
    return capabilities


def listed_tools(surface: Surface, version: str) -> list[JsonObject]:
    """Return the tools of a surface as this version of the protocol knows them."""
    listed = []
    for tool in surface.tools.values():
        if not tool.listed:
            continue
        entry: JsonObject = {"name": tool.name}
        if version >= TITLES_SINCE:
            entry["title"] = tool.title
        entry["description"] = tool.description
        entry["inputSchema"] = tool.argument_schema()
        if tool.output_schema is not None and version >= STRUCTURE_SINCE:
            entry["outputSchema"] = tool.output_schema
        if version >= ANNOTATIONS_SINCE:
            hints = {"readOnlyHint": tool.read_only, "idempotentHint": tool.idempotent}
            claimed = {name: True for name, holds in hints.items() if holds}
            entry["annotations"] = {**claimed, "destructiveHint": False, "openWorldHint": False}
        listed.append(entry)
    return listed


def tool_result(reply: Reply, version: str) -> JsonObject:
    """Return a reply as the result of `tools/call`; JSON that is already encoded stays as it is."""
    result: JsonObject = {"content": [{"type": "text", "text": reply.text}]}
    if reply.structured is not None and version >= STRUCTURE_SINCE:
        result["structuredContent"] = reply.structured
    if reply.is_error:
        result["isError"] = True
    if reply.meta:
        result["_meta"] = reply.meta
    return result


def elicitation_params(question: Form | Address) -> JsonObject:
    """Return a question as the parameters of `elicitation/create`."""
    if isinstance(question, Address):
        return {"mode": "url", "message": question.message, "url": question.url}
    return {"message": question.message, "requestedSchema": question.schema}


def check_shown(ask: Elicit, client: Client, tool: str) -> None:
    """Raise for questions that the client cannot show: a surface must not ask by them."""
    for question in ask.questions.values():
        if not (client.opens_addresses if isinstance(question, Address) else client.can_elicit):
            raise RuntimeError(f"{tool} asked the user through a client that cannot show it")


def input_required(ask: Elicit) -> JsonObject:
    """Return the result of the modern era that asks the user first: forms, and the state to send back."""
    forms = {
        key: {"method": "elicitation/create", "params": {"mode": "form", **elicitation_params(question)}}
        for key, question in ask.questions.items()
    }
    return {"resultType": "input_required", "inputRequests": forms, "requestState": ask.state}


def form_answer(result: Json) -> FormAnswer | None:
    """Read what the user did with a form; None if the client sent something else."""
    match result:
        case {"action": "accept", "content": Mapping() as content}:
            return FormAnswer("accept", content)
        case {"action": "accept" | "decline" | "cancel" as action}:
            return FormAnswer(action)
        case _:
            return None


def call_with_answers(params: Params, client: Client) -> Call:
    """Read the user's answers that a call of the modern era carries, and the state they belong to."""
    responses, state = params.get("inputResponses"), params.get("requestState")
    if state is not None and not isinstance(state, str):
        raise invalid_params("requestState must be a string")
    if responses is None:
        return Call(client, {}, state)
    if not isinstance(responses, Mapping):
        raise invalid_params("inputResponses must be an object")
    answers: dict[str, FormAnswer] = {}
    for key, response in responses.items():
        if (answer := form_answer(response)) is None:
            raise invalid_params(f"inputResponses.{key} is not the answer to a form")
        answers[key] = answer
    return Call(client, answers, state)


def client_of(info: Json, capabilities: Json, era: Era, version: str) -> Client:
    """Read the client's name and version, and whether it can show forms and addresses."""
    fields = info if isinstance(info, Mapping) else {}
    can_elicit = opens_addresses = False
    match capabilities:
        case {"elicitation": Mapping() as modes} if version >= ELICITATION_SINCE:
            can_elicit = "form" in modes or "url" not in modes
            opens_addresses = "url" in modes and version >= ADDRESSES_SINCE
    name, number = _text(fields.get("name")) or "unknown", _text(fields.get("version"))
    return Client(name, number, era, can_elicit, opens_addresses)


def _text(value: Json) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""


def folders_of(result: Json) -> list[Path]:
    """Read the local folders in a client's list of roots; anything else in it is left out."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    roots = result.get("roots") if isinstance(result, Mapping) else None
    folders: list[Path] = []
    for root in roots if isinstance(roots, list) else ():
        uri = _text(root.get("uri")) if isinstance(root, Mapping) else ""
        with suppress(ValueError):
            parts = urlsplit(uri)
            if parts.scheme == "file" and parts.netloc in ("", "localhost"):
                folders.append(Path(url2pathname(parts.path)))
    return folders[:MOST_ROOTS]


def text_param(params: Params, name: str) -> str:
    """Read a parameter that must be a string."""
    value = params.get(name)
    if not isinstance(value, str):
        raise invalid_params(f"{name} must be a string")
    return value


def invalid_params(details: str) -> RpcRefused:
    """Refuse parameters of the protocol itself; a surface refuses the arguments of its own tools."""
    return RpcRefused(RpcError(INVALID_PARAMS, f"Invalid params: {details}", {"details": details}))


def has_envelope(params: Params) -> bool:
    """Recognize a modern request by the one key that no older client sends."""
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION in meta


def unsupported_version(requested: Json, *supported: str) -> RpcError:
    """Refuse a version and name the supported ones."""
    data: dict[str, Json] = {"supported": list(supported)}
    if isinstance(requested, str):
        data["requested"] = requested
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def refuse_cursor(params: Params) -> None:
    """Refuse a cursor: every list is one page, so none was ever given out."""
    if params.get("cursor") is not None:
        raise invalid_params("the list has one page and gives out no cursor; call again without cursor")


def resource_not_found(uri: str, era: Era) -> RpcRefused:
    """Refuse a resource that does not exist for the caller."""
    code = INVALID_PARAMS if era == "modern" else RESOURCE_NOT_FOUND
    return RpcRefused(RpcError(code, "Resource not found", {"uri": uri}))


def unknown_method(method: str) -> RpcRefused:
    """Refuse a method that this version of the protocol does not have."""
    return RpcRefused(RpcError(METHOD_NOT_FOUND, f"Method not found: {method}"))
