"""The errors of the navigation surface: its codes, its table of next actions, its replies (rule 40)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlock.authoring.diagnostics.diagnostic import ABSENT, Diagnostic, absence, located
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.tokens.tokens import StateError
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import (
    AFTER_CHECKS,
    AT_ADDRESS,
    BY_ADDRESS,
    BY_FORM,
    INBOX,
    REPORT,
    Words,
    only_the_user_answers,
    sentence,
)
from interlock.surfaces.shared.sentences import Table, When, said

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
RESPOND: tuple[str | When, ...] = (
    When("form", f"Send action respond_to_checkpoint for '{{gates}}' first: {BY_FORM}"),
    When("address", f"Send action respond_to_checkpoint for '{{gates}}' first: {BY_ADDRESS}"),
    "Send action respond_to_checkpoint for '{gates}' first.",
)
ASK_THE_USER = "Ask the user, then send the option that was chosen as option_id."
CHOICE = "Send the user's choice as option_id."
STEP_FIRST = ("Complete step '{pending_step}' first.", AVAILABLE)
ACTIONS: Table = {
    **AFTER_CHECKS,
    Code.RUN_FINISHED: "Start another run with nav_start.",
    Code.RUN_ABANDONED: (
        "It cannot go on; nav_situation shows what was done. Start another run with nav_start."
    ),
    Code.DECISION_PENDING: RESPOND,
    Code.GATE_UNANSWERED: (*RESPOND, AVAILABLE),
    Code.NO_ACTIVITY: "Send action transition with the activity_id to begin with.",
    Code.ACTIVITY_NOT_FOUND: AVAILABLE,
    Code.ACTIVITY_NOT_COMPLETE: "Complete its steps, loops and checkpoints first: see availableActions.",
    Code.INVALID_TRANSITION: (
        "Send one of these as activity_id: {valid}.",
        "Send the variables that decide where the activity leads: see availableActions.",
    ),
    Code.STEP_NOT_FOUND: STEP_FIRST,
    Code.STEP_NOT_PENDING: STEP_FIRST,
    Code.STEP_ALREADY_COMPLETE: STEP_FIRST,
    Code.LOOP_NOT_FOUND: (STEP_FIRST[0], "Send '{pending_loop}' as loop_id.", AVAILABLE),
    Code.GUARD_REFUSED: REPORT,
    Code.REASK_IMPOSSIBLE: (
        "Send the action without reask to go on with what was decided. To ask anew, go back to a "
        "state from before the question."
    ),
    Code.VARIABLES_TOO_LARGE: (
        "Send less in variables: keep large data in files, and null for a name that is done with."
    ),
    Code.OUTPUT_REQUIRED: (
        "Send what is missing with the action, in output or variables; error.examples shows how."
    ),
    Code.INPUT_REQUIRED: ("Send in variables: {shape}.", "Send shorter lists for its loops in variables."),
    Code.LOOP_ITEMS_REQUIRED: "Send loop_items with action advance_loop.",
    Code.CHECKPOINT_NOT_FOUND: AVAILABLE,
    Code.OPTION_NOT_FOUND: "Send one of these as option_id: {options}.",
    Code.CHECKPOINT_ALREADY_ANSWERED: "Continue with the recorded answer: take one of availableActions.",
    Code.USER_MUST_DECIDE: (
        "Send '{first}' as activity_id.",
        "Send option_id '{decided}'.",
        When("address", f"{AT_ADDRESS} Then send the same action again."),
        f"{INBOX} Then send the same action again.",
    ),
    Code.TOO_FAST: ASK_THE_USER,
    Code.TIMER_RUNNING: ASK_THE_USER,
    Code.CHILD_RUNNING: (
        "Finish the child with its own state; or send abandon_children: true to go on without it."
    ),
    Code.RESOLUTION_MODE: CHOICE,
    Code.NOT_AUTO_ADVANCING: CHOICE,
    Code.NOT_CONDITIONAL: CHOICE,
    Code.CONDITION_HOLDS: CHOICE,
    Code.ROUND_DUE: AVAILABLE,
    Code.CHECKPOINT_NOT_ACTIVE: AVAILABLE,
    Code.CHECKPOINT_ALREADY_ACTIVE: AVAILABLE,
    Code.CHECKPOINT_STILL_ACTIVE: AVAILABLE,
    Code.CHECKPOINT_NOT_YIELDED: AVAILABLE,
}


def code_of(refusal: Refusal) -> str:
    """Return the code that this surface has for the reason."""
    return CODES.get(refusal.code, refusal.code.value)


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    action = INBOX if only_the_user_answers(refusal) else said(ACTIONS, refusal)
    return Words(sentence(refusal), action)


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
