"""The modern era, 2026-07-28: no handshake and no session, every request says who is calling.

A tool that must ask the user answers with the forms, and the client calls again with what they said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from interlock.core.values import Json
from interlock.surfaces.tool import (
    Ask,
    Call,
    Client,
    FormAnswer,
    Outcome,
    Reply,
    RpcFailure,
    Surface,
    call_tool,
)
from interlock.transport.stdio.results import (
    Server,
    Shape,
    answer_of,
    client_of,
    elicitation,
    invalid_params,
    listed,
    tool_named,
    tool_result,
)
from interlock.transport.stdio.rpc import (
    METHOD_NOT_FOUND,
    Params,
    Request,
    error_line,
    notification_line,
    result_line,
)

VERSION = "2026-07-28"
UNSUPPORTED_VERSION = -32022

_PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = _PREFIX + "protocolVersion"
CAPABILITIES = _PREFIX + "clientCapabilities"

_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


def enveloped(params: Params) -> bool:
    """Tell a modern request by the one key that no older client sends."""
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION in meta


def unsupported(requested: Json) -> RpcFailure:
    """Refuse a version, naming the one that is spoken here."""
    data: dict[str, Json] = {"supported": [VERSION]}
    if isinstance(requested, str):
        data["requested"] = requested
    return RpcFailure(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


class Modern:
    """Answers requests one by one; nothing is remembered between them."""

    def __init__(self, surface: Surface, server: Server) -> None:
        self._surface = surface
        self._stamp = {_PREFIX + "serverInfo": msgspec.to_builtins(server)}

    def answer(self, request: Request) -> list[bytes]:
        """Answer a request that carries its own envelope."""
        client = _client(request.params)
        if isinstance(client, RpcFailure):
            return [error_line(request.id, client)]
        match request.method:
            case "server/discover":
                return [self._result(request, self._discovered())]
            case "tools/list":
                return [self._result(request, {"tools": listed(self._surface, VERSION), **_UNCACHED})]
            case "tools/call":
                return [self._call(request, client)]
            case "subscriptions/listen":
                return [_acknowledged(request)]
            case method:
                return [error_line(request.id, RpcFailure(METHOD_NOT_FOUND, f"Method not found: {method}"))]

    def _discovered(self) -> Shape:
        discovered: Shape = {"supportedVersions": [VERSION], "capabilities": {"tools": {"listChanged": True}}}
        if self._surface.instructions:
            discovered["instructions"] = self._surface.instructions
        return discovered | _UNCACHED

    def _call(self, request: Request, client: Client) -> bytes:
        tool = tool_named(request.params)
        if isinstance(tool, RpcFailure):
            return error_line(request.id, tool)
        call = _resumed(request.params, client)
        if isinstance(call, RpcFailure):
            return error_line(request.id, call)
        return self._settle(
            request, call_tool(self._surface, tool, request.params.get("arguments"), call), client
        )

    def _settle(self, request: Request, outcome: Outcome, client: Client) -> bytes:
        match outcome:
            case Reply():
                return self._result(request, tool_result(outcome, VERSION))
            case RpcFailure():
                return error_line(request.id, outcome)
            case Ask() if client.can_elicit:
                return self._result(request, _input_required(outcome))
            case Ask():
                raise RuntimeError("a tool asked the user through a client that shows no forms")
            case _:
                assert_never(outcome)

    def _result(self, request: Request, shape: Shape) -> bytes:
        meta = {**shape.get("_meta", {}), **self._stamp}
        return result_line(request.id, {"resultType": "complete", **shape, "_meta": meta})


def _client(params: Params) -> Client | RpcFailure:
    meta = params.get("_meta")
    if not isinstance(meta, Mapping):
        return invalid_params(f"_meta must carry {PROTOCOL_VERSION} and {CAPABILITIES}")
    if missing := [key for key in (PROTOCOL_VERSION, CAPABILITIES) if key not in meta]:
        return invalid_params(f"_meta lacks {', '.join(missing)}")
    version = meta[PROTOCOL_VERSION]
    if not isinstance(version, str):
        return invalid_params(f"{PROTOCOL_VERSION} must be a string")
    if version != VERSION:
        return unsupported(version)
    return client_of(meta.get(_PREFIX + "clientInfo"), meta[CAPABILITIES], "modern", version)


def _resumed(params: Params, client: Client) -> Call | RpcFailure:
    responses, state = params.get("inputResponses"), params.get("requestState")
    if state is not None and not isinstance(state, str):
        return invalid_params("requestState must be a string")
    if responses is None:
        return Call(client, {}, state)
    if not isinstance(responses, Mapping):
        return invalid_params("inputResponses must be an object")
    answers: dict[str, FormAnswer] = {}
    for key, response in responses.items():
        if (answer := answer_of(response)) is None:
            return invalid_params(f"inputResponses.{key} is not the answer to a form")
        answers[key] = answer
    return Call(client, answers, state)


def _input_required(ask: Ask) -> Shape:
    forms = {
        key: {"method": "elicitation/create", "params": {"mode": "form", **elicitation(question)}}
        for key, question in ask.questions.items()
    }
    return {"resultType": "input_required", "inputRequests": forms, "requestState": ask.state}


def _acknowledged(request: Request) -> bytes:
    """Open a stream of changes; the tools of a surface never change, so nothing will follow."""
    wanted = request.params.get("notifications")
    tools = isinstance(wanted, Mapping) and wanted.get("toolsListChanged") is True
    honoured: Params = {"toolsListChanged": True} if tools else {}
    params = {"notifications": honoured, "_meta": {_PREFIX + "subscriptionId": request.id}}
    return notification_line("notifications/subscriptions/acknowledged", params)
