"""Finding work again in a brand new chat: tiers decide, newest first within a tier (rule 47)."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.log.chain import logged
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import notes_in, state_of
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.queries.indexing import catch_up, marked, named
from interlock.ledger.queries.status import Referred, referred
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import Reader, Recorded, RunRow, SessionRow

CANDIDATES = 5
LOOKED_AT = 200
SPARE = 20  # damaged sessions are passed over, so a few more than five are ranked
SNIPPET = 320
FINISHED = ("complete", "complete_with_gaps", "abandoned")
UNFINISHED = ("in_progress", "blocked")
SHORTEST_SHA = 7
SHORTEST_BRANCH = 3
MOST_WORDS = 12
NEAREST = 10  # nodes on the path to a tip that are searched for words and for a snippet
FILLER = frozenset(
    (
        *("a", "about", "again", "an", "and", "at", "back", "chat", "continue", "do", "earlier", "find"),
        *("for", "from", "go", "i", "in", "is", "it", "last", "left", "me", "my", "now", "of", "off", "on"),
        *("our", "please", "previous", "resume", "run", "session", "that", "the", "this", "to", "up", "was"),
        *("we", "were", "where", "with", "work", "workflow", "yesterday", "you"),
    )
)

Why = Literal[
    "matched_exact_id",
    "matched_notes",
    "matched_workflow",
    "matched_head_sha",
    "matched_branch",
    "matched_deep",
    "matched_some_words",
    "recency_fallback",
]


class Candidate(Struct, frozen=True):
    """A run that can be continued at once, at its preferred tip, or a session that has no run yet."""

    session: SessionRow
    handle: bytes
    why: Why
    snippet: str
    run: RunRow | None = None
    tip: int = 0


def words_of(query: str) -> list[str]:
    """Split a query into words, in the form in which search rows are written, without filler words."""
    folded = unicodedata.normalize("NFKC", query).lower()
    split = "".join(char if char.isalnum() or char in "_-" else " " for char in folded).split()
    return ([word for word in split if word not in FILLER] or split)[:MOST_WORDS]


def is_reference(positions: Positions, reference: str) -> bool:
    """Say whether this is the id, or an unambiguous beginning of the id, of a stored session or run."""
    with positions.store.reading() as reader:
        return len(referred(reader, reference, positions.owner)) == 1


def find(
    positions: Positions, query: str, observed: Mapping[str, str] | None = None
) -> tuple[Candidate, ...]:
    """Return the best five candidates for a query; ask a lower tier only for what is missing.

    A reference leads to itself and to nothing else. `observed` is what the project folder shows now:
    without a query its commit and branch are searched for.
    """
    catch_up(positions.store, positions.pins)
    candidates, words = list[Candidate](), words_of(query)
    with positions.store.reading() as reader:
        exact = referred(reader, query.strip(), positions.owner)
        if len(exact) == 1:
            return tuple(_candidates(reader, exact[0], "matched_exact_id", ()))
        for why, session_id in _fitting(reader, query.strip(), positions.owner, observed or {}):
            candidates += _candidates(reader, Referred(session_id), why, words)
            if len(candidates) >= CANDIDATES:
                break
    return tuple(candidates[:CANDIDATES])


def _fitting(
    reader: Reader, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, str]]:
    """Yield the sessions that fit, best first, each once; the newest last."""
    repo_root, seen = observed.get("repo_root", ""), set[str]()
    for why, matched in _tiers(reader, query, owner, observed):
        new = [session_id for session_id in dict.fromkeys(matched) if session_id not in seen]
        if not new:
            continue
        for session_id in reader.ranked(
            new, owner=owner, repo_root=repo_root, unfinished=UNFINISHED, limit=SPARE
        ):
            seen.add(session_id)
            yield why, session_id
    for session_id in reader.newest(
        owner=owner, repo_root=repo_root, unfinished=UNFINISHED, among=LOOKED_AT, limit=SPARE + len(seen)
    ):
        if session_id not in seen:
            yield "recency_fallback", session_id


def _tiers(
    reader: Reader, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, list[str]]]:
    """Yield the sessions that each tier matches. Without a query, tiers match what is checked out now."""
    words, names = words_of(query), query.split()
    yield "matched_notes", reader.search(words, owner=owner, columns=("title", "notes"), limit=LOOKED_AT)
    in_workflows = reader.search(
        marked(" ".join(words)), owner=owner, columns=("workflows",), limit=LOOKED_AT
    )
    yield "matched_workflow", in_workflows
    shas = [
        word
        for word in words or [observed.get("git_head_sha", "")]
        if len(word) >= SHORTEST_SHA and set(word) <= set("0123456789abcdef")
    ]
    yield "matched_head_sha", _observed(reader, owner, "git_head_sha", shas, prefix=True)
    branches = names or [observed.get("git_branch", "")]
    yield "matched_branch", _observed(reader, owner, "git_branch", filter(None, branches), prefix=False)
    beginnings = [name for name in names if len(name) >= SHORTEST_BRANCH and name.lower() not in FILLER]
    yield "matched_branch", _observed(reader, owner, "git_branch", beginnings, prefix=True)
    yield "matched_deep", reader.search_outputs(words, owner=owner, limit=LOOKED_AT)
    matched: Counter[str] = Counter()  # how many of the words a session has, anywhere
    for word in dict.fromkeys(words) if len(words) > 1 else ():
        found = {*reader.search([word], owner=owner, columns=("title", "notes"), limit=LOOKED_AT)}
        found |= {*reader.search(marked(word), owner=owner, columns=("workflows",), limit=LOOKED_AT)}
        matched.update({*found, *reader.search_outputs([word], owner=owner, limit=LOOKED_AT)})
    for most in range(len(words), 0, -1):
        yield "matched_some_words", [session_id for session_id, count in matched.items() if count == most]


def _observed(reader: Reader, owner: str, key: str, values: Iterable[str], *, prefix: bool) -> list[str]:
    return [
        session_id
        for value in values
        for session_id in reader.observed(key, value, owner=owner, prefix=prefix, limit=LOOKED_AT)
    ]


def _candidates(reader: Reader, match: Referred, why: Why, words: Sequence[str]) -> Iterator[Candidate]:
    """Yield the runs of a session that fit the words best, or the session itself while it has no run.

    A damaged session is no candidate.
    """
    session, handles = reader.session(match.session_id), reader.handles(match.session_id)
    if session is None or not handles or damage_of(reader, session):
        return
    runs = [match.run] if match.run else reader.runs(session.session_id)
    if not runs:
        events = (row.event for row in logged(reader.commits(session.session_id)))
        notes = [event.notes for event in events if isinstance(event, OutputAppended) and event.notes]
        yield Candidate(session, handles[0].handle, why, cut("".join(notes[-1:]), SNIPPET, "…"))
        return
    try:
        for run in _best(reader, session, runs, words) if len(runs) > 1 else runs:
            snippet = cut(next(_newest_notes(reader, session, run), ""), SNIPPET, "…")
            yield Candidate(session, handles[0].handle, why, snippet, run, tip_of(session, run))
    except (ValueError, TypeError):  # the notes of a damaged row cannot be read
        return


def _best(reader: Reader, session: SessionRow, runs: Sequence[RunRow], words: Sequence[str]) -> list[RunRow]:
    """Return the runs of a session that have most of the words, unfinished first, then newest."""
    scores: dict[int, int] = {}
    for run in runs:
        node = reader.node(session.session_id, tip_of(session, run))
        named_so = named(state_of(node).variables) if node else []
        text = " ".join([run.workflow_id, *named_so, *_newest_notes(reader, session, run)]).lower()
        scores[run.run] = sum(word in text for word in words)
    best = max(scores.values())
    fitting = [run for run in runs if scores[run.run] == best]
    return sorted(fitting, key=lambda run: (run.status in FINISHED, -run.started_at, -run.run))


def _newest_notes(reader: Reader, session: SessionRow, run: RunRow) -> Iterator[str]:
    """Yield the newest note at each of the last nodes on the path to the tip of a run."""
    session_id = session.session_id
    for node in reader.path(session_id, tip_of(session, run), NEAREST):
        rows: list[Recorded] = [*reader.blocked(session_id, (node.node,))]
        rows += reader.notes(session_id, (node.node,))
        rows.sort(key=lambda row: row.event_index)
        notes = [note.body for row in (node, *rows) for note in notes_in(row)]
        yield from notes[-1:]
