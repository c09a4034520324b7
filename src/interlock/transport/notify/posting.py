"""One HTTP request with a time limit, for every channel that is a URL."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from interlock.core.message import Undelivered

SECONDS = 10.0
GONE = 410


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send a body, or raise Undelivered. A redirect is not followed: it would take the secrets elsewhere."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            connection.request("POST", path, body, {"User-Agent": "interlock", **headers})
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Undelivered(f"{parts.hostname}: {type(error).__name__}: {error}") from error
    if not 200 <= status < 300:
        raise Undelivered(f"{parts.hostname} answered {status}", final=status == GONE)
