"""What every request must pass before any route sees it: its headers, its origin, its body.

A page in the user's browser can reach a server on loopback; its Host or Origin gives it away.
"""

from __future__ import annotations

from collections.abc import Collection

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.transport.http.responses import refusal

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
BODY_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 20.0
METHODS = ("GET", "HEAD", "POST", "DELETE")
SINGLE = ("host", "origin", "authorization", "content-length", "content-type", "mcp-session-id")


class Guard:
    """Refuses a request by its headers, and reads its body whole, within a size and a time."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # One parser keeps white space after a value, which is not part of it.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        response = self._refused(scope["method"], scope.get("scheme", "http"), Headers(scope=scope))
        if response is None and scope["method"] == "POST":
            try:
                body = await read_body(receive)
            except ClientDisconnect:
                return  # there is nobody to answer
            if isinstance(body, Response):
                response = body
            else:
                receive = replay(body, receive)
        await (self.app if response is None else response)(scope, receive, send)

    def _refused(self, method: str, scheme: str, headers: Headers) -> Response | None:
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            return refusal(405, "METHOD_NOT_ALLOWED", f"Use {allowed}.", {"Allow": allowed})
        if repeated := next((name for name in SINGLE if len(headers.getlist(name)) > 1), None):
            return refusal(400, "BAD_HEADER", f"The header {repeated} was sent more than once.")
        host = headers.get("host", "").lower()
        if name_of(host) not in self._hosts:
            message = "This server does not answer to that Host. Add it with --allowed-hosts."
            return refusal(421, "HOST_NOT_ALLOWED", message)
        # The only origin is the one that the request itself was sent to, also where a proxy ended TLS.
        if headers.get("origin", f"{scheme}://{host}").lower() not in (
            f"{scheme}://{host}",
            f"https://{host}",
        ):
            return refusal(403, "ORIGIN_NOT_ALLOWED", "Pages of other origins may not call this server.")
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            return refusal(400, "BAD_HEADER", "Only the transfer encoding 'chunked' is accepted.")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return refusal(400, "BAD_HEADER", "Content-Length is not a number.")
        return too_large() if len(length) > 18 or int(length) > BODY_BYTES else None


def name_of(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host


def too_large() -> Response:
    """Refuse a body over the limit; the connection ends, because the rest of it is not read."""
    message = f"A request may have {BODY_BYTES} bytes."
    return refusal(413, "BODY_TOO_LARGE", message, {"Connection": "close"})


async def read_body(receive: Receive) -> bytes | Response:
    """Read a body within its limits, or return the refusal."""
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            size += len(part)
            if size > BODY_BYTES:
                return too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
    message_text = f"The body did not arrive within {BODY_SECONDS:g} seconds."
    return refusal(408, "BODY_TOO_SLOW", message_text, {"Connection": "close"})


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body at once, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message
