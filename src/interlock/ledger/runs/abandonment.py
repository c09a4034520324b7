"""Runs that the user gives up outside the agent's call: on all branches, once and for good (rule 35)."""

from __future__ import annotations

from interlock.core.run.channels import Channel
from interlock.core.run.commands import AbandonRun
from interlock.core.run.outcomes import Refusal
from interlock.core.values import cut
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.children import given_up, return_to_parent
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.positions import Positions

MOST_REASON = 2048


@until_recorded
def abandon_run(
    positions: Positions,
    session_id: str,
    run: int,
    channel: Channel,
    reason: str,
    by: str = "",
) -> Position | Refusal:
    """Abandon a run of a session, and return it at its tip, abandoned.

    A run that was abandoned before is returned as it is: its first reason stands. One that has ended
    is refused. A parent that waits for the run is told in the same transaction, and its children that
    still run are abandoned with it; other runs of the session stay where they are, and so does its head.
    """
    position = positions.at_tip(session_id, run)
    if position.state.abandoned is not None:
        return position
    command = AbandonRun(positions.clock(), channel, by, cut(reason.strip(), MOST_REASON, "…"))
    gone = given_up(positions, position, command)
    if isinstance(gone, Refusal):
        return gone
    told = return_to_parent(positions, position.session, position.run.workflow_id, None, command.now)
    positions.append(*gone, *told)
    return positions.position(session_id, position.session.next_node)
