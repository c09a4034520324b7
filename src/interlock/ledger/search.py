"""Finding work again in a brand new chat: tiers decide, newest first within a tier (rule 47)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.health import damage
from interlock.store.protocol import Reader, RunRow, SessionFilter, SessionRow

CANDIDATES = 5
LOOKED_AT = 200
SNIPPET = 320

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
    """A run that can be gone on with at once: its preferred tip, and why it was found."""

    session: SessionRow
    run: RunRow
    why: Why
    snippet: str


def words_of(query: str) -> list[str]:
    """The words of a query, folded as the index folds its text."""
    folded = unicodedata.normalize("NFKC", query).casefold()
    split = "".join(char if char.isalnum() or char in "_-" else " " for char in folded)
    return split.split()


def find(
    reader: Reader, query: str, owner: str, observed: dict[str, str] | None = None
) -> tuple[Candidate, ...]:
    """The best five runs for a query, each session once."""
    seen: dict[str, Why] = {}
    for session_id, why in _tiers(reader, query, observed or {}):
        seen.setdefault(session_id, why)
        if len(seen) >= LOOKED_AT:
            break
    found = [one for one in (_candidate(reader, key, why, owner) for key, why in seen.items()) if one]
    order = list(dict.fromkeys(one.why for one in found))
    root = (observed or {}).get("repo_root")
    found.sort(key=lambda one: (order.index(one.why), *_within_tier(reader, one, root)))
    return tuple(found[:CANDIDATES])


def _tiers(reader: Reader, query: str, observed: dict[str, str]) -> Iterator[tuple[str, Why]]:
    words = words_of(query)
    for session_id in by_reference(reader, query.strip()):
        yield session_id, "matched_exact_id"
    if words:
        for session_id in reader.search(words, columns=("title", "notes"), limit=LOOKED_AT):
            yield session_id, "matched_notes"
        for session_id in reader.search(words, columns=("workflows",), limit=LOOKED_AT):
            yield session_id, "matched_workflow"
    yield from _by_observation(reader, words, observed)
    if words:
        for session_id in reader.search_outputs(words, limit=LOOKED_AT):
            yield session_id, "matched_deep"
        return
    for session in reader.sessions(SessionFilter(limit=CANDIDATES * 4)):
        yield session.session_id, "recency_fallback"


def _by_observation(reader: Reader, words: list[str], observed: dict[str, str]) -> Iterator[tuple[str, Why]]:
    """Work that was seen on the same commit or branch, named in the query or checked out now."""
    for word in words:
        if len(word) >= 7 and all(char in "0123456789abcdef" for char in word):
            for session_id in reader.observed("git_head_sha", word, prefix=True, limit=LOOKED_AT):
                yield session_id, "matched_head_sha"
        for session_id in reader.observed("git_branch", word, prefix=True, limit=LOOKED_AT):
            yield session_id, "matched_branch"
    if not words and "git_branch" in observed:
        for session_id in reader.observed(
            "git_branch", observed["git_branch"], prefix=False, limit=LOOKED_AT
        ):
            yield session_id, "matched_branch"


def by_reference(reader: Reader, reference: str) -> list[str]:
    """Sessions by the id of the session or of a run, or by an unambiguous beginning of a session id."""
    if not reference:
        return []
    run = reader.run_by_id(reference)
    if run is not None:
        return [run.session_id]
    whole = reference if reference.startswith("sess_") else f"sess_{reference}"
    if len(whole) < len("sess_") + 4:
        return []
    found = reader.sessions_by_prefix(whole, 2)
    return found if len(found) == 1 else []


def _candidate(reader: Reader, session_id: str, why: Why, owner: str) -> Candidate | None:
    session = reader.session(session_id)
    if session is None or session.owner != owner or damage(reader, session):
        return None
    runs = reader.runs(session_id)
    run = next((one for one in runs if one.run == session.head_run), runs[-1] if runs else None)
    if run is None:
        return None
    return Candidate(session, run, why, _snippet(reader, run))


def _snippet(reader: Reader, run: RunRow) -> str:
    """The newest note on the way to the tip."""
    node = reader.node(run.session_id, run.tip)
    for _ in range(10):
        if node is None:
            return ""
        notes = [row for row in reader.outputs(run.session_id, node.node) if row.kind == "notes"]
        if notes:
            return cut(notes[-1].body, SNIPPET, "…")
        node = reader.node(run.session_id, node.parent) if node.parent is not None else None
    return ""


def _within_tier(reader: Reader, one: Candidate, root: str | None) -> tuple[bool, bool, int, str]:
    """Same repository first, unfinished before finished, then newest activity, then session id."""
    elsewhere = root is None or reader.observations(one.session.session_id).get("repo_root") != root
    finished = one.run.status in ("complete", "complete_with_gaps")
    return elsewhere, finished, -one.session.updated_at, one.session.session_id
