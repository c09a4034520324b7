"""The refusals of the gated surface, where all checkpoints of an activity are pending at once."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.run.outcomes import Code, Refusal
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import INBOX, Words
from interlock.surfaces.shared import session_errors as shared
from interlock.surfaces.shared.sentences import Table, When

RESPOND = "Call respond_checkpoint with checkpoint_id: {gates}."
ACTIONS: Table = {
    **shared.ACTIONS,
    Code.DECISION_PENDING: RESPOND,
    Code.GATE_UNANSWERED: (When("inbox", INBOX), RESPOND, *shared.ANSWER_FIRST),
}


def next_action(position: Position, outstanding: Sequence[Refusal]) -> str:
    """Say what to do next to an agent that takes up a session."""
    current = position.state.activity
    if current is None or position.state.finished:
        return shared.entry_action(position)
    again = f"Call next_activity with activity_id '{current}' to read the activity again, and do its steps."
    return f"{again} Before you leave it: {shared.actions(outstanding, words) or 'nothing is missing.'}"


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    return shared.in_words(refusal, ACTIONS)
