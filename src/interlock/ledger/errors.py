"""Expected errors of the ledger: a code of the closed set, a sentence, what a person can do.

They are raised where they are noticed and translated once, where a call or a command enters: each surface,
the console and the terminal have their own words around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from interlock.core.values import Json
from interlock.ledger.log.projection import RowDamaged
from interlock.ledger.runs.guarding import GuardRefused
from interlock.ledger.runs.pinned_workflows import PinDamaged
from interlock.ledger.tokens.keyring import KeyringDamaged
from interlock.store.protocol import (
    StoreAway,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)

FULL_MS = 10_000  # somebody has to make room first

ErrorCode = Literal[
    "TOKEN_INVALID_FORMAT",
    "TOKEN_UNSUPPORTED_VERSION",
    "TOKEN_BAD_SIGNATURE",
    "TOKEN_KEY_RETIRED",
    "TOKEN_SCOPE_MISMATCH",
    "TOKEN_UNKNOWN_NODE",
    "TOKEN_OTHER_TIMELINE",
    "TOKEN_SESSION_LOCKED",
    "TOKEN_WORKFLOW_HASH_MISMATCH",
    "SESSION_NOT_HEALTHY",
    "STORE_CORRUPT",
    "STORE_UNAVAILABLE",
    "GUARD_REFUSED",
    "INTERNAL_ERROR",
    "NOT_FOUND",
    "AMBIGUOUS",
    "CONFLICT",
    "ALREADY_DECIDED",
    "QUESTION_CHANGED",
    "VALIDATION_ERROR",
]


class LedgerError(Exception):
    """Nothing was written. `after_ms` says that the same call may succeed later.

    `next_action` names commands for people, never a tool; each surface adds its own tools by the code.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        next_action: str = "",
        after_ms: int | None = None,
        details: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.next_action = next_action
        self.after_ms = after_ms
        self.details = dict(details or {})


def unknown_session() -> LedgerError:
    return LedgerError(
        "TOKEN_UNKNOWN_NODE",
        "This token is genuine, but the session it leads to is not in this store.",
    )


def unknown_node() -> LedgerError:
    return LedgerError(
        "TOKEN_UNKNOWN_NODE",
        "This token is genuine, but the node it leads to is not in its session.",
    )


def other_time_line(token: str, where: str) -> LedgerError:
    """Refuse a token of a log that was lost. `token` leads to `where` the run is in the log that there is."""
    return LedgerError(
        "TOKEN_OTHER_TIMELINE",
        "The records were set back since this token was given: an older copy was restored, a failover lost"
        " the newest steps, or a repair removed them. What this token belongs to is not in the log, and"
        f" nothing was changed. The run is now {where}.",
        details={"token": token},
    )


def not_healthy(session_id: str, reason: str) -> LedgerError:
    return LedgerError(
        "SESSION_NOT_HEALTHY",
        f"Session {session_id} is damaged: {reason}. What was recorded before the damage can be read.",
        "Ask the user to run `interlock doctor --repair`.",
    )


def response_lost() -> LedgerError:
    return LedgerError(
        "TOKEN_SCOPE_MISMATCH",
        "This attempt was recorded, but its response was lost to damage that a repair could not undo.",
    )


def locked() -> LedgerError:
    return LedgerError(
        "TOKEN_SESSION_LOCKED",
        "Another process is writing and did not finish in time. Nothing was changed.",
        "Send the same call again.",
        after_ms=1000,
    )


def store_corrupt() -> LedgerError:
    return LedgerError(
        "STORE_CORRUPT",
        "The database file is damaged. No answer is given from damaged data.",
        "Ask the user to run `interlock doctor --repair`, which recovers what is readable into a new file.",
    )


def row_damaged(what: str) -> LedgerError:
    return LedgerError(
        "STORE_CORRUPT",
        f"A stored row is damaged: {what}. No answer is given from damaged data.",
        "Ask the user to run `interlock doctor --repair`, which makes it again from the log.",
    )


def error_of(error: Exception) -> LedgerError | None:
    """Translate whatever the ledger and what is below it may raise; return None for anything else, a bug."""
    match error:
        case LedgerError():
            return error
        case StoreBusy() | StoreConflict():
            return locked()
        case StoreCorrupt():
            return store_corrupt()
        case RowDamaged():
            return row_damaged(str(error))
        case StoreTooNew():
            update = "Ask the user to run `pip install --upgrade interlock`, then restart this server."
            return LedgerError("STORE_UNAVAILABLE", str(error), update)
        case StoreAway():
            return LedgerError("STORE_UNAVAILABLE", str(error), "Send the same call again.", after_ms=2000)
        case StoreFull():
            room = "Tell the user to free some space (`interlock gc` helps); then send the same call again."
            return LedgerError("STORE_UNAVAILABLE", str(error), room, after_ms=FULL_MS)
        case StoreUnavailable() | KeyringDamaged():
            return LedgerError("STORE_UNAVAILABLE", str(error), "Ask the user to run `interlock doctor`.")
        case OSError():
            message = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
            return LedgerError("STORE_UNAVAILABLE", message, "Ask the user to run `interlock doctor`.")
        case PinDamaged():
            return LedgerError(
                "TOKEN_WORKFLOW_HASH_MISMATCH",
                f"The workflow that this run is pinned to cannot be read: {error}.",
                "Ask the user to run `interlock doctor`.",
            )
        case GuardRefused():
            message = f"Interlock's guard refused this: {error}. Nothing was changed; other calls work."
            report = "Tell the user to report it, with what `interlock verify` says."
            return LedgerError("GUARD_REFUSED", message, report)
        case _:
            return None


def internal_error(error: Exception, reference: str) -> LedgerError:
    """Answer for a bug; the reference leads to the traceback on the server's stderr."""
    return LedgerError(
        "INTERNAL_ERROR",
        f"Interlock failed ({type(error).__name__}). Nothing was recorded. "
        f"Reference {reference} on the server's stderr.",
        "Send the same call once more; if it fails again, tell the user the reference.",
    )
