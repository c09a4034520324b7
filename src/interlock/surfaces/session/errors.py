"""The refusals of the session surface, where a worker yields a checkpoint and its orchestrator answers it."""

from __future__ import annotations

from interlock.core.run.outcomes import Code, Refusal
from interlock.surfaces.refusals import INBOX, Words, only_the_user_answers, sentence
from interlock.surfaces.shared import session_errors as shared

EMPTY = (
    "The provided checkpoint_handle does not have an active checkpoint (bcp is empty). "
    "The worker must yield a checkpoint first."
)
YIELD_FIRST = "Go on with the activity, or call yield_checkpoint first."


def open_now(gate: str) -> str:
    """Say how to answer the checkpoint that is open, and no other."""
    return f"'{gate}' is open now: call present_checkpoint, then answer with the checkpoint_handle it shows."


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    about, text = refusal.about, sentence(refusal)
    if "left_out" in about:
        return Words(
            sentence(refusal), f"Call next_activity with activity_id '{about['in_activity']}' first."
        )
    if only_the_user_answers(refusal) and refusal.code is Code.GATE_UNANSWERED:
        action = (
            f"The worker must yield_checkpoint '{about.get('checkpoint')}'; the user answers it in the inbox."
        )
        return Words(text, action)
    if only_the_user_answers(refusal):
        return Words(text, INBOX)
    match refusal.code:
        case Code.DECISION_PENDING if "target" in about:
            message = f"{text} The orchestrator must resolve it by calling respond_checkpoint."
            return Words(message, "Call respond_checkpoint.")
        case Code.GATE_UNANSWERED if "checkpoint" in about:
            action = f"The worker must yield_checkpoint '{about['checkpoint']}'; the orchestrator answers it."
            return Words(text, action)
        case Code.CHECKPOINT_ALREADY_ANSWERED if "open" in about:
            return Words(text, open_now(str(about["open"])))
        case Code.CHECKPOINT_NOT_ACTIVE if not about:
            return Words(EMPTY, YIELD_FIRST)
        case Code.CHECKPOINT_NOT_YIELDED:
            return Words(text, YIELD_FIRST)
        case Code.CHECKPOINT_STILL_ACTIVE:
            return Words(text, "Wait until the orchestrator has called respond_checkpoint.")
        case _:
            return shared.words(refusal)
