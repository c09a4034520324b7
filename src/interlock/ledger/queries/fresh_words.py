"""The search index, and beside it what it does not know yet of one owner's sessions.

A search never waits for the index: it reads the owner's own unindexed sessions, newest first, within a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from time import monotonic

from msgspec import Struct

from interlock.ledger.queries.indexing import SearchEntry, entry_after, entry_of
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.store.protocol import Reader, SessionRow
from interlock.store.word_split import words_in

MOST_READ = 1000
ALWAYS_READ = 40  # sessions of which nothing is indexed; the others are read at once
READ_SECONDS = 0.05
NEWEST_EVENTS = 2000  # of a session: what is longer, as imports are, is left to the index


class FreshWords:
    """Searches the words of one owner. `left_out` says that not all of the newest are among them."""

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
