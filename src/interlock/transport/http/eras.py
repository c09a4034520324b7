"""One route for both eras: stateless JSON for the modern one, sessions with streams for the other.

What stdio refuses to read is refused here too, before the SDK's more lenient parser sees it.
"""

from __future__ import annotations

from typing import Any, Protocol

import anyio
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message as ASGIMessage
from starlette.types import Receive, Scope, Send

from interlock.core.principals import Principal
from interlock.transport.http.admission.guard import read_body, replay
from interlock.transport.http.service import record_of
from interlock.transport.http.stopping import Stopping
from interlock.transport.rpc import PARSE_ERROR, Malformed, Message, Request, error_line, parse

VERSION_HEADER = b"mcp-protocol-version"


class Served(Protocol):
    """An MCP server that can be mounted."""

    server: Server[Any]

    @property
    def name(self) -> str:
        """What the access log calls it."""

    async def tell(self, session_id: str, principal: Principal) -> None:
        """Tell a session of the handshake era of changes, while its stream is open."""

    def forget(self, session_id: str) -> None:
        """Drop what is kept for a session that its client has ended."""


class Eras:
    """Sends each request to the manager of its era."""

    def __init__(
        self,
        served: Served,
        modern: StreamableHTTPSessionManager,
        handshake: StreamableHTTPSessionManager,
        stopping: Stopping,
    ) -> None:
        self._served = served
        self._modern = modern
        self._handshake = handshake
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record_of(scope).surface = self._served.name
        if scope["method"] != "POST":
            await self._serve_session(scope, self._stopping.ending(receive), send)
            return
        body = await read_body(receive)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        message = parse(body)
        refused = unreadable(message)
        if refused is not None:
            answer = error_line(refused.id, refused.error)
            await Response(answer, 400, media_type="application/json")(scope, receive, send)
            return
        version = next((value for name, value in scope["headers"] if name == VERSION_HEADER), b"")
        as_json = version.decode("latin-1") in MODERN_PROTOCOL_VERSIONS and not needs_stream(message)
        manager = self._modern if as_json else self._handshake
        await manager.handle_request(scope, replay(body, receive), send)

    async def _serve_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open or end a session's own stream. What there is to tell is told after its head was sent."""
        session_id, principal = Headers(scope=scope).get("mcp-session-id", ""), record_of(scope).principal
        async with anyio.create_task_group() as telling:

            async def followed(message: ASGIMessage) -> None:
                await send(message)
                if message["type"] == "http.response.start" and message["status"] == 200:
                    if scope["method"] == "GET":
                        telling.start_soon(self._served.tell, session_id, principal)
                    elif scope["method"] == "DELETE":
                        self._served.forget(session_id)

            await self._handshake.handle_request(scope, receive, followed)
            telling.cancel_scope.cancel()


def unreadable(message: Message | list[Message]) -> Malformed | None:
    """Return the refusal of a body that is not JSON as stdio reads it; the SDK judges the rest."""
    messages = message if isinstance(message, list) else [message]
    return next(
        (one for one in messages if isinstance(one, Malformed) and one.error.code == PARSE_ERROR), None
    )


def needs_stream(message: Message | list[Message]) -> bool:
    """Tell whether a request asks for progress, which only a stream carries, or may wait.

    Only from a stream does the SDK hear that the client has gone.
    """
    match message:
        case (
            Request(params={"_meta": {"progressToken": _}})
            | Request(params={"arguments": {"waitSeconds": _}})
        ):
            return True
        case _:
            return False
