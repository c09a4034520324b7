"""Who may use the console: whoever started the server, by a secret of its launch, or a principal by a token.

Either is exchanged for a cookie, which pages of other sites cannot make the browser send.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from mcp.server.request_state import InvalidRequestState

from interlock.core.principals import LOCAL, Principal
from interlock.transport.http.seal import KeyringCodec
from interlock.transport.http.service import Service

PREFIX = b"console:"
COOKIE = "interlock-console"
PATH = "/console"


class ConsoleAccess:
    """Gives out cookies and tells whom they were given to. Without `launch` only tokens are accepted."""

    def __init__(self, service: Service, launch: str | None) -> None:
        self._service = service
        self._launch = launch
        self._local = secrets.token_urlsafe(32)
        self._codec = KeyringCodec(service.secrets)

    def cookie_for_launch(self, secret: str) -> str | None:
        """Exchange the secret of this launch for the local user's cookie."""
        is_right = self._launch is not None and hmac.compare_digest(secret.encode(), self._launch.encode())
        return self._local if is_right else None

    def cookie_for_token(self, token: str) -> str | None:
        """Exchange a principal's token for a cookie that holds it sealed, so that revoking it ends both."""
        known = self._known(token) if token else None
        return self._codec.seal(PREFIX + token.encode()) if known is not None else None

    def principal_of(self, cookie: str) -> Principal | None:
        """Return whom a cookie was given to."""
        if not cookie:
            return None
        if self._launch is not None and hmac.compare_digest(cookie.encode(), self._local.encode()):
            return LOCAL
        try:
            payload = self._codec.unseal(cookie)
        except InvalidRequestState:
            return None
        is_ours = payload.startswith(PREFIX)
        return self._known(payload.removeprefix(PREFIX).decode()) if is_ours else None

    def _known(self, token: str) -> Principal | None:
        principal = self._service.principal_of(token)
        return principal if principal is not None and principal.works else None

    def principal_in(self, headers: Mapping[str, str]) -> Principal | None:
        """Return whom the cookie of a request was given to."""
        return self.principal_of(cookie_in(headers))

    def csrf_of(self, cookie: str) -> str:
        """Return the token that a write must carry beside this cookie; every replica knows it."""
        return csrf_token(self._service.secrets()[0], cookie)

    def is_csrf_of(self, cookie: str, token: str) -> bool:
        """Check such a token; one from before a rotation of keys counts."""
        known = [csrf_token(secret, cookie) for secret in self._service.secrets()]
        return any(hmac.compare_digest(each.encode(), token.encode()) for each in known)


def csrf_token(secret: bytes, cookie: str) -> str:
    return hmac.digest(secret, b"console-csrf:" + cookie.encode(), "sha256").hex()


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the cookie's name. It has the port in it: consoles on other ports have cookies of their own."""
    _, separator, port = headers.get("host", "").rpartition(":")
    return f"{COOKIE}-{port}" if separator and port.isdigit() else COOKIE


def cookie_in(headers: Mapping[str, str]) -> str:
    """Return the console's cookie of a request; empty if there is none."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        return ""
    return found.value if found is not None else ""


def set_cookie(headers: Mapping[str, str], value: str, is_https: bool) -> str:
    """Return the header that gives a browser its cookie."""
    secure = "; Secure" if is_https else ""
    return f"{cookie_name(headers)}={value}; Path={PATH}; HttpOnly; SameSite=Strict{secure}"
