"""Finding work again in a brand new chat: tiers decide, newest first within a tier (rule 47)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import notes_in
from interlock.ledger.queries.indexing import catch_up, marked
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Reader, RunRow, SessionFilter, SessionRow

CANDIDATES = 5
LOOKED_AT = 200
SPARE = 20  # damaged sessions are passed over, so a few more than five are ranked
SNIPPET = 320
FINISHED = ("complete", "complete_with_gaps")
SHORTEST_SHA = 7
SHORTEST_BRANCH = 3

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
    tip: int
    handle: bytes
    why: Why
    snippet: str


def words_of(query: str) -> list[str]:
    """The words of a query, in the form in which search rows are written."""
    folded = unicodedata.normalize("NFKC", query).lower()
    split = "".join(char if char.isalnum() or char in "_-" else " " for char in folded)
    return split.split()


def is_reference(positions: Positions, reference: str) -> bool:
    """Say whether this is the id, or an unambiguous beginning of the id, of a stored session."""
    with positions.store.reading() as reader:
        return len(by_reference(reader, reference)) == 1


def find(
    positions: Positions, query: str, owner: str, observed: Mapping[str, str] | None = None
) -> tuple[Candidate, ...]:
    """The best five runs for a query, each session once; a lower tier is asked only for what is missing."""
    catch_up(positions.store, positions.pins)
    with positions.store.reading() as reader:
        return _best(reader, query, owner, observed)


def _best(
    reader: Reader, query: str, owner: str, observed: Mapping[str, str] | None
) -> tuple[Candidate, ...]:
    here = observed or {}
    found: dict[str, Candidate] = {}
    for why, matched in _tiers(reader, query.strip(), owner, here):
        for session_id in _ranked(reader, [one for one in matched if one not in found], owner, here):
            one = _candidate(reader, session_id, why, query)
            if one is not None:
                found[session_id] = one
            if len(found) == CANDIDATES:
                return tuple(found.values())
    return tuple(found.values())


def _tiers(
    reader: Reader, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, list[str]]]:
    words, names = words_of(query), query.split()
    yield "matched_exact_id", by_reference(reader, query)
    yield "matched_notes", reader.search(words, columns=("title", "notes"), limit=LOOKED_AT)
    yield "matched_workflow", reader.search(marked(query), columns=("workflows",), limit=LOOKED_AT)
    yield "matched_head_sha", _by_head(reader, words or [observed.get("git_head_sha", "")])
    branches = names or [observed.get("git_branch", "")]
    yield "matched_branch", _by_branch(reader, branches, prefix=False)
    yield "matched_branch", _by_branch(reader, branches if names else (), prefix=True)
    yield "matched_deep", reader.search_outputs(words, limit=LOOKED_AT)
    recent = reader.sessions(SessionFilter(owner=owner, limit=LOOKED_AT))
    yield "recency_fallback", [session.session_id for session in recent]


def _by_head(reader: Reader, shas: Sequence[str]) -> list[str]:
    """Work on a commit that the query names; without a query, on the one checked out now."""
    likely = [sha for sha in shas if len(sha) >= SHORTEST_SHA and set(sha) <= set("0123456789abcdef")]
    found = [reader.observed("git_head_sha", sha, prefix=True, limit=LOOKED_AT) for sha in likely]
    return [session_id for each in found for session_id in each]


def _by_branch(reader: Reader, names: Sequence[str], *, prefix: bool) -> list[str]:
    likely = [name for name in names if len(name) >= (SHORTEST_BRANCH if prefix else 1)]
    found = [reader.observed("git_branch", name, prefix=prefix, limit=LOOKED_AT) for name in likely]
    return [session_id for each in found for session_id in each]


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


def _ranked(reader: Reader, matched: list[str], owner: str, observed: Mapping[str, str]) -> list[str]:
    if not matched:
        return []
    root = observed.get("repo_root", "")
    distinct = list(dict.fromkeys(matched))
    return reader.ranked(distinct, owner=owner, repo_root=root, finished=FINISHED, limit=SPARE)


def _candidate(reader: Reader, session_id: str, why: Why, query: str) -> Candidate | None:
    session = reader.session(session_id)
    if session is None or session.head_run is None or damage_of(reader, session):
        return None
    asked = reader.run_by_id(query.strip()) if why == "matched_exact_id" else None
    run = asked or reader.run(session_id, session.head_run)
    handles = reader.handles(session_id)
    if run is None or not handles:
        return None
    tip = tip_of(session, run)
    try:
        return Candidate(session, run, tip, handles[0].handle, why, _snippet(reader, session_id, tip))
    except (ValueError, TypeError):  # the notes of a damaged row cannot be read
        return None


def _snippet(reader: Reader, session_id: str, tip: int) -> str:
    """The newest note on the way to the tip."""
    for node in reader.path(session_id, tip, 10):
        aside = [(row.event_index, notes_in(row)) for row in reader.blocked(session_id, (node.node,))]
        aside += [(row.event_index, notes_in(row)) for row in reader.notes(session_id, (node.node,))]
        ordered = [(node.event_index, notes_in(node)), *aside]
        notes = [note for _, noted in sorted(ordered, key=lambda item: item[0]) for note in noted]
        if notes:
            return cut(notes[-1].body, SNIPPET, "…")
    return ""
