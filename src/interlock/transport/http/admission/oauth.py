"""Access tokens of an OAuth authorization server: this server verifies them and says where to get one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio.to_thread
import jwt
from mcp.server.auth.routes import create_protected_resource_routes
from msgspec import Struct
from pydantic import AnyHttpUrl
from starlette.routing import Route

from interlock.core.principals import Principal, Role
from interlock.transport.http.admission.issuer_keys import issuer_keys
from interlock.transport.http.admission.principals import Verifier

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")  # none that shares a secret
ROLES: Sequence[Role] = ("admin", "approver", "metrics")  # the first that is among the scopes
CLOCK_SKEW_SECONDS = 30


class OAuthSettings(Struct, frozen=True):
    """The authorization server and what its tokens must say. `jwks` is a URL, or the path of a file."""

    issuer: str
    audience: str
    jwks: str


class OAuthVerifier:
    """Verifies signature, issuer, audience and time of a JWT; asks `fallback` about other tokens.

    The principal is the subject, at the issuer: two issuers may use the same name. A scope
    `interlock:approver`, `interlock:admin` or `interlock:metrics` gives the role.
    """

    def __init__(self, settings: OAuthSettings, fallback: Verifier | None = None) -> None:
        self._settings = settings
        self._fallback = fallback
        self._keys = issuer_keys(settings.jwks)

    async def principal_of(self, token: str) -> Principal | None:
        if token.count(".") != 2:
            return await self._fallback.principal_of(token) if self._fallback is not None else None
        return await anyio.to_thread.run_sync(self._verified, token)

    def _verified(self, token: str) -> Principal | None:
        try:
            key = self._keys.key(str(jwt.get_unverified_header(token).get("kid")))
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=CLOCK_SKEW_SECONDS,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        subject: str = claims["sub"]
        if not subject or not subject.isprintable():  # a name that no store and no log can hold
            return None
        scopes = str(claims.get("scope", "")).split()
        role: Role = next((role for role in ROLES if f"interlock:{role}" in scopes), "user")
        return Principal(f"{subject} at {self._settings.issuer}", role)


def metadata_routes(settings: OAuthSettings) -> list[Route]:
    """Return the routes that tell a client which authorization server to ask (RFC 9728)."""
    resource, issuer = AnyHttpUrl(settings.audience), AnyHttpUrl(settings.issuer)
    return create_protected_resource_routes(resource_url=resource, authorization_servers=[issuer])


def challenge(settings: OAuthSettings) -> dict[str, str]:
    """Return what a refusal says about where to get a token."""
    from mcp.server.auth.routes import build_resource_metadata_url

    return {"resource_metadata": str(build_resource_metadata_url(AnyHttpUrl(settings.audience)))}
