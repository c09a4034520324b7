"""Traces as the JSON of the session surfaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from interlock.core.run.events import ChildReturned, ChildStarted
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError, unknown_session
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.records import CallTraced
from interlock.ledger.queries.traces import MOST, Traced, trace_segment, whole_trace
from interlock.ledger.runs.position import Position


def whole_trace_json(ledger: Ledger, position: Position) -> dict[str, Json]:
    """Return the newest calls of a session, and whether older ones were left out."""
    trace = whole_trace(ledger, position.session)
    body = _body(position.session_id, "log", _events(trace.events, position.run.workflow_id))
    return {**body, "truncated": f"the newest {MOST} events are shown"} if trace.cut else body


def trace_segments_json(ledger: Ledger, position: Position, tokens: Sequence[str]) -> dict[str, Json]:
    """Return the calls that the tokens name; a refused token is named by its position in the list."""
    events: list[Json] = []
    errors: list[Json] = []
    for index, token in enumerate(tokens):
        try:
            events += _events(_segment(ledger, position, token), position.run.workflow_id)
        except LedgerError as error:
            errors.append({"index": index, "code": error.code, "error": error.message})
    body = _body(position.session_id, "tokens", events)
    return {**body, "token_errors": errors} if errors else body


def _segment(ledger: Ledger, position: Position, token: str) -> Iterable[Traced]:
    pointer = ledger.read_token(token, "trc")
    loaded = ledger.load(pointer.handle)
    if loaded is None:
        raise unknown_session()
    if loaded.session.session_id != position.session_id:
        raise LedgerError("TOKEN_SCOPE_MISMATCH", "The trace token belongs to another session.")
    return trace_segment(ledger, position.session_id, pointer.node, pointer.attempt)


def _body(session_id: str, source: str, events: list[Json]) -> dict[str, Json]:
    return {"traceId": session_id, "source": source, "event_count": len(events), "events": events}


def _events(trace: Iterable[Traced], workflow_id: str) -> list[Json]:
    events: list[Json] = []
    for traced in trace:
        match traced.event:
            case CallTraced() as call:
                events.append(_call(traced.span, call, workflow_id))
            case ChildStarted() as child:
                started: dict[str, Json] = {"workflow": child.workflow, "session": child.session}
                events.append({"name": "child_started", "ts": traced.at // 1000, "about": started})
            case ChildReturned() as child:
                returned: dict[str, Json] = {
                    "workflow": child.workflow,
                    "session": child.session,
                    "outcome": child.outcome,
                    "returned": list(child.sets),
                }
                events.append({"name": "child_returned", "ts": traced.at // 1000, "about": returned})
            case _:
                assert_never(traced.event)
    return events


def _call(span: str, call: CallTraced, workflow_id: str) -> dict[str, Json]:
    body: dict[str, Json] = {
        "spanId": span,
        "name": call.tool,
        "ts": call.at // 1000,
        "ms": call.ms,
        "s": "ok" if call.ok else "error",
        "wf": workflow_id,
        "act": call.activity or "",
        "aid": call.agent,
    }
    if call.about:
        body["about"] = call.about
    if call.error:
        body["err"] = call.error
    if call.warnings:
        body["vw"] = list(call.warnings)
    return body
