"""How long sessions are kept: a time without activity, keep marks, whole sessions at a time.

A removed session leaves a tombstone, so that its id is told apart from one that never existed.
"""

from __future__ import annotations

from interlock.store.protocol import Store

DAY = 86_400_000
BATCH = 200


def stale(store: Store, before: int) -> list[str]:
    """Return the sessions without activity since a time and without a keep mark, by id."""
    listed: list[str] = []
    with store.reading() as reader:
        while batch := reader.stale_sessions(before, listed[-1] if listed else "", BATCH):
            listed += batch
    return listed


def collect(store: Store, before: int, now: int) -> int:
    """Remove stale sessions, a batch to a transaction, so that nobody waits long for their turn."""
    removed = 0
    while True:
        with store.writing() as writer:
            batch = writer.stale_sessions(before, "", BATCH)
            for session_id in batch:
                writer.remove_session(session_id, now)
        if not batch:
            return removed
        removed += len(batch)


def set_keep(store: Store, session_id: str, keep: bool) -> None:
    """Mark a session to be kept whatever its age, or take the mark away."""
    with store.writing() as writer:
        writer.set_keep(session_id, keep)
