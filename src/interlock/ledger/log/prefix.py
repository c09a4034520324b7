"""The part of a log that can be trusted: its valid events, up to the end of a whole command (rule 44).

Half a command must not be gone on from, because the events of the next one would mix with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from interlock.ledger.log.chain import read_event
from interlock.ledger.log.health import ChainReport, examine_events
from interlock.ledger.log.records import (
    AdvanceRecorded,
    CallTraced,
    DecisionRecorded,
    NodeCreated,
    ObservationRecorded,
    OutputAppended,
    RepairRecorded,
    ResponseRestored,
    SessionCreated,
)
from interlock.store.protocol import EventRow, Reader, SessionRow

ALONE = (SessionCreated, ObservationRecorded, DecisionRecorded, CallTraced, RepairRecorded, ResponseRestored)


class Trusted(Struct, frozen=True):
    """The verdict on a log, and the events that can be gone on from."""

    report: ChainReport
    events: tuple[EventRow, ...]

    @property
    def whole(self) -> bool:
        return self.report.health == "healthy"


def trusted(reader: Reader, session: SessionRow) -> Trusted:
    """Read a session's log as far as it can be believed."""
    stored = tuple(reader.events(session.session_id))
    report = examine_events(stored, session)
    valid = stored[: report.valid]
    return Trusted(report, valid if report.health == "healthy" else valid[: whole_commands(valid)])


def whole_commands(events: Sequence[EventRow]) -> int:
    """How many of these events belong to commands that are there to their end."""
    ended, created, begun = 0, set[int](), set[int]()
    for count, row in enumerate(events, 1):
        if _ends(row, created, begun):
            ended = count
    return ended


def _ends(row: EventRow, created: set[int], begun: set[int]) -> bool:
    event = read_event(row)
    match event:
        case NodeCreated():
            created.add(event.node)
            begun.discard(event.node)
            return event.edge == "root"
        case AdvanceRecorded():
            return not begun
        case OutputAppended():
            return event.node < 0
        case _ if isinstance(event, ALONE):
            return not begun
        case _ if row.node is not None and row.node not in created:
            begun.add(row.node)
            return False
        case _:
            return row.node is not None and not begun
