"""Traces: the calls of a session as the log holds them, whole or in the segments that trace tokens name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.core.events import ChildReturned, ChildStarted
from interlock.core.values import Json
from interlock.ledger.chain import read_fact
from interlock.ledger.ledger import Ledger, Place
from interlock.ledger.records import CallTraced
from interlock.ledger.trouble import Trouble
from interlock.store.protocol import EventRow, Reader

KINDS = ("call_traced", "child_started", "child_returned")
MOST = 1000


def whole(reader: Reader, session_id: str, workflow_id: str) -> dict[str, Json]:
    """The newest calls of a session, and how many older ones were left out."""
    rows = list(reader.events(session_id, kinds=KINDS, newest_first=True, limit=MOST + 1))
    events: list[Json] = [_event(row, workflow_id) for row in reversed(rows[:MOST])]
    body: dict[str, Json] = {"traceId": session_id, "source": "log", "event_count": len(events)}
    if len(rows) > MOST:
        body["truncated"] = f"the newest {MOST} events are shown"
    return {**body, "events": events}


def segments(
    ledger: Ledger, reader: Reader, session_id: str, workflow_id: str, tokens: Sequence[str]
) -> dict[str, Json]:
    """The calls that the tokens name; a token that is refused is named by its place in the list."""
    events: list[Json] = []
    errors: list[Json] = []
    for number, token in enumerate(tokens):
        place = ledger.open(token, "trc")
        if isinstance(place, Trouble):
            errors.append({"index": number, "code": place.code, "error": place.message})
        else:
            events += [_event(row, workflow_id) for row in _segment(reader, place)]
    body: dict[str, Json] = {"traceId": session_id, "source": "tokens", "event_count": len(events)}
    return {**body, "events": events, **({"token_errors": errors} if errors else {})}


def _segment(reader: Reader, place: Place) -> Iterator[EventRow]:
    """From the entry of a visit to the call that left it; the call that entered belongs to the one before."""
    first = place.node
    rows = reader.events(place.session_id, start=first, kinds=KINDS)
    for number, row in enumerate(rows):
        if row.index > place.attempt:
            return
        if number == 0 and first > 0 and _enters(row):
            continue
        yield row


def _enters(row: EventRow) -> bool:
    fact = read_fact(row)
    return isinstance(fact, CallTraced) and fact.tool == "next_activity"


def _event(row: EventRow, workflow_id: str) -> dict[str, Json]:
    fact = read_fact(row)
    match fact:
        case CallTraced():
            return _call(row, fact, workflow_id)
        case ChildStarted():
            body: dict[str, Json] = {"workflow": fact.workflow, "session": fact.session}
            return {"name": "child_started", "ts": row.recorded_at // 1000, "about": body}
        case ChildReturned():
            returned: dict[str, Json] = {"workflow": fact.workflow, "session": fact.session}
            about = {**returned, "outcome": fact.outcome, "returned": list(fact.sets)}
            return {"name": "child_returned", "ts": row.recorded_at // 1000, "about": about}
        case _:
            return {"name": row.kind, "ts": row.recorded_at // 1000}


def _call(row: EventRow, fact: CallTraced, workflow_id: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "spanId": row.index,
        "name": fact.tool,
        "ts": fact.at // 1000,
        "ms": fact.ms,
        "s": "ok" if fact.ok else "error",
        "wf": workflow_id,
        "act": fact.activity or "",
        "aid": fact.agent,
    }
    if fact.about:
        body["about"] = fact.about
    if fact.error:
        body["err"] = fact.error
    if fact.warnings:
        body["vw"] = list(fact.warnings)
    return body
