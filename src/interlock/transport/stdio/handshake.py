"""The handshake era, 2024-11-05 to 2025-11-25: a connection is opened by `initialize`.

A tool that must ask the user makes us send a request of our own; until its answer comes we read on.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.tool import (
    Ask,
    Call,
    Client,
    FormAnswer,
    Reply,
    RpcFailure,
    Surface,
    call_tool,
)
from interlock.transport.stdio.results import (
    Server,
    answer_of,
    client_of,
    elicitation,
    invalid_params,
    listed,
    tool_named,
    tool_result,
)
from interlock.transport.stdio.rpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Notification,
    Params,
    Request,
    RequestId,
    Response,
    error_line,
    guarded,
    notification_line,
    request_line,
    result_line,
)

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BATCHING = "2025-03-26"


class Asked(Struct):
    """A call that waits for the user: which forms are out, and what has come back."""

    request: RequestId
    tool: str
    arguments: Json
    state: str
    out: dict[str, str]
    answers: dict[str, FormAnswer] = {}


class Handshake:
    """One initialized connection, or one that is about to be."""

    def __init__(self, surface: Surface, server: Server) -> None:
        self.version: str | None = None
        self._surface = surface
        self._server = server
        self._client = Client()
        self._asked: list[Asked] = []
        self._forms = 0

    def answer(self, request: Request) -> list[bytes]:
        """Answer a request, now or, when the user must be asked first, later."""
        match request.method, self.version:
            case "initialize", _:
                return [self._initialize(request)]
            case (("ping" | "logging/setLevel"), _):
                return [result_line(request.id, {})]
            case (("tools/list" | "tools/call"), None):
                return [error_line(request.id, RpcFailure(INVALID_REQUEST, "initialize must come first"))]
            case "tools/list", str(version):
                return [result_line(request.id, {"tools": listed(self._surface, version)})]
            case "tools/call", _:
                return self._call(request)
            case method, _:
                return [error_line(request.id, RpcFailure(METHOD_NOT_FOUND, f"Method not found: {method}"))]

    def notice(self, notification: Notification) -> list[bytes]:
        """Take a notification; only a cancelled question makes us say anything."""
        if notification.method != "notifications/cancelled":
            return []
        cancelled = [asked for asked in self._asked if asked.request == notification.params.get("requestId")]
        self._asked = [asked for asked in self._asked if asked not in cancelled]
        return [
            notification_line("notifications/cancelled", {"requestId": form})
            for asked in cancelled
            for form in asked.out
        ]

    def hear(self, response: Response) -> list[bytes]:
        """Take the answer to a form; when it was the last one, make the call again."""
        asked = next((asked for asked in self._asked if response.id in asked.out), None)
        if asked is None:
            return []
        key = asked.out.pop(str(response.id))
        asked.answers[key] = answer_of(response.result) or FormAnswer("cancel")
        if asked.out:
            return []
        self._asked.remove(asked)
        call = Call(self._client, asked.answers, asked.state)
        return guarded(asked.request, lambda: self._settle(asked.request, asked.tool, asked.arguments, call))

    def _initialize(self, request: Request) -> bytes:
        requested = request.params.get("protocolVersion")
        if not isinstance(requested, str):
            return error_line(request.id, invalid_params("protocolVersion is required"))
        self.version = requested if requested in VERSIONS else VERSIONS[-1]
        capabilities, info = request.params.get("capabilities"), request.params.get("clientInfo")
        self._client = client_of(info, capabilities, "handshake", self.version)
        return result_line(request.id, self._welcome(self.version))

    def _welcome(self, version: str) -> Params:
        welcome: dict[str, Json] = {
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": msgspec.to_builtins(self._server),
        }
        return welcome | ({"instructions": self._surface.instructions} if self._surface.instructions else {})

    def _call(self, request: Request) -> list[bytes]:
        tool = tool_named(request.params)
        if isinstance(tool, RpcFailure):
            return [error_line(request.id, tool)]
        return self._settle(request.id, tool, request.params.get("arguments"), Call(self._client))

    def _settle(self, request: RequestId, tool: str, arguments: Json, call: Call) -> list[bytes]:
        outcome = call_tool(self._surface, tool, arguments, call)
        match outcome:
            case Reply():
                return [result_line(request, tool_result(outcome, self.version or VERSIONS[-1]))]
            case RpcFailure():
                return [error_line(request, outcome)]
            case Ask():
                return self._ask(request, tool, arguments, outcome)
            case _:
                assert_never(outcome)

    def _ask(self, request: RequestId, tool: str, arguments: Json, ask: Ask) -> list[bytes]:
        if not self._client.can_elicit:
            raise RuntimeError(f"{tool} asked the user through a client that shows no forms")
        out = {self._next_form(): key for key in ask.questions}
        self._asked.append(Asked(request, tool, arguments, ask.state, out))
        return [
            request_line(form, "elicitation/create", elicitation(ask.questions[key]))
            for form, key in out.items()
        ]

    def _next_form(self) -> str:
        self._forms += 1
        return f"form-{self._forms}"
