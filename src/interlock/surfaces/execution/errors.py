"""The errors of the execution surface: its envelope (rule 40), and its table of next actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from interlock.core.run.outcomes import Code, Refusal
from interlock.core.run.questions import DECISION_REF
from interlock.core.run.reasons import Blocker, BlockerCode, ContextKey, ContractPointer
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.surfaces.call import Reply
from interlock.surfaces.refusals import (
    AFTER_CHECKS,
    INBOX,
    REPORT,
    Words,
    fields,
    only_the_user_answers,
    sentence,
)
from interlock.surfaces.shared.sentences import Table, said
from interlock.surfaces.tool import Tool

FIND = "Use resume_session to find the run and continue from the token it returns, or start a new one."
READABLE = "It cannot go on; continue_workflow with only stateToken shows what was done."
READ_AGAIN = "Call continue_workflow with only stateToken to see what is pending."
SEND = "Send in context: {shape}."
DECIDES = "Ask the user, then report the decision in output.artifacts."
ACTIONS: Table = {
    **dict.fromkeys(Code, READ_AGAIN),
    **AFTER_CHECKS,
    Code.RUN_FINISHED: "Start a new run with start_workflow.",
    Code.RUN_ABANDONED: f"{READABLE} Start a new run with start_workflow.",
    Code.INPUT_REQUIRED: (SEND, "Send shorter lists for its loops in context."),
    Code.LOOP_ITEMS_REQUIRED: SEND,
    Code.GUARD_REFUSED: REPORT,
    Code.REASK_IMPOSSIBLE: (
        "Send the call without reask to go on with what was decided. To ask anew, go back to a "
        "stateToken from before the question."
    ),
    Code.VARIABLES_TOO_LARGE: (
        "Send less in context: keep large data in files, and null for a key that is done with."
    ),
    Code.OUTPUT_REQUIRED: "Send what is missing in output.artifacts or output.notesMarkdown.",
    Code.USER_MUST_DECIDE: f"{INBOX} Then call again.",
    Code.DECISION_PENDING: DECIDES,
    Code.GATE_UNANSWERED: DECIDES,
}


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    action = f"{INBOX} Then call again." if only_the_user_answers(refusal) else said(ACTIONS, refusal)
    return Words(sentence(refusal), action)


AGAIN = "send the call again with the fresh ackToken"
ENABLE = (
    "Ask the user to enable it (for web browsing: add a browsing tool to the client) or to supply the "
    "material by hand, then probe again and acknowledge with the fresh ackToken."
)


def suggested_fix(blocker: Blocker, user_decides: str = INBOX) -> str:
    """Say what to do about a blocker; what it points to decides which parameter is named."""
    pointer = blocker.pointer
    match blocker.code:
        case BlockerCode.USER_ONLY_DEPENDENCY if blocker.requirement:
            return "Tell the user, and end your turn. Then call again with the fresh ackToken."
        case BlockerCode.USER_ONLY_DEPENDENCY if blocker.waits_for_user:
            return f"{user_decides} Then call again with the fresh ackToken."
        case BlockerCode.USER_ONLY_DEPENDENCY if isinstance(pointer, ContextKey):
            return f"Ask the user, then send the answer in context as '{pointer.key}'."
        case BlockerCode.USER_ONLY_DEPENDENCY:
            return "Ask the user, then report the choice as this artifact in output.artifacts."
        case BlockerCode.MISSING_REQUIRED_OUTPUT if isinstance(pointer, ContextKey):
            return f"Send '{pointer.key}' in context and {AGAIN}."
        case BlockerCode.MISSING_REQUIRED_OUTPUT if isinstance(pointer, ContractPointer):
            return f"Add it to output.artifacts and {AGAIN}."
        case BlockerCode.MISSING_REQUIRED_OUTPUT:
            wanted = f" ({blocker.requirement})" if blocker.requirement else ""
            return f"Put the result into output.notesMarkdown{wanted} and {AGAIN}."
        case BlockerCode.INVALID_REQUIRED_OUTPUT if blocker.requirement:
            return blocker.requirement
        case BlockerCode.INVALID_REQUIRED_OUTPUT if pointer == ContractPointer(DECISION_REF):
            return "Report one of the valid options as optionId."
        case BlockerCode.INVALID_REQUIRED_OUTPUT:
            return f"Correct it in output.artifacts and {AGAIN}."
        case BlockerCode.REQUIRED_CAPABILITY_UNKNOWN:
            return "Try it once and report the result with provenance kind probe_step or attempted_use."
        case BlockerCode.REQUIRED_CAPABILITY_UNAVAILABLE:
            return ENABLE
        case BlockerCode.INVARIANT_VIOLATION:
            return "Tell the user: the author of the workflow must give the circle an exit."
        case BlockerCode.STORAGE_CORRUPTION_DETECTED:
            return "Ask the user to run `interlock doctor --repair`."
        case _:
            assert_never(blocker.code)


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
    """Answer an error of the ledger."""
    match error.code:
        case "TOKEN_UNKNOWN_NODE":
            next_action = FIND
        case "TOKEN_OTHER_TIMELINE":
            next_action = (
                "Call continue_workflow with only the stateToken of this answer to see what is pending. What"
                " you acknowledged after that is not recorded: acknowledge it again, with the new tokens."
            )
        case "TOKEN_SCOPE_MISMATCH":
            next_action = error.next_action or FIND
        case "TOKEN_UNSUPPORTED_VERSION" | "TOKEN_BAD_SIGNATURE" | "TOKEN_KEY_RETIRED":
            next_action = f"{error.next_action} resume_session finds it."
        case "SESSION_NOT_HEALTHY":
            next_action = f"{error.next_action} Then use resume_session."
        case "TOKEN_WORKFLOW_HASH_MISMATCH":
            next_action = f"{error.next_action} To go on, start a new run with start_workflow."
        case _:
            next_action = error.next_action
    details = {"stateToken" if name == "token" else name: value for name, value in error.details.items()}
    return envelope(error.code, error.message, next_action, after_ms=error.after_ms, details=details)


def of_refusal(refusal: Refusal) -> Reply:
    """Answer a refusal of the core: a precondition that does not hold."""
    details: dict[str, Json] = {"reason": refusal.code.value, **fields(refusal)}
    wording = words(refusal)
    return envelope("PRECONDITION_FAILED", wording.message, wording.next_action, details=details)


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


def template_of(tool: Tool) -> Mapping[str, Json]:
    """Return a call to fill in: each parameter with a placeholder of its type."""
    properties = tool.argument_schema()["properties"]
    assert isinstance(properties, Mapping)
    template: dict[str, Json] = {}
    for name, schema in properties.items():
        match schema:
            case {"enum": list(choices)}:
                template[name] = f"<{' | '.join(map(str, choices))}>"
            case {"type": json_type}:
                template[name] = f"<{json_type}>"
            case _:
                template[name] = "<value>"
    return template
