"""One route for both eras: stateless JSON for the modern one, sessions with streams for the other.

What stdio refuses is refused here too, before the SDK sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import anyio
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import Response as HttpResponse
from starlette.types import Message as ASGIMessage
from starlette.types import Receive, Scope, Send

from interlock.core.principals import Principal
from interlock.transport.http.admission.batches import refused_batch, serve_batch
from interlock.transport.http.admission.bodies import read_body, replay
from interlock.transport.http.admission.messages import (
    JSON_TYPE,
    SESSION_ENDED,
    SESSION_HEADER,
    STREAM_TYPE,
    VERSION_HEADER,
    is_answered_as_json,
    is_handshake,
    refused_post,
    refused_stream,
    rpc_refusal,
)
from interlock.transport.http.admission.sessions import OpenSessions
from interlock.transport.http.responses import too_busy
from interlock.transport.http.service import record_in
from interlock.transport.http.stopping import Stopping
from interlock.transport.rpc import (
    ID_IN_USE,
    Request,
    RequestId,
    Response,
    error_line,
    invalid_request,
    parse,
)
from interlock.transport.rpc import (
    Message as ClientMessage,
)

REUSE_SECONDS = 1.0


class Served(Protocol):
    """An MCP server that can be mounted."""

    server: Server[Any]

    @property
    def name(self) -> str:
        """What the access log calls it."""

    def is_too_busy_for(self, method: str, tool: object) -> bool:
        """Tell whether a call should be refused at once."""

    async def tell(self, session_id: str, principal: Principal) -> None:
        """Tell a session of the handshake era of changes, while its stream is open."""

    def renew(self, session_id: str) -> None:
        """Keep what is kept for a session that was in use until now."""

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
        self._sessions = OpenSessions()
        self._unanswered: dict[tuple[Principal, str, str], anyio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record_in(scope).surface = self._served.name
        if scope["method"] == "POST":
            await self._serve_message(scope, receive, send)
        else:
            await self._serve_stream(scope, self._stopping.ending(receive), send)

    async def _serve_message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the manager of its era answer a message, unless it must be refused."""
        body = await read_body(receive)
        if isinstance(body, HttpResponse):
            await body(scope, receive, send)
            return
        message = parse(body)
        if not isinstance(message, list):
            await self._serve_single(message, body, scope, receive, send)
            return
        session_id = Headers(scope=scope).get(SESSION_HEADER, "")
        version = self._sessions.version(record_in(scope).principal, session_id)
        refused = refused_batch(message, session_id, version)
        if refused is not None:
            await refused(scope, receive, send)
        else:
            await serve_batch(message, body, self._serve_message, scope, receive, send)

    async def _serve_single(
        self, message: ClientMessage, body: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = Headers(scope=scope)
        refused = refused_post(message, headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        if isinstance(message, Request) and self._served.is_too_busy_for(message.method, called(message)):
            await too_busy()(scope, receive, send)
            return
        if isinstance(message, Response) and not isinstance(message.result, Mapping):
            # The SDK would refuse it, and the call that asked would wait on.
            body = error_line(message.id, invalid_request("this is not the answer to a form"))
        # What was accepted here in any spelling, the SDK knows in one.
        checked = {b"content-type": JSON_TYPE, b"accept": f"{JSON_TYPE}, {STREAM_TYPE}"}
        scope["headers"] = [
            *((name, value) for name, value in scope["headers"] if name not in checked),
            *((name, value.encode()) for name, value in checked.items()),
        ]
        receive, version = replay(body, receive), headers.get(VERSION_HEADER)
        if not is_handshake(version):
            manager = self._modern if is_answered_as_json(message, version) else self._handshake
            await manager.handle_request(scope, receive, send)
        elif SESSION_HEADER not in headers:
            await self._open_session(asked_version(message), scope, receive, send)
        elif isinstance(message, Request):
            await self._serve_once(message.id, headers[SESSION_HEADER], scope, receive, send)
        else:
            await self._serve_session(None, scope, receive, send)

    async def _open_session(self, version: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a client open a session; one that its principal has not used for long may make room for it."""
        principal = record_in(scope).principal
        surplus = self._sessions.surplus(principal)
        if surplus is not None:
            headers = [(SESSION_HEADER.encode(), surplus.encode())]
            await self._handshake.handle_request(
                {**scope, "method": "DELETE", "headers": headers}, replay(b"", receive), unsent
            )
            self._served.forget(surplus)

        async def noticed(message: ASGIMessage) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                self._sessions.add(principal, Headers(raw=message["headers"])[SESSION_HEADER], version)
            await send(message)

        await self._handshake.handle_request(scope, receive, noticed)

    async def _serve_once(
        self, id: RequestId, session_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request of a session, unless one with its id is not answered yet."""
        key = (record_in(scope).principal, session_id, str(id))  # the SDK does not tell 1 from "1" either
        if (earlier := self._unanswered.get(key)) is not None:
            with anyio.move_on_after(REUSE_SECONDS):  # its client may have read the answer already
                await earlier.wait()
            if key in self._unanswered:
                await rpc_refusal(400, id, ID_IN_USE)(scope, receive, send)
                return
        self._unanswered[key] = answered = anyio.Event()
        try:
            await self._serve_session(id, scope, receive, send)
        finally:
            del self._unanswered[key]
            answered.set()

    async def _serve_session(self, id: RequestId, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK answer; where it does not find the session, say what to do about it."""
        is_lost = False

        async def explained(message: ASGIMessage) -> None:
            nonlocal is_lost
            if message["type"] == "http.response.start" and message["status"] == 404:
                is_lost = True
                await rpc_refusal(404, id, SESSION_ENDED)(scope, receive, send)
            elif not is_lost:
                await send(message)

        session_id = Headers(scope=scope)[SESSION_HEADER]
        try:
            with self._sessions.used(record_in(scope).principal, session_id):
                await self._handshake.handle_request(scope, receive, explained)
        finally:  # from now on the SDK counts the time until it ends the session
            self._served.renew(session_id)

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open or end a session's own stream. What there is to tell is told after its head was sent."""
        headers, principal = Headers(scope=scope), record_in(scope).principal
        refused = refused_stream(headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        if self._handshake.event_store is None:  # without one the SDK does not answer who wants to resume
            scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
        session_id = headers[SESSION_HEADER]
        async with anyio.create_task_group() as telling:

            async def followed(message: ASGIMessage) -> None:
                await send(message)
                if message["type"] == "http.response.start" and message["status"] == 200:
                    if scope["method"] == "GET":
                        telling.start_soon(self._served.tell, session_id, principal)
                    elif scope["method"] == "DELETE":
                        self._served.forget(session_id)
                        self._sessions.remove(principal, session_id)

            await self._serve_session(None, scope, receive, followed)
            telling.cancel_scope.cancel()


def called(message: Request) -> object:
    """Return the name of the tool that a request calls, as the client has sent it."""
    return message.params.get("name") if isinstance(message.params, Mapping) else None


def asked_version(message: ClientMessage) -> str:
    """Return the version that initialize asks for; empty if it is none that has been published."""
    params = message.params if isinstance(message, Request) else None
    return str(params.get("protocolVersion", "")) if isinstance(params, Mapping) else ""


async def unsent(message: ASGIMessage) -> None:
    """Take the answer to a request that no client has sent."""
