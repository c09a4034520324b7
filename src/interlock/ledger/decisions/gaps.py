"""Gaps that the user resolves: what was decided without the user is closed by nobody else (rule 31)."""

from __future__ import annotations

from interlock.core.run.channels import Channel
from interlock.core.run.commands import ResolveGap
from interlock.core.run.outcomes import Refusal
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.commit import Commit
from interlock.ledger.retry import until_recorded
from interlock.ledger.runs.position import Position


@until_recorded
def resolve_gap(
    ledger: Ledger, session_id: str, run: int, number: int, summary: str, channel: Channel
) -> Position:
    """Close an open gap on the preferred branch of a run, and return the run after it.

    On execution an agent goes on from the node that it holds, which a node of the user's would fork; there
    the run must have ended.
    """
    position = ledger.at_tip(session_id, run)
    state, run_id = position.state, position.run.run_id
    if not any(gap.number == number and not gap.resolved for gap in state.gaps.newest):
        raise LedgerError("NOT_FOUND", f"Run {run_id} has no open gap {number}.", "See `interlock gaps`.")
    if not state.finished and POLICIES[position.run.surface].exits == "taken":
        message = f"Run {run_id} has not ended; its agent is at work."
        raise LedgerError("CONFLICT", message, "Resolve its gaps when it has ended.")
    decided = position.decide_unasked(ResolveGap(channel, number, summary))
    if isinstance(decided, Refusal):
        message = f"Run {run_id} was abandoned; its gaps stay as they are."
        raise LedgerError("CONFLICT", message, "Nothing can be resolved in it.")
    commit = Commit(position.rows(), ledger.principal, ledger.clock())
    held = decided.state.visit.open is not None
    commit.add_node(position.run.run, position.node.node, decided, held=held)
    commit.keep_head(position.run.run)
    ledger.append(commit.finish())
    return ledger.position(session_id, position.session.next_node)
