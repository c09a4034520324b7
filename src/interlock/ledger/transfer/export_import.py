"""Export and import of sessions: only what is trusted is exported, only what is checked is imported."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from interlock import __version__
from interlock.core.run.events import PreferencesChanged
from interlock.core.run.preferences import SessionTerms
from interlock.ledger.decisions.recorded import IMPORTED, imported_key
from interlock.ledger.ids import new_id
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.commit import Commit
from interlock.ledger.log.health import intact, trusted
from interlock.ledger.log.projection import Rows, terms_within
from interlock.ledger.log.rebuild import rebuild, recorded_in, session_rows
from interlock.ledger.log.records import SessionCreated, SessionImported
from interlock.ledger.log.repair import plans_of
from interlock.ledger.retry import until_recorded
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
from interlock.store.protocol import CommitRow, HandleRow, Reader, SessionRow, Store


def export_session(store: Store, session: SessionRow, pins: Pins, now: int) -> Bundle:
    """Bundle what can be trusted of a session, rebuilt from its events."""
    with store.reading() as reader:
        log, plan_of = trusted(reader, session), plans_of(reader, pins)
        rebuilt = rebuild(session.session_id, log.commits)
        workflows: dict[str, str] = {}
        documents: set[str] = set()
        for workflow_hash in dict.fromkeys(run.workflow_hash for run in rebuilt.runs.values()):
            with suppress(PinDamaged):
                workflows[workflow_hash] = pinned(reader.content, workflow_hash).decode()
            if plan := plan_of(workflow_hash):
                documents |= {document.digest for document in plan.workflow.documents}
        texts = {digest: reader.content(digest) for digest in sorted(documents)}
        responses = _intact_responses(reader, rebuilt)
    row, report = rebuilt.session, log.report
    body = Session(
        meta=Meta(
            session_id=row.session_id,
            title=row.title,
            created_at=row.created_at,
            updated_at=row.updated_at,
            parent_session=row.parent_session,
            health=report.health,
            health_reason=report.reason,
            events=report.events,
            lost_events=max(report.total - report.events, 0),
        ),
        graph=graph_of(rebuilt),
        commits=tuple(map(bundled, log.commits)),
        responses=responses,
        pinned_workflows=workflows,
        documents={digest: text.decode() for digest, text in texts.items() if text is not None},
    )
    return Bundle(VERSION, new_id("bundle"), now, Producer(__version__), manifest(body), body)


def _intact_responses(reader: Reader, rebuilt: Rows) -> tuple[BundledResponse, ...]:
    """Return the recorded responses that are still what their events say."""
    responses: list[BundledResponse] = []
    for node, row in recorded_in(rebuilt):
        assert row.attempt is not None
        stored = reader.recorded(row.session_id, node, row.attempt)
        if stored is not None and intact(stored.response, row.response_digest):
            responses.append(BundledResponse(node, row.attempt, stored.response.decode()))
    return tuple(responses)


@until_recorded
def import_bundle(ledger: Ledger, bundle: Bundle) -> SessionRow:
    """Store a checked bundle with a handle of its own; under a new id where its id is taken.

    The log says from where on it is this store's own (rule 27), and which of its terms the importer's
    tighten (rule 29).
    """
    body, owner, now, terms = bundle.session, ledger.owner, ledger.clock(), ledger.session_terms()
    with ledger.store.writing() as tx:
        session_id = body.meta.session_id
        if tx.session(session_id) is not None or tx.tombstone(session_id) is not None:
            session_id = new_id("sess")
        rebuilt = rebuilt_as(body, session_id)
        rebuilt.session = replace(rebuilt.session, owner=owner)
        for key, text in body.pinned_workflows.items():
            tx.add_content(key, seal(text.encode()))
        for key, text in body.documents.items():
            tx.add_content(key, text.encode())
        responses = {(response.node, response.attempt): response.body.encode() for response in body.responses}
        commits = commit_rows(body, session_id)
        commit = Commit(rebuilt, owner, now)
        commit.add(SessionImported(owner, now, rebuilt.session.head_index))
        _tighten(commit, commits, terms)
        times = sum((row.key or "").startswith(IMPORTED) for row in commits)
        commits.append(commit.finish(imported_key(times)).commit)
        tx.replace_session(session_rows(rebuilt, commits, responses))
        tx.add_handle(HandleRow(new_handle(), session_id))
    return rebuilt.session


def _tighten(commit: Commit, commits: Sequence[CommitRow], terms: SessionTerms) -> None:
    """Record the tighter terms of both at every node that can be continued, and for what begins later."""
    rows = commit.rows
    first = (entry.event for row in commits for entry in entries_of(row))
    created = next(event for event in first if isinstance(event, SessionCreated))
    later = terms_within(created, rows.modes)
    if (tighter := later.tightened(terms)) != later:
        commit.add(PreferencesChanged.to(tighter, "server"))
    for number, state in rows.states.items():
        tighter = state.terms.tightened(terms)
        if not state.finished and tighter != state.terms:
            commit.add(PreferencesChanged.to(tighter, "server"), run=rows.nodes[number].run, node=number)
