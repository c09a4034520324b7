"""Taking sessions out of a store and into another: what is trusted goes out, what is checked comes in."""

from __future__ import annotations

from msgspec.structs import replace

from interlock import __version__
from interlock.ledger.decisions.recorded import IMPORTED, imported_key
from interlock.ledger.ids import new_id
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.health import Trusted, intact, trusted
from interlock.ledger.log.projection import Rows
from interlock.ledger.log.rebuild import rebuild, recorded_in, session_rows
from interlock.ledger.log.records import SessionImported
from interlock.ledger.log.repair import plans_of
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins, pinned, seal
from interlock.ledger.tokens.tokens import new_handle
from interlock.ledger.transfer.bundle import (
    VERSION,
    Bundle,
    BundledResponse,
    Meta,
    Producer,
    Session,
    bundled,
    commit_rows,
    graph_of,
    manifest,
    rebuilt_as,
)
from interlock.store.protocol import HandleRow, Reader, SessionRow, Store


def export_session(store: Store, session: SessionRow, pins: Pins, now: int) -> Bundle:
    """Bundle what can be trusted of a session, rebuilt from its events."""
    with store.reading() as reader:
        return _bundle(reader, session, pins, now)


def _bundle(reader: Reader, session: SessionRow, pins: Pins, now: int) -> Bundle:
    log, plan_of = trusted(reader, session), plans_of(reader, pins)
    made = rebuild(session.session_id, log.commits)
    hashes = dict.fromkeys(run.workflow_hash for run in made.runs.values())
    plans = [plan for workflow_hash in hashes if (plan := plan_of(workflow_hash))]
    documents = {text.digest for plan in plans for text in plan.workflow.documents}
    body = Session(
        meta=_meta(log, made),
        graph=graph_of(made),
        commits=tuple(map(bundled, log.commits)),
        responses=tuple(_responses(reader, made)),
        pinned_workflows={key: text for key in hashes if (text := _pin(reader, key)) is not None},
        documents={key: text for key in sorted(documents) if (text := _text(reader, key)) is not None},
    )
    return Bundle(VERSION, new_id("bundle"), now, Producer(__version__), manifest(body), body)


def _meta(log: Trusted, made: Rows) -> Meta:
    row, report = made.session, log.report
    return Meta(
        session_id=row.session_id,
        title=row.title,
        created_at=row.created_at,
        updated_at=row.updated_at,
        parent_session=row.parent_session,
        health=report.health,
        health_reason=report.reason,
        events=report.events,
        lost_events=max(report.total - report.events, 0),
    )


def _responses(reader: Reader, made: Rows) -> list[BundledResponse]:
    """The recorded responses that are still what their events say."""
    responses: list[BundledResponse] = []
    for node, row in recorded_in(made):
        assert row.attempt is not None
        stored = reader.recorded(row.session_id, node, row.attempt)
        if stored is not None and intact(stored.response, row.response_digest):
            responses.append(BundledResponse(node, row.attempt, stored.response.decode()))
    return responses


def _pin(reader: Reader, workflow_hash: str) -> str | None:
    try:
        return pinned(reader.content, workflow_hash).decode()
    except PinDamaged:
        return None


def _text(reader: Reader, digest: str) -> str | None:
    body = reader.content(digest)
    return body.decode() if body is not None else None


def import_bundle(store: Store, bundle: Bundle, owner: str, now: int) -> SessionRow:
    """Store a checked bundle with a handle of its own; under a new id where its id is taken.

    The log says from where on it is this store's own (rule 27).
    """
    body = bundle.session
    with store.writing() as tx:
        taken = (
            tx.session(body.meta.session_id) is not None or tx.removed_at(body.meta.session_id) is not None
        )
        made = rebuilt_as(body, new_id("sess") if taken else body.meta.session_id)
        made.session = replace(made.session, owner=owner)
        session_id = made.session.session_id
        for key, text in body.pinned_workflows.items():
            tx.add_content(key, seal(text.encode()))
        for key, text in body.documents.items():
            tx.add_content(key, text.encode())
        responses = {(response.node, response.attempt): response.body.encode() for response in body.responses}
        commits = commit_rows(body, session_id)
        commit = Commit(made, now)
        commit.add(SessionImported(owner, now, made.session.head_index))
        times = sum((row.key or "").startswith(IMPORTED) for row in commits)
        commits.append(commit.finish(imported_key(times)).commit)
        tx.replace_session(session_rows(made, commits, responses))
        tx.add_handle(HandleRow(new_handle(), session_id))
    return made.session
