"""What each page of the console shows, as values: the page draws them, scripts read them as JSON."""

from __future__ import annotations

from interlock.console.lanes import LaneTree, in_lanes
from interlock.core.values import Json
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.decisions.modes import ModeLine, session_modes
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.log_lines import event_lines
from interlock.ledger.queries.search import find
from interlock.ledger.queries.status import (
    SessionStatus,
    Shown,
    find_session,
    notes_of,
    ref_of,
    session_status,
)
from interlock.ledger.queries.story import RunStory, story_of
from interlock.ledger.queries.tree import trees_of

MOST_EVENTS = 200


class SessionPage(Shown, frozen=True):
    """A session: its notes, its runs, and one run as a tree and as a story of one branch."""

    status: SessionStatus
    notes: tuple[str, ...]
    modes: tuple[ModeLine, ...]
    trees: tuple[LaneTree, ...]
    run_id: str
    story: RunStory | None
    questions: tuple[WaitingQuestion, ...]


class EventRow(Shown, frozen=True):
    """One event with its summary and its JSON."""

    index: int
    kind: str
    at: int
    run: int | None
    node: int | None
    summary: str
    event: dict[str, Json]


class EventsPage(Shown, frozen=True):
    """Events of a session, newest first. `start` is where the next older ones end; 0 means no more."""

    session_id: str
    total: int
    start: int
    events: tuple[EventRow, ...]


class SearchHit(Shown, frozen=True):
    """A session that a search found, and why."""

    session_id: str
    ref: str
    title: str
    workflow_id: str
    status: str
    why: str
    snippet: str
    updated_at: int


class SearchPage(Shown, frozen=True):
    """The best sessions for some words."""

    query: str
    hits: tuple[SearchHit, ...]


def session_page(
    ledger: Ledger, ref: str, run_id: str, node: int | None, questions: tuple[WaitingQuestion, ...] = ()
) -> SessionPage | LedgerError:
    """Return a session with one of its runs; the one that work continues with if none is named."""
    session = find_session(ledger, ref)
    if isinstance(session, LedgerError):
        return session
    notes = notes_of(ledger, session)
    trees = trees_of(ledger, session)
    head = next((tree for tree in trees if session.head_node in {each.node for each in tree.nodes}), None)
    shown = next((tree for tree in trees if tree.run_id == run_id), head)
    if run_id and (shown is None or shown.run_id != run_id):
        message = f"Session {ref_of(session.session_id)} has no run {run_id}."
        return LedgerError("NOT_FOUND", message, "Choose one of its runs.")
    story = story_of(ledger, session, shown.run_id, node) if shown is not None else None
    if isinstance(story, LedgerError):
        return story
    return SessionPage(
        status=session_status(ledger, session),
        notes=() if isinstance(notes, LedgerError) else notes.session,
        modes=session_modes(ledger, session),
        trees=tuple(in_lanes(tree, story.tip if story and tree is shown else None) for tree in trees),
        run_id=shown.run_id if shown else "",
        story=story,
        questions=questions,
    )


def events_page(
    ledger: Ledger, ref: str, before: int | None, kinds: tuple[str, ...]
) -> EventsPage | LedgerError:
    """Return the events before an index, newest first."""
    session = find_session(ledger, ref)
    if isinstance(session, LedgerError):
        return session
    total = session.head_index + 1
    end = total if before is None else min(before, total)
    start = max(end - MOST_EVENTS, 0)
    rows = [
        EventRow(line.index, line.kind, line.at, line.run, line.node, line.summary, dict(line.event))
        for line in event_lines(ledger, session.session_id, kinds, start=start, end=end)
    ]
    return EventsPage(session.session_id, total, start, tuple(reversed(rows)))


def search_page(ledger: Ledger, query: str) -> SearchPage:
    """Search everything: ids, titles, notes, workflows, branches and commits."""
    if not query.strip():
        return SearchPage(query, ())
    hits = (
        SearchHit(
            session_id=hit.session.session_id,
            ref=ref_of(hit.session.session_id),
            title=hit.session.title,
            workflow_id=hit.run.workflow_id if hit.run else "",
            status=hit.run.status if hit.run else "no run",
            why=hit.why,
            snippet=hit.snippet,
            updated_at=hit.session.updated_at,
        )
        for hit in find(ledger, query)
        if hit.why != "recency_fallback"
    )
    return SearchPage(query, tuple(hits))
