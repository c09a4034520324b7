"""The strict profile of the lookup document: one version, its own error codes, an orderly shutdown.

Tools answer to `tools/call` and, with the bare result, to their own names as methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from interlock.core.values import Json
from interlock.surfaces.tool import Ask, Call, Outcome, Reply, RpcFailure, Surface, Tool, call_tool
from interlock.transport.stdio.results import STRUCTURE_SINCE, Shape, client_of, tool_result
from interlock.transport.stdio.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Malformed,
    Message,
    Notification,
    Params,
    Request,
    Response,
    error_line,
    guarded,
    parse,
    result_line,
)

VERSION = "2024-11-05"
SERVER_ERROR = -32000

_WELCOME: Params = {
    "protocolVersion": VERSION,
    "capabilities": {
        "tools": {"listChanged": False, "notifyProgress": False},
        "resources": {"listChanged": False},
    },
    "serverInfo": {
        "name": "workflowlookup",
        "version": "1.0.0",
        "description": "Workflow Orchestration System MCP Server",
    },
}


class Lookup:
    """Takes lines and gives the lines to send back, in order, until `shutdown`."""

    def __init__(self, surface: Surface) -> None:
        self.finished = False
        self._surface = surface
        self._call: Call | None = None

    def receive(self, line: bytes) -> list[bytes]:
        """Take one line of the client."""
        parsed = parse(line)
        if isinstance(parsed, list):
            return [
                error_line(
                    None, _failure(INVALID_REQUEST, "Invalid Request", details="batches are not served")
                )
            ]
        return self._one(parsed)

    def _one(self, message: Message) -> list[bytes]:
        match message:
            case Request():
                return guarded(message.id, lambda: [self._answer(message)])
            case Notification() | Response():
                return []
            case Malformed(id, failure):
                return [error_line(id, failure)]
            case _:
                assert_never(message)

    def _answer(self, request: Request) -> bytes:
        match request.method, self._call:
            case "initialize", _:
                return self._initialize(request)
            case "shutdown", _:
                self.finished = True
                return result_line(request.id, None)
            case "ping", _:
                return result_line(request.id, {})
            case _, None:
                return error_line(
                    request.id, _failure(SERVER_ERROR, "Server not initialized", details="initialize first")
                )
            case "tools/list", _:
                tools = [_listed(tool) for tool in self._surface.tools.values() if tool.listed]
                return result_line(request.id, {"tools": tools})
            case "tools/call", Call() as call:
                return self._through_mcp(request, call)
            case _, Call() as call:
                return self._by_name(request, call)

    def _initialize(self, request: Request) -> bytes:
        for required in ("protocolVersion", "capabilities"):
            if required not in request.params:
                return error_line(request.id, _invalid(f"{required} is required"))
        requested = request.params["protocolVersion"]
        if requested != VERSION:
            data = {"supportedVersions": [VERSION], "requestedVersion": requested}
            return error_line(request.id, RpcFailure(SERVER_ERROR, "Unsupported protocol version", data))
        info, capabilities = request.params.get("clientInfo"), request.params["capabilities"]
        self._call = Call(client_of(info, capabilities, "handshake", VERSION))
        return result_line(request.id, _WELCOME)

    def _through_mcp(self, request: Request, call: Call) -> bytes:
        name = request.params.get("name")
        if not isinstance(name, str):
            return error_line(request.id, _invalid("name is required"))
        outcome = call_tool(self._surface, name, request.params.get("arguments"), call)
        # Clients that are told of an output schema insist on structure, whatever the version.
        return _written(request, outcome, lambda reply: tool_result(reply, STRUCTURE_SINCE))

    def _by_name(self, request: Request, call: Call) -> bytes:
        if request.method not in self._surface.tools:
            return error_line(
                request.id, _failure(METHOD_NOT_FOUND, "Method not found", method=request.method)
            )
        outcome = call_tool(self._surface, request.method, request.params, call)
        return _written(request, outcome, lambda reply: reply.structured)


def _written(request: Request, outcome: Outcome, shape: Callable[[Reply], Any]) -> bytes:
    match outcome:
        case Reply():
            return result_line(request.id, shape(outcome))
        case RpcFailure():
            return error_line(request.id, outcome)
        case Ask():
            raise RuntimeError("the lookup profile has no way to ask the user")
        case _:
            assert_never(outcome)


def _listed(tool: Tool) -> Shape:
    shape: Shape = {"name": tool.name, "description": tool.description}
    shape["inputSchema"] = {"required": [], **tool.accepts()}
    if tool.output_schema is not None:
        shape["outputSchema"] = tool.output_schema
    if tool.examples:
        shape["examples"] = tool.examples
    return shape


def _invalid(details: str) -> RpcFailure:
    return _failure(INVALID_PARAMS, "Invalid params", details=details)


def _failure(code: int, message: str, **data: Json) -> RpcFailure:
    return RpcFailure(code, message, data)
