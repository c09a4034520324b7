"""The refusals of the session surface, where a worker yields a checkpoint and its orchestrator answers it."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.run.outcomes import Code, Refusal
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import ACTIVE, BY_ADDRESS, BY_FORM, INBOX, NOT_PENDING, UNANSWERED, Words
from interlock.surfaces.refusals import MESSAGES as SHARED
from interlock.surfaces.shared import session_errors as shared
from interlock.surfaces.shared.sentences import Table, When

OPEN_NOW = "'{open}' is open now: call present_checkpoint, then answer with the checkpoint_handle it shows."
YIELD_FIRST = "Go on with the activity, or call yield_checkpoint first."
YIELDS = "Worker: yield_checkpoint with checkpoint_id '{checkpoint}'; "
RESPOND_FIRST = (
    "Call respond_checkpoint with any of its options (present_checkpoint with session_token shows them): "
)
MESSAGES: Table = {
    **SHARED,
    Code.DECISION_PENDING: (
        *UNANSWERED,
        When("inbox", ACTIVE),
        When("address", ACTIVE),
        When("target", f"{ACTIVE} The orchestrator must resolve it by calling respond_checkpoint."),
        ACTIVE,
    ),
    Code.CHECKPOINT_NOT_ACTIVE: (
        *NOT_PENDING,
        "The provided checkpoint_handle does not have an active checkpoint (bcp is empty). "
        "The worker must yield a checkpoint first.",
    ),
}
ACTIONS: Table = {
    **shared.ACTIONS,
    Code.DECISION_PENDING: (
        When("form", f"{RESPOND_FIRST}{BY_FORM}"),
        When("address", f"{RESPOND_FIRST}{BY_ADDRESS}"),
        When("target", "Ask the user, then call respond_checkpoint."),
        "Show the user checkpoint '{checkpoint}' (present_checkpoint with session_token), "
        "then call respond_checkpoint with the user's option_id.",
    ),
    Code.GATE_UNANSWERED: (
        When("inbox", f"{YIELDS}then: {INBOX}"),
        When("form", f"{YIELDS}orchestrator: respond_checkpoint with any of its options: {BY_FORM}"),
        When("address", f"{YIELDS}orchestrator: respond_checkpoint with any of its options: {BY_ADDRESS}"),
        f"{YIELDS}orchestrator: ask the user, then respond_checkpoint.",
        *shared.ANSWER_FIRST,
    ),
    Code.CHECKPOINT_ALREADY_ANSWERED: (OPEN_NOW, "Go on with the recorded answer."),
    Code.CHECKPOINT_NOT_ACTIVE: (
        "Answer one that is pending: {pending}.",
        When("checkpoint", shared.GO_ON),
        YIELD_FIRST,
    ),
    Code.CHECKPOINT_NOT_YIELDED: YIELD_FIRST,
    Code.CHECKPOINT_STILL_ACTIVE: "Wait until the orchestrator has called respond_checkpoint.",
}


def open_now(gate: str) -> str:
    """Say how to answer the checkpoint that is open, and no other."""
    return OPEN_NOW.format(open=gate)


def next_action(position: Position, outstanding: Sequence[Refusal]) -> str:
    """Say what to do next to an agent that takes up a session."""
    if position.state.visit.activity is None or position.state.finished:
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
    return shared.in_words(refusal, ACTIONS, MESSAGES)
