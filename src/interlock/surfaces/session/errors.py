"""The refusals of the session surface, where a worker yields a checkpoint and its orchestrator answers it."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.run.outcomes import Code, Refusal
from interlock.ledger.runs.position import Position
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


def next_action(position: Position, outstanding: Sequence[Refusal]) -> str:
    """Say what to do next to an agent that takes up a session."""
    if position.state.activity is None or position.state.finished:
        return shared.entry_action(position)
    missing = before_leaving(outstanding)
    if position.state.active is not None:
        return missing
    return f"Call get_activity and do its steps. Before next_activity: {missing or 'nothing is missing.'}"


def before_leaving(outstanding: Sequence[Refusal]) -> str:
    """Say what is to be done before the activity can be left."""
    return shared.actions(outstanding, words)


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    about, text = refusal.about, sentence(refusal)
    if activity := about.get("first") or about.get("decided_exit"):
        return Words(sentence(refusal), f"Call next_activity with activity_id '{activity}' first.")
    if only_the_user_answers(refusal) and refusal.code is Code.GATE_UNANSWERED:
        action = (
            f"The worker calls yield_checkpoint with checkpoint_id '{about.get('checkpoint')}'; "
            "the user answers it in the inbox."
        )
        return Words(text, action)
    if only_the_user_answers(refusal):
        return Words(text, INBOX)
    match refusal.code:
        case Code.DECISION_PENDING if "target" in about:
            message = f"{text} The orchestrator must resolve it by calling respond_checkpoint."
            return Words(message, "Call respond_checkpoint.")
        case Code.DECISION_PENDING:
            action = (
                f"Show the user checkpoint '{about['checkpoint']}' (present_checkpoint with session_token), "
            )
            return Words(text, f"{action}then call respond_checkpoint with the user's option_id.")
        case Code.GATE_UNANSWERED if "checkpoint" in about:
            action = f"The worker calls yield_checkpoint with checkpoint_id '{about['checkpoint']}'; "
            return Words(text, f"{action}the orchestrator answers with respond_checkpoint.")
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
