"""A run where a token leads to now, read for a surface that keeps no head of its own."""

from __future__ import annotations

from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.onward import onward
from interlock.ledger.runs.position import Position, Target, head_node


def reached(ledger: Ledger, target: Target) -> Position | LedgerError:
    """Read the node of the place, or the one that it has been carried to."""
    with ledger.store.reading() as reader:
        node = onward(reader, target.session_id, head_node(reader, target))
        return ledger.position(reader, target.session_id, node)
