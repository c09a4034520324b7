"""One route for both eras: stateless JSON for the modern one, sessions with streams for the other.

What stdio refuses to read is refused here too, before the SDK's more lenient parser sees it.
"""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from interlock.transport.http.admission.guard import read_body, replay
from interlock.transport.http.service import record_of
from interlock.transport.http.stopping import Stopping
from interlock.transport.rpc import PARSE_ERROR, Malformed, Message, Request, error_line, parse

VERSION_HEADER = b"mcp-protocol-version"


class Eras:
    """Sends each request to the manager of its era."""

    def __init__(
        self,
        surface: str,
        modern: StreamableHTTPSessionManager,
        handshake: StreamableHTTPSessionManager,
        stopping: Stopping,
    ) -> None:
        self._surface = surface
        self._modern = modern
        self._handshake = handshake
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record_of(scope).surface = self._surface
        if scope["method"] != "POST":
            await self._handshake.handle_request(scope, self._stopping.ending(receive), send)
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
