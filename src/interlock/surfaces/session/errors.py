"""The refusals of the session surface, where a worker yields a checkpoint and its orchestrator answers it."""

from __future__ import annotations

from interlock.core.run.outcomes import Code, Refusal
from interlock.surfaces.refusals import Words, sentence
from interlock.surfaces.shared import session_errors as shared

EMPTY = (
    "The provided checkpoint_handle does not have an active checkpoint (bcp is empty). "
    "The worker must yield a checkpoint first."
)
YIELD_FIRST = "Go on with the activity, or call yield_checkpoint first."


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    about, text = refusal.about, sentence(refusal)
    match refusal.code:
        case Code.DECISION_PENDING if "target" in about:
            message = f"{text} The orchestrator must resolve it by calling respond_checkpoint."
            return Words(message, "Call respond_checkpoint.")
        case Code.GATE_UNANSWERED if "checkpoint" in about:
            action = f"The worker must yield_checkpoint '{about['checkpoint']}'; the orchestrator answers it."
            return Words(text, action)
        case Code.CHECKPOINT_NOT_ACTIVE if not about:
            return Words(EMPTY, YIELD_FIRST)
        case Code.CHECKPOINT_NOT_YIELDED:
            return Words(text, YIELD_FIRST)
        case Code.CHECKPOINT_STILL_ACTIVE:
            return Words(text, "Wait until the orchestrator has called respond_checkpoint.")
        case _:
            return shared.words(refusal)
