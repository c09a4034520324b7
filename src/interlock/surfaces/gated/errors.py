"""The refusals of the gated surface, where all checkpoints of an activity are pending at once."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.run.outcomes import Code, Refusal
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import BY_ADDRESS, BY_FORM, INBOX, Words
from interlock.surfaces.shared import session_errors as shared
from interlock.surfaces.shared.sentences import Table, When

RESPOND = "Call respond_checkpoint with checkpoint_id: {gates}."
RESPONDS: tuple[str | When, ...] = (
    When("form", f"{RESPOND} Send any of its options: {BY_FORM}"),
    When("address", f"{RESPOND} Send any of its options: {BY_ADDRESS}"),
    f"{RESPOND} Ask the user for the option.",
)
ACTIONS: Table = {
    **shared.ACTIONS,
    Code.DECISION_PENDING: RESPONDS,
    Code.GATE_UNANSWERED: (When("inbox", INBOX), *RESPONDS, *shared.ANSWER_FIRST),
}


def next_action(position: Position, outstanding: Sequence[Refusal]) -> str:
    """Say what to do next to an agent that takes up a session."""
    current = position.state.visit.activity
    if current is None or position.state.finished:
        return shared.entry_action(position)
    again = f"Call next_activity with activity_id '{current}' to read the activity again, and do its steps."
    return f"{again} Before you leave it: {shared.actions(outstanding, words) or 'nothing is missing.'}"


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words of this surface."""
    return shared.in_words(refusal, ACTIONS)
