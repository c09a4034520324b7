"""Traces: the calls of a session as the log holds them, whole or in the segments that trace tokens name."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.ledger.log.chain import read_event
from interlock.ledger.log.records import CallTraced, LogEntry
from interlock.ledger.runs.position import Target
from interlock.store.protocol import EventRow, Reader

KINDS = ("call_traced", "child_started", "child_returned")
MOST = 1000


class Traced(Struct, frozen=True):
    """One event of a trace, and where and when it stands in the log."""

    index: int
    at: int
    event: LogEntry


class Trace(Struct, frozen=True):
    """The newest events of a session's trace, oldest first; `cut` says that there are older ones."""

    events: tuple[Traced, ...]
    cut: bool = False


def whole(reader: Reader, session_id: str) -> Trace:
    """The newest calls of a session."""
    rows = list(reader.events(session_id, kinds=KINDS, newest_first=True, limit=MOST + 1))
    return Trace(tuple(_traced(row) for row in reversed(rows[:MOST])), len(rows) > MOST)


def segment(reader: Reader, target: Target) -> Iterator[Traced]:
    """From the entry of a visit to the call that left it; the call that entered belongs to the one before."""
    first = target.node
    for number, row in enumerate(reader.events(target.session_id, start=first, kinds=KINDS)):
        if row.index > target.attempt:
            return
        traced = _traced(row)
        if number > 0 or first == 0 or not _enters(traced.event):
            yield traced


def _traced(row: EventRow) -> Traced:
    return Traced(row.index, row.recorded_at, read_event(row))


def _enters(event: LogEntry) -> bool:
    return isinstance(event, CallTraced) and event.tool == "next_activity"
