"""Finding work again in a brand new chat: tiers decide, within a tier running before finished (rule 47)."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from time import monotonic
from typing import Literal, TypedDict

from msgspec import Struct

from interlock.core.values import cut
from interlock.ledger.log.health import damage_of
from interlock.ledger.queries.indexing import MOST_RUNS, SearchEntry, entry_after, entry_of
from interlock.ledger.queries.run_words import MARK, folded, marked, newest_outputs, run_words
from interlock.ledger.queries.status import Referred, referred
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.ledger.runs.recap import session_notes
from interlock.store.protocol import Reader, RunRow, SessionRow
from interlock.store.word_split import words_in

CANDIDATES = 5
LOOKED_AT = 200
SPARE = 20  # damaged sessions and finished runs are passed over, so more than five are ranked
SNIPPET = 320
FINISHED = ("complete", "complete_with_gaps", "abandoned")
UNFINISHED = ("in_progress", "blocked")
SHORTEST_SHA = 7
SHORTEST_BRANCH = 3
MOST_WORDS = 12
MOST_READ = 1000  # sessions that are not indexed up to their head
ALWAYS_READ = 40  # of those, sessions of which nothing is indexed; the others are read at once
READ_SECONDS = 0.05
NEWEST_EVENTS = 2000  # of a session: what is longer, as imports are, is left to the index
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
    "matched_title",
    "matched_head_sha",
    "matched_branch",
    "matched_workflow",
    "matched_notes",
    "matched_deep",
    "matched_some_words",
    "recency_fallback",
]


COLUMNS: Mapping[Why, tuple[str, ...]] = {
    "matched_title": ("title",),
    "matched_workflow": ("workflows",),
    "matched_notes": ("title", "notes"),
    "matched_some_words": ("title", "notes", "workflows"),
}


class Ranking(TypedDict):
    """What the sessions of a tier are ranked by."""

    repo_root: str
    unfinished: tuple[str, ...]
    owner: str


class Candidate(Struct, frozen=True):
    """A run that can be continued at once, at its preferred tip, or a session that has no run yet."""

    session: SessionRow
    handle: bytes
    why: Why
    snippet: str
    run: RunRow | None = None
    tip: int = 0

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to continue."""
        return self.run is not None and self.run.status in FINISHED


class Found(Struct, frozen=True):
    """The best candidates; `left_out` says that some of the newest work was not searched."""

    candidates: tuple[Candidate, ...]
    left_out: bool = False


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
    positions: Positions,
    query: str,
    observed: Mapping[str, str] | None = None,
    index: FreshWords | None = None,
) -> Found:
    """Return the best five candidates for a query; ask a lower tier only for what is missing.

    A reference leads to itself and to nothing else. `observed` is what the project folder shows now:
    without a query its commit and branch are searched for. An `index` that was read already is used.
    """
    candidates, words, seen = list[Candidate](), words_of(query), set[str]()
    with positions.store.reading() as reader:
        exact = referred(reader, query.strip(), positions.owner)
        if len(exact) == 1:
            return Found(tuple(_candidates(reader, positions.pins, exact[0], "matched_exact_id", ())))
        index = index or FreshWords(reader, positions.pins, positions.owner)
        for why, session_ids in _fitting(reader, index, query.strip(), positions.owner, observed or {}):
            if why == "recency_fallback" and candidates and query.strip():
                break  # what is only new would distract from what matches
            tier = list[Candidate]()
            for session_id in session_ids:
                if session_id not in seen and sum(not one.is_finished for one in tier) < CANDIDATES:
                    tier += _candidates(reader, positions.pins, Referred(session_id), why, words)
            seen.update(candidate.session.session_id for candidate in tier)
            candidates += sorted(tier, key=lambda candidate: candidate.run is None or candidate.is_finished)
            if len(candidates) >= CANDIDATES:
                break
    return Found(tuple(candidates[:CANDIDATES]), index.left_out)


def _fitting(
    reader: Reader, index: FreshWords, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, list[str]]]:
    """Yield the sessions that fit, tier by tier, each tier ranked; the newest last."""
    terms: Ranking = {"repo_root": observed.get("repo_root", ""), "unfinished": UNFINISHED, "owner": owner}
    for why, matched in _tiers(reader, index, query, owner, observed):
        if matched:
            yield why, reader.ranked(list(dict.fromkeys(matched)), **terms, limit=SPARE)
    yield "recency_fallback", reader.newest(**terms, among=LOOKED_AT, limit=SPARE)


