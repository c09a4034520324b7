"""Taking sessions out of a store and into another: what is trusted goes out, what is checked comes in."""

from __future__ import annotations

from msgspec.structs import replace

from interlock import __version__
from interlock.ledger.ids import new_id
from interlock.ledger.log.health import intact
from interlock.ledger.log.prefix import Trusted, trusted
from interlock.ledger.log.rebuild import Rebuilt, plans_of, rebuild, restore
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins, pinned, seal
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.bundle import (
    VERSION,
    Bundle,
    BundledResponse,
    Meta,
    Producer,
    Session,
    event_rows,
    graph_of,
    logged,
    manifest,
    rebuilt_as,
)
from interlock.store.protocol import HandleRow, Reader, SessionRow, Writer


def export_session(reader: Reader, session: SessionRow, pins: Pins, now: int) -> Bundle:
    """Bundle what can be trusted of a session, rebuilt from its events."""
    log, plan_of = trusted(reader, session), plans_of(reader, pins)
    made = rebuild(session.session_id, log.events, plan_of)
    hashes = dict.fromkeys(run.workflow_hash for run in made.runs)
    plans = [plan for one in hashes if (plan := plan_of(one))]
    documents = {text.digest for plan in plans for text in plan.workflow.documents}
    body = Session(
        meta=_meta(log, made),
        graph=graph_of(made),
        events=tuple(map(logged, log.events)),
        responses=tuple(_responses(reader, made)),
        pinned_workflows={key: text for key in hashes if (text := _pin(reader, key)) is not None},
        documents={key: text for key in sorted(documents) if (text := _text(reader, key)) is not None},
    )
    return Bundle(VERSION, new_id("bundle"), now, Producer(__version__), manifest(body), body)


def _meta(log: Trusted, made: Rebuilt) -> Meta:
    row, report, kept = made.session, log.report, len(log.events)
    return Meta(
        session_id=row.session_id,
        title=row.title,
        created_at=row.created_at,
        updated_at=row.updated_at,
        parent_session=row.parent_session,
        health=report.health,
        health_reason=report.reason,
        events=kept,
        lost_events=max(report.total - kept, 0),
    )


def _responses(reader: Reader, made: Rebuilt) -> list[BundledResponse]:
    """The recorded responses that are still what their events say."""
    found = []
    for one in made.attempts:
        row = reader.attempt(one.session_id, one.node, one.attempt)
        if row is not None and intact(row.response, one.response_digest):
            found.append(BundledResponse(one.node, one.attempt, row.response.decode()))
    return found


def _pin(reader: Reader, workflow_hash: str) -> str | None:
    try:
        return pinned(reader, workflow_hash).decode()
    except PinDamaged:
        return None


def _text(reader: Reader, digest: str) -> str | None:
    body = reader.content(digest)
    return body.decode() if body is not None else None


def import_bundle(tx: Writer, bundle: Bundle, owner: str) -> SessionRow:
    """Store a checked bundle with a handle of its own; under a new id where its id is taken."""
    body = bundle.session
    given = body.meta.session_id
    taken = tx.session(given) is not None or tx.removed_at(given) is not None
    made = rebuilt_as(body, new_id("sess") if taken else given)
    session = replace(made.session, owner=owner)
    for key, text in body.pinned_workflows.items():
        tx.add_content(key, seal(text.encode()))
    for key, text in body.documents.items():
        tx.add_content(key, text.encode())
    tx.add_session(session)
    tx.add_handle(HandleRow(new_handle(), session.session_id))
    tx.add_events(event_rows(body, session.session_id))
    restore(tx, made, {(one.node, one.attempt): one.body.encode() for one in body.responses})
    return session
