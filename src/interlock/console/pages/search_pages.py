"""Search over everything: sessions by all that they are known by, workflows and their items, builtins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.authoring.catalogue import catalogue
from interlock.authoring.library import Diagnostic, Library
from interlock.core.definition.workflow import Gate, walk
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.run_lines import sessions_with, shown_status, stale_before
from interlock.ledger.queries.search import Candidate
from interlock.ledger.queries.status import Shown, ref_of

MOST_SESSIONS = 25
MOST_OTHERS = 20
MOST_ITEMS = 5


class SearchHit(Shown, frozen=True):
    """A session that a search found, and why; the best five come with a snippet of their notes."""

    session_id: str
    ref: str
    title: str
    workflow_id: str
    status: str
    why: str
    snippet: str
    updated_at: int


class ItemHit(Shown, frozen=True):
    """A step, gate or loop whose name or title has the words."""

    id: str
    title: str


class WorkflowHit(Shown, frozen=True):
    """A workflow whose name, description or items have the words."""

    id: str
    name: str
    description: str
    items: tuple[ItemHit, ...]


class BuiltinHit(Shown, frozen=True):
    """Something built in that has the words in its reference, title or details."""

    kind: str
    ref: str
    title: str


class SearchPage(Shown, frozen=True):
    """What was found for some words; `more` says that the list of runs has more sessions."""

    query: str
    hits: tuple[SearchHit, ...] = ()
    more: bool = False
    left_out: bool = False
    workflows: tuple[WorkflowHit, ...] = ()
    builtins: tuple[BuiltinHit, ...] = ()


def search_page(ledger: Ledger, query: str) -> SearchPage:
    """Search for words, an id, a branch or a commit."""
    words = query.casefold().split()
    if not words:
        return SearchPage(query)
    best: dict[str, SearchHit] = {}
    found = sessions_with(ledger, query, MOST_SESSIONS)
    for hit in best_sessions(ledger, found.best):
        best.setdefault(hit.session_id, hit)
    others = (
        SearchHit(
            session_id=line.session_id,
            ref=line.ref,
            title=line.title,
            workflow_id=line.workflow_id,
            status=line.status,
            why="matched_notes",
            snippet="",
            updated_at=line.updated_at,
        )
        for line in found.others
        if line.session_id not in best
    )
    return SearchPage(
        query=query,
        hits=(*best.values(), *others)[:MOST_SESSIONS],
        more=found.more,
        left_out=found.left_out,
        workflows=tuple(matching_workflows(ledger.library, words))[:MOST_OTHERS],
        builtins=tuple(
            BuiltinHit(entry.kind, entry.ref, entry.title)
            for entry in catalogue()
            if has_words(words, entry.ref, entry.title, *entry.details)
        )[:MOST_OTHERS],
    )


def best_sessions(ledger: Ledger, best: Iterable[Candidate]) -> Iterator[SearchHit]:
    """Yield the sessions that an agent's search would offer, best first."""
    before = stale_before(ledger)
    for hit in best:
        if hit.why == "recency_fallback":
            continue
        session, run = hit.session, hit.run
        yield SearchHit(
            session_id=session.session_id,
            ref=ref_of(session.session_id),
            title=session.title,
            workflow_id=run.workflow_id if run else "",
            status=shown_status(run, session.updated_at, before) if run else "no run",
            why=hit.why,
            snippet=hit.snippet,
            updated_at=session.updated_at,
        )


def matching_workflows(library: Library, words: list[str]) -> Iterator[WorkflowHit]:
    """Yield the workflows that have all words in their own texts, or in those of one item."""
    for entry in library.listing().entries:
        loaded = None if entry.hidden else library.load(entry.id)
        if loaded is None or isinstance(loaded, Diagnostic):
            continue
        items = tuple(
            ItemHit(item.id, title)
            for activity in loaded.workflow.activities
            for item in walk(activity.items)
            for title in [item.name if isinstance(item, Gate) else item.title]
            if has_words(words, item.id, title)
        )
        if items or has_words(words, entry.id, entry.name, entry.description):
            yield WorkflowHit(entry.id, entry.name, entry.description, items[:MOST_ITEMS])


def has_words(words: list[str], *texts: str) -> bool:
    """Tell whether every word is somewhere in the texts."""
    text = " ".join(texts).casefold()
    return all(word in text for word in words)
