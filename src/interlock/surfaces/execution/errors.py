"""The errors of the execution surface: its envelope (rule 40), and its table of next actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.surfaces.refusals import Words, names, sentence
from interlock.surfaces.tool import Reply

READ_AGAIN = "Call continue_workflow with only stateToken to see what is pending."


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    return Words(sentence(refusal), _next_action(refusal))


def _next_action(refusal: Refusal) -> str:
    match refusal.code:
        case Code.RUN_FINISHED:
            return "Start a new run with start_workflow."
        case Code.INPUT_REQUIRED | Code.LOOP_ITEMS_REQUIRED:
            return f"Send in context: {names(refusal.about, 'variables')}."
        case Code.OUTPUT_REQUIRED:
            return "Send what is missing in output.artifacts or output.notesMarkdown."
        case Code.USER_MUST_DECIDE:
            return "Tell the user to open the inbox (interlock inbox), then call again."
        case Code.DECISION_PENDING | Code.GATE_UNANSWERED:
            return "Ask the user, then report the decision in output.artifacts."
        case (
            Code.NO_ACTIVITY
            | Code.ACTIVITY_NOT_FOUND
            | Code.ACTIVITY_NOT_COMPLETE
            | Code.INVALID_TRANSITION
            | Code.STEP_NOT_FOUND
            | Code.STEP_NOT_PENDING
            | Code.STEP_ALREADY_COMPLETE
            | Code.CHECKPOINT_NOT_FOUND
            | Code.CHECKPOINT_NOT_ACTIVE
            | Code.CHECKPOINT_ALREADY_ACTIVE
            | Code.CHECKPOINT_ALREADY_ANSWERED
            | Code.CHECKPOINT_STILL_ACTIVE
            | Code.CHECKPOINT_NOT_YIELDED
            | Code.OPTION_NOT_FOUND
            | Code.RESOLUTION_MODE
            | Code.TOO_FAST
            | Code.NOT_AUTO_ADVANCING
            | Code.TIMER_RUNNING
            | Code.NOT_CONDITIONAL
            | Code.CONDITION_HOLDS
            | Code.LOOP_NOT_FOUND
        ):
            return READ_AGAIN
        case _:
            assert_never(refusal.code)


def envelope(
    code: str,
    message: str,
    next_action: str,
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
        "details": {"suggestion": next_action, **(details or {})},
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
    """Answer a refusal of the core: a precondition that does not hold."""
    details: dict[str, Json] = {"reason": refusal.code.value, **refusal.about}
    told = words(refusal)
    return envelope("PRECONDITION_FAILED", told.message, told.next_action, details=details)


def invalid(
    message: str,
    next_action: str,
    path: str = "",
    template: Mapping[str, Json] | None = None,
    more: Mapping[str, Json] | None = None,
) -> Reply:
    """Refuse arguments, naming the argument and showing a call that would be right."""
    details: dict[str, Json] = {"validationErrors": [{"path": path, "message": message}], **(more or {})}
    if template is not None:
        details["correctTemplate"] = template
    return envelope("VALIDATION_ERROR", message, next_action, details=details)
