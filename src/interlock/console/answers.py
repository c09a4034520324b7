"""What the console answers: a status, a body and what it is. Errors carry a code and the next action."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.ledger.errors import ErrorCode, LedgerError
from interlock.ledger.queries.status import Shown

JSON = "application/json"
STATUS: Mapping[ErrorCode, int] = {
    "NOT_FOUND": 404,
    "TOKEN_UNKNOWN_NODE": 404,
    "AMBIGUOUS": 409,
    "CONFLICT": 409,
    "ALREADY_DECIDED": 409,
    "QUESTION_CHANGED": 409,
    "SESSION_NOT_HEALTHY": 409,
    "VALIDATION_ERROR": 400,
    "TOKEN_SESSION_LOCKED": 503,
    "STORE_UNAVAILABLE": 503,
}


class Answer(Struct, frozen=True):
    """A body ready to be sent; `filename` is for what a browser should save."""

    body: bytes
    status: int = 200
    media: str = JSON
    filename: str = ""


class ConsoleError(Shown, frozen=True):
    """What went wrong, and what to do about it."""

    code: str
    message: str
    next_action: str = ""


def json_answer(value: Shown) -> Answer:
    """Encode a page."""
    return Answer(msgspec.json.encode(value))


def answer_to_error(error: LedgerError) -> Answer:
    """Encode the error that stands in the place of a page."""
    return refused(STATUS.get(error.code, 500), error.code, error.message, error.next_action)


def refused(status: int, code: str, message: str, next_action: str = "") -> Answer:
    """Return a refusal in the form that every error has."""
    return Answer(msgspec.json.encode({"error": ConsoleError(code, message, next_action)}), status)
