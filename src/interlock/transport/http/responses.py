"""Refusals of HTTP itself: a status, a code and what to do about it, as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from interlock.core.values import Json


def json_response(body: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response that no cache keeps."""
    headers = {"Cache-Control": "no-store", **(headers or {})}
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def too_busy() -> Response:
    """Refuse a request at once rather than let it wait behind others."""
    message = "The server has more to do than it can answer in time. Send the same request again."
    return refusal(503, "SERVER_BUSY", message, {"Retry-After": "1"})


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal. Its message never repeats what the client sent."""
    return json_response({"error": {"code": code, "message": message}}, status, headers)
