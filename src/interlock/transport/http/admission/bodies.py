"""The bodies of requests, read whole, within a size, a time and a budget of bytes.

Nothing of a body is read before its sender is known and within its limits: what waits in memory to be parsed
costs several times its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.transport.http.responses import refusal
from interlock.transport.http.service import record_in

BODY_BYTES = 8 * 1024 * 1024
STRANGER_BYTES = 16 * 1024  # of somebody who signs in
BODY_SECONDS = 20.0
BYTES_OF_ONE = 16 * 1024 * 1024
BYTES_OF_ALL = 64 * 1024 * 1024

Grow = Callable[[int], bool]


class Bodies:
    """Reads the body of a request; its bytes count until the request is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._held: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        name, size = record_in(scope).principal.name, 0

        def grow(more: int) -> bool:
            nonlocal size
            if self._held[name] + more > BYTES_OF_ONE or self._held.total() + more > BYTES_OF_ALL:
                return False
            size += more
            self._held[name] += more
            return True

        try:
            body = await read_body(receive, BODY_BYTES if name else STRANGER_BYTES, grow)
            if isinstance(body, Response):
                await body(scope, receive, send)
            else:
                await self.app(scope, replay(body, receive), send)
        except ClientDisconnect:
            return  # there is nobody to answer
        finally:
            self._held[name] -= size
            if not self._held[name]:
                del self._held[name]


async def read_body(
    receive: Receive, most: int = BODY_BYTES, grow: Grow = lambda more: True
) -> bytes | Response:
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
            if size > most:
                return too_large(most)
            if not grow(len(part)):
                return too_much()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
    message_text = f"The body did not arrive within {BODY_SECONDS:g} seconds."
    return refusal(408, "BODY_TOO_SLOW", message_text, {"Connection": "close"})


def too_large(most: int = BODY_BYTES) -> Response:
    """Refuse a body over the limit; the connection ends, because the rest of it is not read."""
    return refusal(413, "BODY_TOO_LARGE", f"A request may have {most} bytes.", {"Connection": "close"})


def too_much() -> Response:
    """Refuse a body that would be too much beside the others that are being answered."""
    message = f"Requests of {BYTES_OF_ONE} bytes per principal are answered at a time. Send it again."
    return refusal(429, "TOO_MANY_BYTES", message, {"Retry-After": "1", "Connection": "close"})


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body at once, and then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pending.pop() if pending else await receive()

    return next_message
