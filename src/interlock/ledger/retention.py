"""How long sessions are kept: a time without activity, keep marks, whole sessions at a time.

A removed session leaves a tombstone, so that its id is never taken for one that was never there.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.store.protocol import Reader, Store

DAYS = 90
DAY = 86_400_000
BATCH = 200


def stale(reader: Reader, before: int) -> Iterator[str]:
    """Sessions without activity since a time and without a keep mark, by id."""
    after = ""
    while batch := reader.stale_sessions(before, after, BATCH):
        yield from batch
        after = batch[-1]


def collect(store: Store, before: int, now: int) -> int:
    """Remove stale sessions, a batch to a transaction, so that nobody waits long for their turn."""
    removed = 0
    while True:
        with store.writing() as tx:
            batch = tx.stale_sessions(before, "", BATCH)
            for session_id in batch:
                tx.remove_session(session_id, now)
        if not batch:
            return removed
        removed += len(batch)


def set_keep(store: Store, session_id: str, keep: bool) -> None:
    """Mark a session to be kept whatever its age, or take the mark away."""
    with store.writing() as tx:
        session = tx.session(session_id)
        assert session is not None, "whoever marks a session has found it"
        tx.set_session(replace(session, keep=keep))
