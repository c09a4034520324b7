"""Who is calling: a bearer token becomes a principal before any route is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock.core.principals import Principal
from interlock.transport.http.responses import refusal
from interlock.transport.http.service import Service, record_of

OPEN = ("/healthz", "/readyz", "/.well-known/", "/console")  # the console knows its users by a cookie


class Verifier(Protocol):
    """Tells whom a bearer token was given to."""

    async def principal_of(self, token: str) -> Principal | None: ...


class TokenVerifier:
    """Verifies the tokens that `interlock auth` gives out."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def principal_of(self, token: str) -> Principal | None:
        return self._service.principal_of(token)


class Authentication:
    """Refuses requests without a valid token. Without a verifier everybody is the local user."""

    def __init__(self, app: ASGIApp, verifier: Verifier | None, challenge: Mapping[str, str]) -> None:
        self.app = app
        self._verifier = verifier
        self._challenge = ", ".join(f'{name}="{value}"' for name, value in challenge.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] != "http" or scope["path"].startswith(OPEN)
        if is_open or self._verifier is None:
            await self.app(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, token = header.decode("latin-1").partition(" ")
        principal = await self._verifier.principal_of(token) if kind.lower() == "bearer" else None
        if principal is None:
            message = "Send a valid token: Authorization: Bearer … (interlock auth add NAME makes one)."
            challenge = f"Bearer {self._challenge}".strip()
            response = refusal(401, "UNAUTHORIZED", message, {"WWW-Authenticate": challenge})
            await response(scope, receive, send)
            return
        record_of(scope).principal = principal
        # The SDK lets nobody else use an MCP session: it compares this user.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.name, scopes=[]))
        await self.app(scope, receive, send)
