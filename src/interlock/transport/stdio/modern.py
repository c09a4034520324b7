"""The modern era, 2026-07-28: no handshake and no session; every request says who is calling.

If a tool must ask the user, its result holds the forms, and the client calls again with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import assert_never

import msgspec

from interlock.surfaces.call import Call, Client, Elicit, Reply, RpcError, Wait
from interlock.surfaces.tool import Surface, call_tool
from interlock.transport.results import (
    CAPABILITIES,
    CLIENT_INFO,
    COMPLETE,
    DOCUMENTS,
    PREFIX,
    PROTOCOL_VERSION,
    UNCACHED,
    JsonObject,
    ServerInfo,
    call_with_answers,
    capabilities_of,
    check_shown,
    client_of,
    input_required,
    invalid_params,
    listed_tools,
    refuse_cursor,
    text_param,
    tool_result,
    unknown_method,
    unsupported_version,
)
from interlock.transport.rpc import Params, Request, RpcRefused, error_line, notification_line, result_line
from interlock.transport.stdio.waiting import WaitingTurns

VERSION = "2026-07-28"


class Modern:
    """Answers requests one by one; nothing is kept between them but what the client listens to."""

    def __init__(self, surface: Surface, server: ServerInfo, turns: WaitingTurns) -> None:
        self._turns = turns
        self._surface = surface
        self._server_meta = {PREFIX + "serverInfo": msgspec.to_builtins(server)}

    def answer(self, request: Request) -> list[bytes]:
        """Answer a request that carries its own envelope."""
        client = _calling_client(request.params)
        match request.method:
            case "server/discover":
                discovered: JsonObject = {
                    "supportedVersions": [VERSION],
                    "capabilities": capabilities_of(self._surface),
                }
                if self._surface.instructions:
                    discovered["instructions"] = self._surface.instructions
                return [self._result_line(request, discovered | UNCACHED)]
            case "tools/list":
                refuse_cursor(request.params)
                tools = listed_tools(self._surface, VERSION)
                return [self._result_line(request, {"tools": tools, **UNCACHED})]
            case "tools/call":
                tool = text_param(request.params, "name")
                return self._made(request, tool, call_with_answers(request.params, client))
            case "subscriptions/listen":
                return [self._listen(request)]
            case method if self._surface.prompt_texts and method.startswith(DOCUMENTS):
                from interlock.transport.documents import document_result

                result = document_result(self._surface, method, request.params, "modern")
                return [self._result_line(request, result | UNCACHED)]
            case method:
                raise unknown_method(method)

    def _made(self, request: Request, tool: str, call: Call) -> list[bytes]:
        """Make a call, for the first time or again."""
        outcome = call_tool(self._surface, tool, request.params.get("arguments"), call)
        match outcome:
            case Reply():
                return [self._result_line(request, tool_result(outcome, VERSION))]
            case RpcError():
                return [error_line(request.id, outcome)]
            case Wait():
                again = partial(self._made, request, tool)
                return self._turns.add(request.id, outcome, call, request.params, again)
            case Elicit():
                check_shown(outcome, call.client, tool)
                return [self._result_line(request, input_required(outcome))]
            case _:
                assert_never(outcome)

    def _listen(self, request: Request) -> bytes:
        """Acknowledge a subscription, and look for changes until it is cancelled or the server stops."""
        from interlock.transport.subscriptions import SUBSCRIPTION_ID, changed_lines, listen

        subscription, granted = listen(self._surface, request.params.get("notifications"))
        meta = {SUBSCRIPTION_ID: request.id}
        look = partial(changed_lines, subscription, meta) if granted else None
        self._turns.watch(request.id, look, self._result_line(request, {"_meta": meta}))
        params = {"notifications": granted, "_meta": meta}
        return notification_line("notifications/subscriptions/acknowledged", params)

    def _result_line(self, request: Request, result: JsonObject) -> bytes:
        meta = {**result.get("_meta", {}), **self._server_meta}
        return result_line(request.id, {**COMPLETE, **result, "_meta": meta})


def _calling_client(params: Params) -> Client:
    meta = params.get("_meta")
    if not isinstance(meta, Mapping):
        raise invalid_params(f"_meta must carry {PROTOCOL_VERSION} and {CAPABILITIES}")
    if missing := [key for key in (PROTOCOL_VERSION, CAPABILITIES) if key not in meta]:
        raise invalid_params(f"_meta lacks {', '.join(missing)}")
    version = meta[PROTOCOL_VERSION]
    if not isinstance(version, str):
        raise invalid_params(f"{PROTOCOL_VERSION} must be a string")
    if version != VERSION:
        raise RpcRefused(unsupported_version(version, VERSION))
    if not isinstance(meta[CAPABILITIES], Mapping):
        raise invalid_params(f"{CAPABILITIES} must be an object")
    return client_of(meta.get(CLIENT_INFO), meta[CAPABILITIES], "modern", version)
