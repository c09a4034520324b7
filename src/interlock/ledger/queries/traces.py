"""Traces: the calls of a session, whole or in the segments that trace tokens name.

Progress calls are events of the log. Reading calls are kept outside the chain and written without waiting
for the disk: a crash may lose the last second of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.run.events import ChildReturned, ChildStarted
from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import CallTraced
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import SessionRow, TraceRow

MOST = 1000

TraceEvent: TypeAlias = CallTraced | ChildStarted | ChildReturned

_encode = msgspec.json.Encoder().encode
_call = LazyDecoder(CallTraced)


class Traced(Struct, frozen=True):
    """One event of a trace. `index` is its position in the log, or that of the head it was made on.

    `ordinal` counts the reading calls on the same head, from 1; events of the log have 0.
    """

    index: int
    at: int
    event: TraceEvent
    ordinal: int = 0

    @property
    def span(self) -> str:
        """An id of the call that is unique in its session."""
        return f"{self.index}.{self.ordinal}" if self.ordinal else str(self.index)


class Trace(Struct, frozen=True):
    """The newest events of a session's trace, oldest first; `cut` says that there are older ones."""

    events: tuple[Traced, ...]
    cut: bool = False


def keep_trace(positions: Positions, session: SessionRow, call: CallTraced) -> None:
    """Keep the trace of a reading call."""
    positions.unwritten.append(TraceRow(session.session_id, session.head_index, call.at, _encode(call)))


def whole_trace(positions: Positions, session: SessionRow) -> Trace:
    """Return the newest calls of a session."""
    positions.write_traces()
    events = list(_between(positions, session.session_id, 0, session.head_index))
    return Trace(tuple(events[-MOST:]), len(events) > MOST)


def trace_segment(positions: Positions, session_id: str, first: int, last: int) -> list[Traced]:
    """Return the calls of one visit; the call that entered the activity belongs to the visit before."""
    positions.write_traces()
    events = [traced for traced in _between(positions, session_id, first, last) if traced.index >= first]
    if first == 0 or not events:
        return events
    entering = events[0].event
    is_entry = isinstance(entering, CallTraced) and entering.tool == "next_activity"
    return events[1:] if is_entry else events


def _between(positions: Positions, session_id: str, first: int, last: int) -> Iterator[Traced]:
    """Merge what the log and the traces of reads hold, in the order in which it happened.

    The command that holds the event `last` belongs to it as a whole.
    """
    with positions.store.reading() as reader:
        reads = reader.traces(session_id, first, last, MOST + 1)
        commits = (row for row in reader.commits(session_id, start=first) if row.first <= last)
        chained = [
            Traced(row.index, row.at, row.event)
            for row in logged(commits)
            if isinstance(row.event, (CallTraced, ChildStarted, ChildReturned))
        ]
    ordinals: Counter[int] = Counter()
    for row in reads:
        ordinals[row.after_index] += 1
        event = _call.decode(row.body)
        chained.append(Traced(row.after_index, row.at, event, ordinals[row.after_index]))
    yield from sorted(chained, key=lambda traced: (traced.index, traced.ordinal))
