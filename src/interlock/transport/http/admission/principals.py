"""Who is calling: a bearer token becomes a principal before any route is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.core.principals import Principal
from interlock.transport.http.responses import refusal
from interlock.transport.http.service import Service, Unavailable, record_in

OPEN = ("/healthz", "/readyz", "/.well-known/", "/answer/")
METRICS = "/metrics"
CONSOLE = "/console"  # knows its users by a cookie, and refuses others by itself
NOBODY = Principal("")
CHECK_SECONDS = 1.0  # what is sent later than this after the last check waits for another one
ENDED = "This token was revoked or has expired since the request was sent."


SignedIn: TypeAlias = Callable[[Mapping[str, str]], Principal | None]


class Verifier(Protocol):
    """Tells whom a bearer token was given to."""

    async def principal_of(self, token: str) -> Principal | None: ...


class TokenVerifier:
    """Verifies the tokens that `interlock auth` gives out."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def principal_of(self, token: str) -> Principal | None:
        return self._service.principal_of(token)


class Identification:
    """Finds out who sends a request: by a bearer token, or by the console's cookie.

    When a token is revoked or expires, its streams end and calls that wait are not answered: nothing more is
    sent, and a client that comes back is refused. Without a verifier everybody is the local user.
    """

    def __init__(
        self,
        app: ASGIApp,
        verifier: Verifier | None,
        signed_in: SignedIn | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self._verifier = verifier
        self._signed_in = signed_in
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        verifier = self._verifier
        if scope["type"] != "http" or verifier is None:
            await self.app(scope, receive, send)
            return
        principal, checked_at = await self._sender(scope, verifier), self._clock()
        record_in(scope).principal = principal or NOBODY
        if principal is not None:  # the SDK lets nobody else use an MCP session: it compares this user
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.name, scopes=[]))

        async def checked(message: Message) -> None:
            nonlocal checked_at
            if self._clock() - checked_at >= CHECK_SECONDS:
                if await self._sender(scope, verifier) != principal:
                    if message["type"] == "http.response.start":
                        await refusal(401, "UNAUTHORIZED", ENDED)(scope, receive, send)
                    else:
                        await send({"type": "http.response.body", "body": b"", "more_body": False})
                    request.cancel()
                    return
                checked_at = self._clock()
            await send(message)

        with anyio.CancelScope() as request:
            await self.app(scope, receive, checked)

    async def _sender(self, scope: Scope, verifier: Verifier) -> Principal | None:
        headers = Headers(scope=scope)
        if scope["path"].startswith(CONSOLE):
            try:
                return self._signed_in(headers) if self._signed_in is not None else None
            except Unavailable:  # the keys cannot be read; the console's own routes say so
                return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        return await verifier.principal_of(token) if kind.lower() == "bearer" else None


class Authentication:
    """Refuses requests of nobody, but for routes that are open; a token for metrics opens only those."""

    def __init__(self, app: ASGIApp, challenge: Mapping[str, str]) -> None:
        self.app = app
        self._challenge = ", ".join(f'{name}="{value}"' for name, value in challenge.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] != "http" or scope["path"].startswith((*OPEN, CONSOLE))
        principal = record_in(scope).principal
        if not is_open and not principal.works and scope["path"] != METRICS:
            message = "A token of the role metrics reads /metrics and nothing else."
            await refusal(403, "FORBIDDEN", message)(scope, receive, send)
            return
        if is_open or principal is not NOBODY:
            await self.app(scope, receive, send)
            return
        message = "Send a valid token: Authorization: Bearer … (interlock auth add NAME makes one)."
        challenge = f"Bearer {self._challenge}".strip()
        response = refusal(401, "UNAUTHORIZED", message, {"WWW-Authenticate": challenge})
        await response(scope, receive, send)
