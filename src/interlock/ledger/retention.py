"""How long sessions are kept: a time without activity, keep marks, whole sessions at a time.

A removed session leaves a tombstone, so that its id is told apart from one that never existed.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.store.protocol import Store

DAY = 86_400_000
BATCH = 50  # sessions in a transaction: nobody waits long for their turn, and little room is needed


def stale(
    store: Store, before: int, *, waiting: bool = False, among: Sequence[str] | None = None
) -> list[str]:
    """Return the sessions, of all or `among` some, without activity since a time and without a keep mark.

    Those that wait for the user at a gate are left out, unless they are asked for.
    """
    listed: list[str] = []
    with store.reading() as reader:
        while batch := reader.stale_sessions(
            before, listed[-1] if listed else "", BATCH, waiting=waiting, among=among
        ):
            listed += batch
    return listed


def collect(
    store: Store, before: int, now: int, *, waiting: bool = False, among: Sequence[str] | None = None
) -> int:
    """Remove stale sessions, a batch to a transaction, and give their space back, also on a full disk."""
    removed = 0
    store.make_room()
    try:
        while True:
            with store.writing() as writer:
                batch = writer.stale_sessions(before, "", BATCH, waiting=waiting, among=among)
                for session_id in batch:
                    writer.remove_session(session_id, now)
            if not batch:
                return removed
            removed += len(batch)
    finally:
        store.give_back()


def set_keep(store: Store, session_id: str, keep: bool) -> None:
    """Mark a session to be kept whatever its age, or take the mark away."""
    with store.writing() as writer:
        writer.set_keep(session_id, keep)
