"""The unified error envelope: code, message, how to retry, and what to do next (rule 40)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.core.run.outcomes import Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.surfaces.call import Reply

Code = Literal["VALIDATION_ERROR", "NOT_FOUND", "PRECONDITION_FAILED", "INTERNAL_ERROR"]


def envelope(
    code: str,
    message: str,
    suggestion: str,
    *,
    after_ms: int | None = None,
    details: Mapping[str, Json] | None = None,
) -> Reply:
    """Say what went wrong and what to do next, in text and in fields."""
    retry: dict[str, Json] = {"kind": "not_retryable"}
    if after_ms is not None:
        retry = {"kind": "retryable_after_ms", "afterMs": after_ms}
    body: dict[str, Json] = {
        "code": code,
        "message": message,
        "retry": retry,
        "details": {"suggestion": suggestion, **(details or {})},
    }
    return Reply(msgspec.json.encode(body).decode(), body, is_error=True)


def of_error(error: LedgerError) -> Reply:
    return envelope(
        error.code,
        error.message,
        error.suggestion,
        after_ms=error.after_ms,
        details=error.details,
    )


def of_refusal(refusal: Refusal) -> Reply:
    """A refusal of the core is a precondition that does not hold here."""
    details: dict[str, Json] = {"reason": refusal.code.value, **refusal.about}
    return envelope("PRECONDITION_FAILED", refusal.message, refusal.next, details=details)


def invalid(
    message: str,
    suggestion: str,
    path: str = "",
    template: Mapping[str, Json] | None = None,
    more: Mapping[str, Json] | None = None,
) -> Reply:
    """Refuse arguments, naming the place and showing a call that would be right."""
    details: dict[str, Json] = {"validationErrors": [{"path": path, "message": message}], **(more or {})}
    if template is not None:
        details["correctTemplate"] = template
    return envelope("VALIDATION_ERROR", message, suggestion, details=details)
