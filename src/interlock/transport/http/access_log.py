"""One line of JSON per request on stderr: who, what, how it ended, how long it took. No token, no text."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.transport.http.metrics import Metrics
from interlock.transport.http.service import record_in


class AccessLog:
    """Logs and counts every request, also those that are refused before they reach a route."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, routes: Collection[str], write: Callable[[bytes], None] | None
    ) -> None:
        self.app = app
        self._metrics = metrics
        self._routes = frozenset(routes)
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, began = 499, time.perf_counter()  # 499: the client was gone before the answer

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            path = scope["path"]
            route = path if path in self._routes else "other"  # what a client makes up is not logged
            self._metrics.observe_request(route, status)
            if self._write is not None:
                self._write(log_line(scope, route, status, time.perf_counter() - began))


def log_line(scope: Scope, route: str, status: int, seconds: float) -> bytes:
    """Return what the log says about a request."""
    record = record_in(scope)
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "method": scope["method"],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "principal": record.principal.name,
        "tool": record.tool,
    }
    return msgspec.json.encode(line) + b"\n"


def write_to_stderr(line: bytes) -> None:
    """Write a line whole; nobody may be reading."""
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
