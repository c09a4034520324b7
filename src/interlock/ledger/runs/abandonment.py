"""Runs that the user gives up outside the agent's call: on all branches, once and for good (rule 35)."""

from __future__ import annotations

from interlock.core.engine.decide import decide
from interlock.core.run.commands import AbandonRun
from interlock.core.run.events import Channel
from interlock.core.run.outcomes import Refusal
from interlock.core.values import cut
from interlock.ledger.errors import LedgerError, unknown_session
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.records import HeadMoved
from interlock.ledger.retry import StoreConflict, until_recorded
from interlock.ledger.runs.children import return_to_parent
from interlock.ledger.runs.position import Position, tip_of
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
) -> Position | Refusal | LedgerError:
    """Abandon a run of a session, and return it at its tip, abandoned.

    A run that was abandoned before is returned as it is: its first reason stands. One that has ended
    is refused. A parent that waits for the run is told in the same transaction; other runs of the
    session stay where they are, and so does its head.
    """
    with positions.store.reading() as reader:
        session, row = reader.session(session_id), reader.run(session_id, run)
    if session is None or row is None:
        return unknown_session()
    position = positions.position(session_id, tip_of(session, row))
    if isinstance(position, LedgerError) or position.state.abandoned is not None:
        return position
    if not position.is_tip:
        raise StoreConflict(session_id)  # it has advanced between the two reads
    commit = Commit(position.rows(), positions.principal, positions.clock())
    command = AbandonRun(commit.now, channel, by, cut(reason.strip(), MOST_REASON, "…"))
    decided = decide(position.plan, position.state, command)
    if isinstance(decided, Refusal):
        return decided
    node = commit.add_node(run, position.node.node, decided.events, "advanced", decided.awaited)
    head = position.session
    if head.head_run is not None and head.head_run != run and head.head_node is not None:
        commit.add(HeadMoved(head.head_run, head.head_node), run=head.head_run)
    told = return_to_parent(positions, head, position.run.workflow_id, decided.state, commit.now)
    positions.append(commit.finish(), *told)
    return positions.position(session_id, node)
