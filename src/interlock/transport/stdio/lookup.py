"""The strict profile of the lookup document: one version, its own error codes, an orderly shutdown.

Tools can be called by `tools/call` and as methods of their own, which return the bare result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from msgspec import Raw

from interlock.core.values import Json
from interlock.surfaces.call import Call, Elicit, Reply, RpcError, Wait
from interlock.surfaces.tool import Surface, call_tool
from interlock.transport.results import STRUCTURE_SINCE, JsonObject, client_of, tool_result
from interlock.transport.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Malformed,
    Notification,
    Params,
    Request,
    RequestId,
    Response,
    RpcRefused,
    error_line,
    guarded,
    parse,
    result_line,
)

VERSION = "2024-11-05"
SERVER_ERROR = -32000
SCHEME = "workflow://"
JSON_TEXT = "application/json"

Result: TypeAlias = Json | Params | Raw

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
    """Takes lines and returns the lines to send back, in order, until `shutdown`."""

    def __init__(self, surface: Surface) -> None:
        self.finished = False
        self._surface = surface
        self._call: Call | None = None

    def patience(self) -> float | None:
        """No call of this profile waits."""
        return None

    def look(self) -> list[bytes]:
        """No call of this profile waits."""
        return []

    def end(self) -> list[bytes]:
        """This profile has no streams."""
        return []

    def receive(self, line: bytes) -> list[bytes]:
        """Answer one line of the client."""
        message = parse(line)
        match message:
            case Request():
                return guarded(message.id, lambda: [result_line(message.id, self._result(message))])
            case Notification() | Response():
                return []
            case Malformed(id, error):
                return self.refuse_unread(id, error)
            case list():
                error = _error(INVALID_REQUEST, "Invalid Request", details="batches are not served")
                return [error_line(None, error)]
            case _:
                assert_never(message)

    def refuse_unread(self, id: RequestId, error: RpcError) -> list[bytes]:
        """Refuse what could not be read, by its id if that can be seen; a line that is no JSON has none."""
        return [error_line(id, error)]

    def _result(self, request: Request) -> Result:
        params = request.params
        match request.method, self._call:
            case "initialize", _:
                return self._initialize(params)
            case "shutdown", _:
                self.finished = True
                return None
            case "ping", _:
                return {}
            case _, None:
                raise _refused(SERVER_ERROR, "Server not initialized", details="initialize first")
            case "tools/list", _:
                return {"tools": self._listed_tools()}
            case "resources/list", Call() as call:
                return {"resources": _resources(self._reply("workflow_list", {}, call).structured)}
            case "resources/templates/list", _:
                return {"resourceTemplates": []}
            case "resources/read", Call() as call:
                uri = params.get("uri")
                workflow_id = uri.removeprefix(SCHEME) if isinstance(uri, str) else ""
                text = self._reply("workflow_get", {"id": workflow_id}, call).text
                return {"contents": [{"uri": uri, "mimeType": JSON_TEXT, "text": text}]}
            case "tools/call", Call() as call:
                name = params.get("name")
                if not isinstance(name, str):
                    raise _invalid_params("name is required")
                # A client that knows an output schema insists on structure, whatever the version.
                return tool_result(self._reply(name, params.get("arguments"), call), STRUCTURE_SINCE)
            case method, Call() as call:
                if method not in self._surface.tools:
                    raise _refused(METHOD_NOT_FOUND, "Method not found", method=method)
                return self._reply(method, params, call).structured

    def _initialize(self, params: Params) -> Params:
        for required in ("protocolVersion", "capabilities"):
            if required not in params:
                raise _invalid_params(f"{required} is required")
        requested, capabilities = params["protocolVersion"], params["capabilities"]
        if requested != VERSION:
            versions: dict[str, Json] = {"supportedVersions": [VERSION], "requestedVersion": requested}
            raise _refused(SERVER_ERROR, "Unsupported protocol version", **versions)
        if not isinstance(capabilities, Mapping):
            raise _invalid_params("capabilities must be an object")
        self._call = Call(client_of(params.get("clientInfo"), capabilities, "handshake", VERSION))
        return _WELCOME

    def _listed_tools(self) -> list[JsonObject]:
        listed = []
        for tool in self._surface.tools.values():
            if not tool.listed:
                continue
            entry: JsonObject = {"name": tool.name, "description": tool.description}
            entry["inputSchema"] = {"required": [], **tool.argument_schema()}
            if tool.output_schema is not None:
                entry["outputSchema"] = tool.output_schema
            if tool.examples:
                entry["examples"] = tool.examples
            listed.append(entry)
        return listed

    def _reply(self, tool: str, arguments: Json, call: Call) -> Reply:
        match call_tool(self._surface, tool, arguments, call):
            case Reply() as reply:
                return reply
            case RpcError() as error:
                raise RpcRefused(error)
            case Elicit() | Wait():
                raise RuntimeError(f"{tool} asked the user, which the lookup profile cannot do")


def fatal_line(message: str) -> str:
    """Return the error that a server which cannot start says before it ends."""
    return error_line(None, _error(SERVER_ERROR, "Server error", details=message)).decode().rstrip()


def _resources(listing: Json | Mapping[str, Json] | Raw) -> list[JsonObject]:
    """Return each listed workflow as a resource to read."""
    assert isinstance(listing, Mapping)
    workflows = listing["workflows"]
    assert isinstance(workflows, list)
    return [
        {
            "uri": f"{SCHEME}{workflow['id']}",
            "name": workflow["name"],
            "description": workflow["description"],
            "mimeType": JSON_TEXT,
        }
        for workflow in workflows
    ]


def _invalid_params(details: str) -> RpcRefused:
    return _refused(INVALID_PARAMS, "Invalid params", details=details)


def _refused(code: int, message: str, **data: Json) -> RpcRefused:
    return RpcRefused(_error(code, message, **data))


def _error(code: int, message: str, **data: Json) -> RpcError:
    return RpcError(code, message, data)
