"""Notes that belong to a session and to none of its runs."""

from __future__ import annotations

from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.records import OutputAppended
from interlock.store.protocol import Reader

NOTED = "noted:"  # the key of a commit of such notes begins so
MOST_NOTED = 1000


def session_outputs(reader: Reader, session_id: str) -> list[OutputAppended]:
    """Return the notes and artifacts of a session itself, oldest first."""
    commits = sorted(reader.keyed_commits(session_id, NOTED, MOST_NOTED), key=lambda commit: commit.last)
    events = (entry.event for commit in commits for entry in entries_of(commit))
    return [event for event in events if isinstance(event, OutputAppended)]


def session_notes(reader: Reader, session_id: str) -> tuple[str, ...]:
    """Return the notes of a session itself, oldest first."""
    return tuple(event.notes for event in session_outputs(reader, session_id) if event.notes)
