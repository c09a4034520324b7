"""Finding work again in a brand new chat: tiers decide, newest first within a tier (rule 47)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import notes_in
from interlock.ledger.queries.indexing import catch_up, marked
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Reader, Recorded, RunRow, SessionFilter, SessionRow

CANDIDATES = 5
LOOKED_AT = 200
SPARE = 20  # damaged sessions are passed over, so a few more than five are ranked
SNIPPET = 320
FINISHED = ("complete", "complete_with_gaps")
SHORTEST_SHA = 7
SHORTEST_BRANCH = 3
SHORTEST_ID = 4
NEAREST = 10  # nodes on the path to a tip that are searched for a snippet

Why = Literal[
    "matched_exact_id",
    "matched_notes",
    "matched_workflow",
    "matched_head_sha",
    "matched_branch",
    "matched_deep",
    "recency_fallback",
]


class Candidate(Struct, frozen=True):
    """A run that can be continued at once: its preferred tip, and why it was found."""

    session: SessionRow
    run: RunRow
    tip: int
    handle: bytes
    why: Why
    snippet: str


def words_of(query: str) -> list[str]:
    """Split a query into words, in the form in which search rows are written."""
    folded = unicodedata.normalize("NFKC", query).lower()
    split = "".join(char if char.isalnum() or char in "_-" else " " for char in folded)
    return split.split()


def is_reference(positions: Positions, reference: str) -> bool:
    """Say whether this is the id, or an unambiguous beginning of the id, of a stored session."""
    with positions.store.reading() as reader:
        return len(by_reference(reader, reference, positions.owner)) == 1


def find(
    positions: Positions, query: str, observed: Mapping[str, str] | None = None
) -> tuple[Candidate, ...]:
    """Return the best five runs for a query, each session once; ask a lower tier only for what is missing.

    `observed` is what the project folder shows now: without a query its commit and branch are searched for.
    """
    catch_up(positions.store, positions.pins)
    owner, candidates = positions.owner, dict[str, Candidate]()
    repo_root = (observed or {}).get("repo_root", "")
    with positions.store.reading() as reader:
        for why, matched in _tiers(reader, query.strip(), owner, observed or {}):
            new = [session_id for session_id in dict.fromkeys(matched) if session_id not in candidates]
            ranked = reader.ranked(new, owner=owner, repo_root=repo_root, finished=FINISHED, limit=SPARE)
            for session_id in ranked:
                candidate = _candidate(reader, session_id, why, query, owner)
                if candidate is not None:
                    candidates[session_id] = candidate
                if len(candidates) == CANDIDATES:
                    return tuple(candidates.values())
    return tuple(candidates.values())


def _tiers(
    reader: Reader, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, list[str]]]:
    """Yield the sessions that each tier matches. Without a query, tiers match what is checked out now."""
    words, names = words_of(query), query.split()
    yield "matched_exact_id", by_reference(reader, query, owner)
    yield "matched_notes", reader.search(words, owner=owner, columns=("title", "notes"), limit=LOOKED_AT)
    yield (
        "matched_workflow",
        reader.search(marked(query), owner=owner, columns=("workflows",), limit=LOOKED_AT),
    )
    shas = [
        word
        for word in words or [observed.get("git_head_sha", "")]
        if len(word) >= SHORTEST_SHA and set(word) <= set("0123456789abcdef")
    ]
    yield "matched_head_sha", _observed(reader, owner, "git_head_sha", shas, prefix=True)
    branches = names or [observed.get("git_branch", "")]
    yield "matched_branch", _observed(reader, owner, "git_branch", filter(None, branches), prefix=False)
    beginnings = [name for name in names if len(name) >= SHORTEST_BRANCH]
    yield "matched_branch", _observed(reader, owner, "git_branch", beginnings, prefix=True)
    yield "matched_deep", reader.search_outputs(words, owner=owner, limit=LOOKED_AT)
    recent = reader.sessions(SessionFilter(owner=owner, limit=LOOKED_AT))
    yield "recency_fallback", [session.session_id for session in recent]


def _observed(reader: Reader, owner: str, key: str, values: Iterable[str], *, prefix: bool) -> list[str]:
    return [
        session_id
        for value in values
        for session_id in reader.observed(key, value, owner=owner, prefix=prefix, limit=LOOKED_AT)
    ]


def by_reference(reader: Reader, reference: str, owner: str) -> list[str]:
    """Return the session with this id, with a run of this id, or with an id that alone begins like this."""
    run = reader.run_by_id(reference, owner=owner) if reference else None
    if run is not None:
        return [run.session_id]
    prefix = reference if reference.startswith("sess_") else f"sess_{reference}"
    if len(prefix) < len("sess_") + SHORTEST_ID:
        return []
    matches = reader.sessions_by_prefix(prefix, owner=owner, limit=2)
    return matches if len(matches) == 1 else []


def _candidate(reader: Reader, session_id: str, why: Why, query: str, owner: str) -> Candidate | None:
    """Return the run of a session to offer; None for a session that is damaged or has no run."""
    session = reader.session(session_id)
    if session is None or session.head_run is None or damage_of(reader, session):
        return None
    by_id = why == "matched_exact_id"
    named_run = reader.run_by_id(query.strip(), owner=owner) if by_id else None
    run = named_run or reader.run(session_id, session.head_run)
    handles = reader.handles(session_id)
    if run is None or not handles:
        return None
    tip = tip_of(session, run)
    try:
        snippet = next((cut(note, SNIPPET, "…") for note in _newest_notes(reader, session_id, tip)), "")
    except (ValueError, TypeError):  # the notes of a damaged row cannot be read
        return None
    return Candidate(session, run, tip, handles[0].handle, why, snippet)


def _newest_notes(reader: Reader, session_id: str, tip: int) -> Iterator[str]:
    """Yield the newest note at each of the last nodes on the path to the tip."""
    for node in reader.path(session_id, tip, NEAREST):
        rows: list[Recorded] = [*reader.blocked(session_id, (node.node,))]
        rows += reader.notes(session_id, (node.node,))
        rows.sort(key=lambda row: row.event_index)
        notes = [note.body for row in (node, *rows) for note in notes_in(row)]
        yield from notes[-1:]
