"""Traces as the session surfaces show them."""

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
from interlock.ledger.tokens.tokens import Pointer


def whole(ledger: Ledger, position: Position) -> dict[str, Json]:
    """The newest calls of a session, and whether older ones were left out."""
    trace = whole_trace(ledger, position.session)
    body = _body(position.session_id, "log", _events(trace.events, position.run.workflow_id))
    return {**body, "truncated": f"the newest {MOST} events are shown"} if trace.cut else body


def segments(ledger: Ledger, session_id: str, workflow_id: str, tokens: Sequence[str]) -> dict[str, Json]:
    """The calls that the tokens name; a token that is refused is named by its position in the list."""
    events: list[Json] = []
    errors: list[Json] = []
    for number, token in enumerate(tokens):
        pointer = ledger.read_token(token, "trc")
        named = ledger.store.load(pointer.handle) if isinstance(pointer, Pointer) else pointer
        if isinstance(pointer, LedgerError) or named is None or isinstance(named, LedgerError):
            error = pointer if isinstance(pointer, LedgerError) else unknown_session()
            errors.append({"index": number, "code": error.code, "error": error.message})
            continue
        segment = trace_segment(ledger, named.session.session_id, pointer.node, pointer.attempt)
        events += _events(segment, workflow_id)
    body = _body(session_id, "tokens", events)
    return {**body, "token_errors": errors} if errors else body


def _body(session_id: str, source: str, events: list[Json]) -> dict[str, Json]:
    return {"traceId": session_id, "source": source, "event_count": len(events), "events": events}


def _events(traced: Iterable[Traced], workflow_id: str) -> list[Json]:
    return [_event(one, workflow_id) for one in traced]


def _event(one: Traced, workflow_id: str) -> dict[str, Json]:
    match one.event:
        case CallTraced() as call:
            return _call(one.span, call, workflow_id)
        case ChildStarted() as child:
            body: dict[str, Json] = {"workflow": child.workflow, "session": child.session}
            return {"name": "child_started", "ts": one.at // 1000, "about": body}
        case ChildReturned() as child:
            returned: dict[str, Json] = {"workflow": child.workflow, "session": child.session}
            about = {**returned, "outcome": child.outcome, "returned": list(child.sets)}
            return {"name": "child_returned", "ts": one.at // 1000, "about": about}
        case _:
            assert_never(one.event)


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
