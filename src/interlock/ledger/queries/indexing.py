"""What a session is found by: its title, and the words of all its runs.

A command only marks its session. The index catches up before a search, and when the server is idle.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.projection import StoredOutput
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.queries.run_words import RunWords, folded, output_words, run_words
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.store.protocol import Reader, SearchRow, SessionRow, Store

BATCH = 50
MOST_RUNS = 50  # of a session, newest first: the words of older ones are found in their outputs

_encode = msgspec.json.Encoder().encode


def catch_up(store: Store, pins: Pins, most: int | None = None) -> int:
    """Index the sessions that have changed since they were indexed, a batch to a transaction."""
    done = 0
    while most is None or done < most:
        with store.reading() as reader:
            waiting = reader.unindexed(BATCH if most is None else min(BATCH, most - done))
        if not waiting:
            break
        with store.writing() as writer:
            for session_id in waiting:
                session = writer.session(session_id)
                if session is None:
                    continue
                try:
                    row, texts = _entry(writer, pins, session, writer.search_row(session_id))
                except (ValueError, TypeError):
                    # Its bytes are damaged: it is found only by its title, until a repair marks it again.
                    title_only = _search_row(session, ())
                    row, texts = msgspec.structs.replace(title_only, indexed_to=session.head_index), []
                writer.index(row, texts)
        done += len(waiting)
        if len(waiting) < BATCH:
            break
    return done


def is_found_wrongly(reader: Reader, pins: Pins, session: SessionRow) -> bool:
    """Say whether a session that is indexed up to its head has another search row than its log makes."""
    known = reader.search_row(session.session_id)
    if known is None or known.indexed_to < session.head_index:
        return False
    return known != _entry(reader, pins, session, None)[0]


def _entry(
    reader: Reader, pins: Pins, session: SessionRow, known: SearchRow | None
) -> tuple[SearchRow, list[str]]:
    """Return the search row of a session, and the texts of the outputs that are not in its known one."""
    start = known.indexed_to + 1 if known else 0
    texts, newest = list[str](), list[OutputAppended]()
    for commit in reader.commits(session.session_id, start=start):
        events = [entry.event for entry in entries_of(commit)]
        outputs = [event for event in events if isinstance(event, OutputAppended)]
        texts += [event.notes or _encode(event.artifact).decode() for event in outputs]
        newest = outputs or newest
    runs = reader.runs(session.session_id)[-MOST_RUNS:]
    row = _search_row(session, [run_words(reader, pins, session, run) for run in runs])
    if not runs:
        notes = output_words([_stored(event) for event in newest])
        row = msgspec.structs.replace(row, notes=notes or (known.notes if known else ""))
    return msgspec.structs.replace(row, indexed_to=session.head_index), texts


def _search_row(session: SessionRow, runs: Sequence[RunWords]) -> SearchRow:
    return SearchRow(
        session.session_id,
        session.owner,
        " ".join(dict.fromkeys((folded(session.title), *(run.title for run in runs if run.title)))),
        "\n".join(run.notes for run in runs if run.notes),
        " ".join(dict.fromkeys(word for run in runs for word in run.workflows.split())),
    )


def _stored(event: OutputAppended) -> StoredOutput:
    return StoredOutput(event.channel, event.step, event.notes or _encode(event.artifact).decode())
