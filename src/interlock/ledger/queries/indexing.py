"""What a session is found by: its title, and the words of all its runs.

A command only marks its session. The index catches up in the background, in batches; a search reads what it
does not know yet (`fresh_words`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.run.events import RunStarted
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.projection import StoredOutput
from interlock.ledger.log.records import HeadMoved, LogEntry, OutputAppended, RepairRecorded, SessionTitled
from interlock.ledger.queries.run_words import NAMES, RunWords, folded, output_words, run_words
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.store.protocol import CommitRow, Reader, SearchRow, SessionRow, Store

BATCH = 20  # sessions to a transaction, for which other writers of SQLite wait
MOST_RUNS = 50  # of a session, newest first: the words of older ones are found in their outputs

_encode = msgspec.json.Encoder().encode


class SearchEntry(Struct, frozen=True):
    """What a session is found by: its search row, and the texts of its outputs that are not indexed yet."""

    row: SearchRow
    outputs: list[str]


def catch_up(store: Store, pins: Pins) -> None:
    """Index everything that has changed since it was indexed."""
    after: str | None = ""
    while after is not None:
        after = index_batch(store, pins, after)


def index_batch(store: Store, pins: Pins, after: str) -> str | None:
    """Index some sessions that have changed, in the order of their ids; return the last, None at the end.

    Those that another process is indexing are left to it. All of a batch is stored, or nothing.
    """
    with store.reading() as reader:
        if not reader.unindexed(1, after=after):
            return None
    with store.writing() as writer:
        waiting = writer.unindexed(BATCH, after=after)
        for session_id in waiting:
            session = writer.session(session_id)
            if session is not None:
                entry = entry_of(writer, pins, session, writer.search_row(session_id))
                writer.index(entry.row, entry.outputs)
    return waiting[-1] if len(waiting) == BATCH else None


def is_found_wrongly(reader: Reader, pins: Pins, session: SessionRow) -> bool:
    """Say whether a session that is indexed up to its head has another search row than its log makes."""
    known = reader.search_row(session.session_id)
    if known is None or known.indexed_to < session.head_index:
        return False
    return known != _read(reader, pins, session, reader.commits(session.session_id), None).row


def entry_of(reader: Reader, pins: Pins, session: SessionRow, known: SearchRow | None) -> SearchEntry:
    """Return what a session is found by, with the outputs that its known search row does not cover.

    One whose bytes are damaged is found by its title, until a repair marks it again.
    """
    commits = reader.commits(session.session_id, start=known.indexed_to + 1 if known else 0)
    try:
        return _read(reader, pins, session, commits, known)
    except (ValueError, TypeError):
        return SearchEntry(replace(_search_row(session, ()), indexed_to=session.head_index), [])


def entry_after(known: SearchRow, commits: Iterable[CommitRow]) -> SearchEntry | None:
    """Return what a session is found by after some commits; None if their events alone do not say it.

    Notes that a newer output has replaced are still among its words.
    """
    try:
        events = [entry.event for commit in commits for entry in entries_of(commit)]
    except ValueError:
        return None
    if any(_renames(event) for event in events):
        return None
    outputs = [event for event in events if isinstance(event, OutputAppended)]
    notes = "\n".join((known.notes, output_words([_stored(event) for event in outputs])))
    return SearchEntry(replace(known, notes=notes), [_text(event) for event in outputs])


def _renames(event: LogEntry) -> bool:
    """Tell whether an event may change more of what a session is found by than its notes."""
    if isinstance(event, RunStarted | SessionTitled | HeadMoved | RepairRecorded):
        return True
    written = (getattr(event, name, {}) for name in ("delta", "sets", "restores", "kept"))
    return any(name in values for values in written for name in NAMES)


def _read(
    reader: Reader, pins: Pins, session: SessionRow, commits: Iterable[CommitRow], known: SearchRow | None
) -> SearchEntry:
    texts, newest = list[str](), list[OutputAppended]()
    for commit in commits:
        events = [entry.event for entry in entries_of(commit)]
        outputs = [event for event in events if isinstance(event, OutputAppended)]
        texts += map(_text, outputs)
        newest = outputs or newest
    runs = reader.runs(session.session_id)[-MOST_RUNS:]
    row = _search_row(session, [run_words(reader, pins, session, run) for run in runs])
    if not runs:
        notes = output_words([_stored(event) for event in newest])
        row = replace(row, notes=notes or (known.notes if known else ""))
    return SearchEntry(replace(row, indexed_to=session.head_index), texts)


def _search_row(session: SessionRow, runs: Sequence[RunWords]) -> SearchRow:
    return SearchRow(
        session.session_id,
        session.owner,
        " ".join(dict.fromkeys((folded(session.title), *(run.title for run in runs if run.title)))),
        "\n".join(run.notes for run in runs if run.notes),
        " ".join(dict.fromkeys(word for run in runs for word in run.workflows.split())),
    )


def _stored(event: OutputAppended) -> StoredOutput:
    return StoredOutput(event.channel, event.step, _text(event))


def _text(event: OutputAppended) -> str:
    return event.notes or _encode(event.artifact).decode()
