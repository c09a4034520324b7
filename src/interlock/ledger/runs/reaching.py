"""A run where a token leads to now, read for a door that keeps no head of its own."""

from __future__ import annotations

from interlock.ledger.errors import Trouble
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.onward import onward
from interlock.ledger.runs.position import Place, Standing, head_node


def reached(ledger: Ledger, place: Place) -> Standing | Trouble:
    """Read the node of the place, or the one that it has been carried to."""
    with ledger.store.reading() as reader:
        node = onward(reader, place.session_id, head_node(reader, place))
        return ledger.standing(reader, place.session_id, node)
