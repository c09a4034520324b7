"""Refusals of this surface: a closed set of codes; the state stays as it was (rule 40)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.authoring.diagnostics.diagnostic import Diagnostic
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.tokens.tokens import StateProblem
from interlock.surfaces.call import Reply

CODES: Mapping[Code, str] = {
    Code.DECISION_PENDING: "CHECKPOINT_BLOCKING",
    Code.GATE_UNANSWERED: "CHECKPOINT_BLOCKING",
    Code.NO_ACTIVITY: "INVALID_TRANSITION",
    Code.ACTIVITY_NOT_FOUND: "TARGET_ACTIVITY_NOT_FOUND",
    Code.CHECKPOINT_ALREADY_ANSWERED: "CHECKPOINT_ALREADY_RESPONDED",
    Code.RUN_FINISHED: "WORKFLOW_COMPLETED",
}


def code_of(refusal: Refusal) -> str:
    """The name that this surface has for the reason."""
    return CODES.get(refusal.code, refusal.code.value)


def failure(code: str, message: str, suggestion: str, **more: Json) -> Reply:
    """A call that could not be understood or served at all."""
    error: dict[str, Json] = {"code": code, "message": message, "next": suggestion, **more}
    body: dict[str, Json] = {"success": False, "message": message, "error": error}
    return Reply(msgspec.json.encode(body).decode(), body, is_error=True)


def of_error(error: LedgerError) -> Reply:
    more: dict[str, Json] = {} if error.after_ms is None else {"retry_after_ms": error.after_ms}
    return failure(error.code, error.message, error.suggestion, **more)


def of_state(diagnostic: StateProblem) -> Reply:
    return failure(diagnostic.code, diagnostic.message, diagnostic.suggestion)


def not_loaded(diagnostic: Diagnostic) -> Reply:
    return failure(
        "WORKFLOW_NOT_FOUND", diagnostic.message, diagnostic.next_action or "call list_workflows for the ids"
    )


def not_found(code: str, message: str, listed: list[str]) -> Reply:
    """Something that the workflow does not have, and what it has."""
    hint = f"use one of: {', '.join(listed)}" if listed else "there is none"
    return failure(code, message, hint)