def _tiers(
    reader: Reader, index: FreshWords, query: str, owner: str, observed: Mapping[str, str]
) -> Iterator[tuple[Why, list[str]]]:
    """Yield the sessions that each tier matches. Without a query, tiers match what is checked out now."""
    words, names = words_of(query), query.split()

    def in_columns(*columns: str) -> list[str]:
        return index.search(words, columns, LOOKED_AT)

    yield "matched_title", in_columns("title")
    shas = [
        word
        for word in words or [observed.get("git_head_sha", "")]
        if len(word) >= SHORTEST_SHA and set(word) <= set("0123456789abcdef")
    ]
    yield "matched_head_sha", _observed(reader, owner, "git_head_sha", shas, prefix=True)
    branch = query or observed.get("git_branch", "")
    yield "matched_branch", _observed(reader, owner, "git_branch", filter(None, [branch]), prefix=False)
    yield "matched_workflow", index.search(marked(" ".join(words)), ("workflows",), LOOKED_AT)
    yield "matched_notes", in_columns("title", "notes")
    yield "matched_branch", _observed(reader, owner, "git_branch", names, prefix=False)
    beginnings = [name for name in names if len(name) >= SHORTEST_BRANCH and name.lower() not in FILLER]
    yield "matched_branch", _observed(reader, owner, "git_branch", beginnings, prefix=True)
    yield "matched_deep", index.search_outputs(words, LOOKED_AT)
    matched: Counter[str] = Counter()  # how many of the words a session has, anywhere
    for word in dict.fromkeys(words) if len(words) > 1 else ():
        found = {*index.search([word], ("title", "notes"), LOOKED_AT)}
        found |= {*index.search(marked(word), ("workflows",), LOOKED_AT)}
        matched.update({*found, *index.search_outputs([word], LOOKED_AT)})
    for most in range(len(words), 0, -1):
        yield "matched_some_words", [session_id for session_id, count in matched.items() if count == most]


def _observed(reader: Reader, owner: str, key: str, values: Iterable[str], *, prefix: bool) -> list[str]:
    return [
        session_id
        for value in values
        for session_id in reader.observed(key, value, owner=owner, prefix=prefix, limit=LOOKED_AT)
    ]


def _candidates(
    reader: Reader, pins: Pins, match: Referred, why: Why, words: Sequence[str]
) -> Iterator[Candidate]:
    """Yield the runs of a session that fit, or the session itself while it has no run.

    A damaged session is not a candidate.
    """
    session, handles = reader.session(match.session_id), reader.handles(match.session_id)
    if session is None or not handles or damage_of(reader, session):
        return
    runs = [match.run] if match.run else reader.runs(session.session_id)
    if not runs:
        newest = "".join(session_notes(reader, session.session_id)[-1:])
        yield Candidate(session, handles[0].handle, why, cut(newest, SNIPPET, "…"))
        return
    try:
        for run in _fitting_runs(reader, pins, session, runs, why, words) if len(runs) > 1 else runs:
            snippet = cut(_newest_note(reader, session, run), SNIPPET, "…")
            yield Candidate(session, handles[0].handle, why, snippet, run, tip_of(session, run))
    except (ValueError, TypeError):  # the notes of a damaged row cannot be read
        return


def _fitting_runs(
    reader: Reader, pins: Pins, session: SessionRow, runs: Sequence[RunRow], why: Why, words: Sequence[str]
) -> list[RunRow]:
    """Return the runs that a tier means: those that have its words themselves, running ones first.

    The index knows which words the session has. All its runs count where the tier is not about words.
    """
    newest = sorted(runs, key=lambda run: (run.status in FINISHED, -run.started_at, -run.run))[:MOST_RUNS]
    if why not in COLUMNS or not words:
        return newest
    counts: dict[int, int] = {}
    for run in newest:
        own = run_words(reader, pins, session, run)
        texts = {
            "title": f"{folded(session.title)} {own.title}",
            "notes": own.notes,
            "workflows": own.workflows,
        }
        has = {word for column in COLUMNS[why] for word in words_in(texts[column])}
        if "workflows" in COLUMNS[why]:
            has |= {word.removeprefix(MARK) for word in own.workflows.split()}
        counts[run.run] = sum({*words_in(word)} <= has for word in words)
    wanted = max(counts.values()) if why == "matched_some_words" else len(words)
    return [run for run in newest if counts[run.run] >= wanted]


