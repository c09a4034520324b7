"""What every request must pass before anything else is done about it: its headers and its origin.

A page in the user's browser can reach a server on loopback; its Host or Origin gives it away.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.transport.http.admission.bodies import BODY_BYTES, too_large
from interlock.transport.http.responses import refusal

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
METHODS = ("GET", "HEAD", "POST", "DELETE")
SINGLE = ("host", "origin", "authorization", "content-length", "content-type", "mcp-session-id")


class Guard:
    """Refuses a request by its headers."""

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
        await (self.app if response is None else response)(scope, receive, send)

    def _refused(self, method: str, scheme: str, headers: Headers) -> Response | None:
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            return refusal(405, "METHOD_NOT_ALLOWED", f"Use {allowed}.", {"Allow": allowed})
        if repeated := next((name for name in SINGLE if len(headers.getlist(name)) > 1), None):
            return refusal(400, "BAD_HEADER", f"The header {repeated} was sent more than once.")
        host = headers.get("host", "").lower()
        if host_name(host) not in self._hosts:
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


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host
