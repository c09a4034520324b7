"""Traces: the calls of a session as the log holds them, whole or in the segments that trace tokens name."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.ledger.log.chain import read_fact
from interlock.ledger.log.records import CallTraced, LogEntry
from interlock.ledger.runs.position import Place
from interlock.store.protocol import EventRow, Reader

KINDS = ("call_traced", "child_started", "child_returned")
MOST = 1000


class Traced(Struct, frozen=True):
    """One fact of a trace, and where and when it stands in the log."""

    index: int
    at: int
    fact: LogEntry


class Trace(Struct, frozen=True):
    """The newest facts of a session's trace, oldest first; `cut` says that there are older ones."""

    events: tuple[Traced, ...]
    cut: bool = False


def whole(reader: Reader, session_id: str) -> Trace:
    """The newest calls of a session."""
    rows = list(reader.events(session_id, kinds=KINDS, newest_first=True, limit=MOST + 1))
    return Trace(tuple(_traced(row) for row in reversed(rows[:MOST])), len(rows) > MOST)


def segment(reader: Reader, place: Place) -> Iterator[Traced]:
    """From the entry of a visit to the call that left it; the call that entered belongs to the one before."""
    first = place.node
    for number, row in enumerate(reader.events(place.session_id, start=first, kinds=KINDS)):
        if row.index > place.attempt:
            return
        traced = _traced(row)
        if number > 0 or first == 0 or not _enters(traced.fact):
            yield traced


def _traced(row: EventRow) -> Traced:
    return Traced(row.index, row.recorded_at, read_fact(row))


def _enters(fact: LogEntry) -> bool:
    return isinstance(fact, CallTraced) and fact.tool == "next_activity"
