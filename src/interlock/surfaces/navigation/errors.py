"""The errors of the navigation surface: its codes, its table of next actions, its replies (rule 40)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.tokens.tokens import StateError
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import (
    INBOX,
    REPORT,
    Words,
    after_checks,
    names,
    only_the_user_answers,
    sentence,
    shape,
)

CODES: Mapping[Code, str] = {
    Code.DECISION_PENDING: "CHECKPOINT_BLOCKING",
    Code.GATE_UNANSWERED: "CHECKPOINT_BLOCKING",
    Code.NO_ACTIVITY: "INVALID_TRANSITION",
    Code.ACTIVITY_NOT_FOUND: "TARGET_ACTIVITY_NOT_FOUND",
    Code.CHECKPOINT_ALREADY_ANSWERED: "CHECKPOINT_ALREADY_RESPONDED",
    Code.RUN_FINISHED: "WORKFLOW_COMPLETED",
    Code.RUN_ABANDONED: "WORKFLOW_ABANDONED",
}
START_AGAIN = "Send the state of the last response; if it is lost, start a new run with nav_start."
AVAILABLE = "Take one of availableActions."


def code_of(refusal: Refusal) -> str:
    """Return the code that this surface has for the reason."""
    return CODES.get(refusal.code, refusal.code.value)


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    if only_the_user_answers(refusal):
        return Words(sentence(refusal), INBOX)
    return Words(sentence(refusal), _next_action(refusal))


def _next_action(refusal: Refusal) -> str:
    about = refusal.about
    match refusal.code:
        case Code.RUN_FINISHED:
            return "Start another run with nav_start."
        case Code.RUN_ABANDONED:
            return "It cannot go on; nav_situation shows what was done. Start another run with nav_start."
        case Code.DECISION_PENDING | Code.GATE_UNANSWERED:
            gate = about.get("checkpoint") or names(about, "pending")
            return f"Send action respond_to_checkpoint for '{gate}' first."
        case Code.NO_ACTIVITY:
            return "Send action transition with the activity_id to begin with."
        case Code.ACTIVITY_NOT_FOUND:
            return f"Send one of these as activity_id: {names(about, 'activities')}."
        case Code.ACTIVITY_NOT_COMPLETE:
            return "Complete its steps, loops and checkpoints first: see availableActions."
        case Code.INVALID_TRANSITION if about.get("valid"):
            return f"Send one of these as activity_id: {names(about, 'valid')}."
        case Code.INVALID_TRANSITION:
            return "Send the variables that decide where the activity leads: see availableActions."
        case (
            Code.STEP_NOT_FOUND | Code.STEP_NOT_PENDING | Code.STEP_ALREADY_COMPLETE | Code.LOOP_NOT_FOUND
        ) if "pending_step" in about:
            return f"Complete step '{about['pending_step']}' first."
        case Code.GUARD_REFUSED:
            return REPORT
        case Code.CHECK_FAILED | Code.CHECKED_AGAIN:
            return after_checks(refusal)
        case Code.REASK_IMPOSSIBLE:
            return (
                "Send the action without reask to go on with what was decided. To ask anew, go back to a "
                "state from before the question."
            )
        case Code.VARIABLES_TOO_LARGE:
            return "Send less in variables: keep large data in files, and null for a name that is done with."
        case Code.OUTPUT_REQUIRED:
            return "Send what is missing with the action, in output or variables; error.examples shows how."
        case Code.INPUT_REQUIRED:
            return f"Send in variables: {shape(about)}."
        case Code.LOOP_ITEMS_REQUIRED:
            return "Send loop_items with action advance_loop."
        case Code.LOOP_NOT_FOUND if "pending_loop" in about:
            return f"Send '{about['pending_loop']}' as loop_id."
        case Code.CHECKPOINT_NOT_FOUND if about.get("checkpoints"):
            return f"Send one of these as checkpoint_id: {names(about, 'checkpoints')}."
        case Code.OPTION_NOT_FOUND:
            return f"Send one of these as option_id: {names(about, 'options')}."
        case Code.CHECKPOINT_ALREADY_ANSWERED:
            return "Continue with the recorded answer: take one of availableActions."
        case Code.USER_MUST_DECIDE if "first" in about:
            return f"Send '{about['first']}' as activity_id."
        case Code.USER_MUST_DECIDE if "decided" in about:
            return f"Send option_id '{about['decided']}'."
        case Code.USER_MUST_DECIDE:
            return "Tell the user to open the inbox (interlock inbox), then send the same action again."
        case Code.TOO_FAST | Code.TIMER_RUNNING:
            return "Ask the user, then send the option that was chosen as option_id."
        case Code.CHILD_RUNNING:
            return "Finish the child with its own state; or send abandon_children: true to go on without it."
        case Code.RESOLUTION_MODE | Code.NOT_AUTO_ADVANCING | Code.NOT_CONDITIONAL | Code.CONDITION_HOLDS:
            return "Send the user's choice as option_id."
        case (
            Code.STEP_NOT_FOUND
            | Code.STEP_NOT_PENDING
            | Code.STEP_ALREADY_COMPLETE
            | Code.LOOP_NOT_FOUND
            | Code.ROUND_DUE
            | Code.CHECKPOINT_NOT_FOUND
            | Code.CHECKPOINT_NOT_ACTIVE
            | Code.CHECKPOINT_ALREADY_ACTIVE
            | Code.CHECKPOINT_STILL_ACTIVE
            | Code.CHECKPOINT_NOT_YIELDED
        ):
            return AVAILABLE
        case _:
            assert_never(refusal.code)


def failure(code: str, message: str, next_action: str, **more: Json) -> Reply:
    """Answer a call that could not be understood or served at all."""
    error: dict[str, Json] = {"code": code, "message": message, "next": next_action, **more}
    body: dict[str, Json] = {"success": False, "message": message, "error": error}
    return Reply(msgspec.json.encode(body).decode(), is_error=True)


def of_error(error: LedgerError) -> Reply:
    """Answer an error of the ledger."""
    match error.code:
        case "TOKEN_UNKNOWN_NODE" | "TOKEN_KEY_RETIRED":
            next_action = START_AGAIN
        case "TOKEN_OTHER_TIMELINE":
            next_action = (
                "Call nav_situation with the state of this answer to see where the run is, and go on. The"
                " actions that you sent after that are not recorded: send them again."
            )
        case "TOKEN_SCOPE_MISMATCH" | "TOKEN_UNSUPPORTED_VERSION" | "TOKEN_BAD_SIGNATURE":
            next_action = error.next_action or START_AGAIN
        case "TOKEN_WORKFLOW_HASH_MISMATCH":
            next_action = f"{error.next_action} To go on, start a new run with nav_start."
        case _:
            next_action = error.next_action
    more: dict[str, Json] = {} if error.after_ms is None else {"retry_after_ms": error.after_ms}
    if "token" in error.details:
        more["state"] = error.details["token"]
    return failure(error.code, error.message, next_action, **more)


def of_state(error: StateError) -> Reply:
    return failure(error.code, error.message, error.next_action)


def not_loaded(diagnostic: Diagnostic) -> Reply:
    """Answer for a workflow that does not exist, or whose file has errors."""
    if diagnostic.code == ABSENT:
        return failure("WORKFLOW_NOT_FOUND", absence(diagnostic), "Call list_workflows for the ids.")
    return failure("WORKFLOW_INVALID", located(diagnostic), diagnostic.next_action)


def not_found(code: str, message: str, known: list[str]) -> Reply:
    """Answer for something that the workflow does not have, and name what it has."""
    return failure(
        code, message, f"Use one of: {', '.join(known)}." if known else "There are none to choose from."
    )