def _newest_note(reader: Reader, session: SessionRow, run: RunRow) -> str:
    notes = (
        output.body
        for outputs in newest_outputs(reader, session, run)
        for output in outputs
        if output.channel == "recap"
    )
    return next(notes, "")


class FreshWords:
    """Searches the words of one owner: the index, and beside it what it does not know yet.

    A search never waits for the index: it reads the owner's own unindexed sessions, newest first, within a
    time. `left_out` says that not all of the newest are among them.
    """

    def __init__(self, reader: Reader, pins: Pins, owner: str) -> None:
        self._reader = reader
        self._pins = pins
        self._owner = owner
        waiting = reader.unindexed_of(owner, MOST_READ)
        self.left_out = len(waiting) == MOST_READ
        self._texts = dict(self._read(waiting)) if waiting else {}

    def _read(self, waiting: Sequence[SessionRow]) -> Iterator[tuple[str, SpacedTexts]]:
        """Yield what each session is found by: from its new events, or all of it where they do not say it."""
        since, ends = min(session.updated_at for session in waiting), monotonic() + READ_SECONDS
        known = {row.session_id: row for row in self._reader.outdated_rows(self._owner, since)}
        commits = self._reader.unindexed_commits(self._owner, since, NEWEST_EVENTS)
        new = {name: list(own) for name, own in groupby(commits, lambda commit: commit.session_id)}
        whole = 0
        for session in waiting:
            name, row = session.session_id, known.get(session.session_id)
            is_long = session.head_index - (row.indexed_to if row else -1) > NEWEST_EVENTS
            entry = entry_after(row, new.get(name, ())) if row is not None else None
            self.left_out |= is_long
            if entry is None and (is_long or (whole >= ALWAYS_READ and monotonic() > ends)):
                self.left_out = True
                continue
            if entry is None:
                whole += 1
                entry = entry_of(self._reader, self._pins, session, row)
            yield name, spaced_texts(entry)

    def search(self, words: Sequence[str], columns: Sequence[str], limit: int) -> list[str]:
        """Return sessions whose search row has all words."""
        indexed = self._reader.search(words, owner=self._owner, columns=columns, limit=limit)
        wanted = _phrases(words)
        fresh = [
            name
            for name, texts in self._texts.items()
            if _are_in(wanted, [texts.columns[column] for column in columns])
        ]
        return [*fresh, *(name for name in indexed if name not in self._texts)][:limit]

    def search_outputs(self, words: Sequence[str], limit: int) -> list[str]:
        """Return sessions that have all words in one output."""
        indexed = self._reader.search_outputs(words, owner=self._owner, limit=limit)
        wanted = _phrases(words)
        fresh = [
            name
            for name, texts in self._texts.items()
            if any(_are_in(wanted, [output]) for output in texts.outputs)
        ]
        return list(dict.fromkeys([*fresh, *indexed]))[:limit]


class SpacedTexts(Struct, frozen=True):
    """The words of a search row by its columns and those of each output, each word between two spaces."""

    columns: dict[str, str]
    outputs: list[str]


def spaced_texts(entry: SearchEntry) -> SpacedTexts:
    """Split what a session is found by into words, as the index does."""
    columns = {name: _spaced(getattr(entry.row, name)) for name in ("title", "notes", "workflows")}
    return SpacedTexts(columns, [*map(_spaced, entry.outputs)])


def _phrases(words: Sequence[str]) -> list[str]:
    """Return what is looked for: a word of several parts is a phrase, and one of no letter is nothing."""
    return [phrase for phrase in map(_spaced, words) if phrase.strip()]


def _are_in(phrases: Sequence[str], texts: Sequence[str]) -> bool:
    """Tell whether all phrases are in the texts, each in one of them."""
    return bool(phrases) and all(any(phrase in text for text in texts) for phrase in phrases)


def _spaced(text: str) -> str:
    return f" {' '.join(words_in(text))} "
