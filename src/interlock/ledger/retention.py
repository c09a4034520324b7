"""How long sessions are kept: a time without activity, keep marks, whole sessions at a time.

A removed session leaves a tombstone, so that its id is told apart from one that never existed, and a copy of
its log can be checked against the head that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from interlock.store.protocol import Store

DAY = 86_400_000
PROFILES: Mapping[str, int] = {"month": 30, "quarter": 90, "half-year": 183}  # in days
BATCH = 50  # sessions in a transaction: nobody waits long for their turn, and little room is needed


def stale(
    store: Store,
    before: int,
    *,
    waiting: bool = False,
    owner: str | None = None,
    among: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return the sessions without activity since a time and without a keep mark, each with its owner.

    They are those of all owners or of one, or some `among` them.

    Those that wait for the user at a gate are left out, unless they are asked for.
    """
    listed: dict[str, str] = {}
    last = ""
    with store.reading() as reader:
        while batch := reader.stale_sessions(before, last, BATCH, waiting=waiting, owner=owner, among=among):
            listed |= {session.session_id: session.owner for session in reader.sessions_among(batch)}
            last = batch[-1]
    return dict(sorted(listed.items()))


def collect(
    store: Store,
    before: int,
    now: int,
    *,
    waiting: bool = False,
    owner: str | None = None,
    among: Sequence[str] | None = None,
) -> Counter[str]:
    """Remove stale sessions, a batch to a transaction, and give their space back, also on a full disk.

    Return how many of each owner were removed.
    """
    removed = Counter[str]()
    store.make_room()
    try:
        while True:
            with store.writing() as writer:
                batch = writer.stale_sessions(before, "", BATCH, waiting=waiting, owner=owner, among=among)
                owners = [session.owner for session in writer.sessions_among(batch)]
                for session_id in batch:
                    writer.remove_session(session_id, now)
            if not batch:
                return removed
            removed.update(owners)
    finally:
        store.give_back()


def set_keep(store: Store, session_id: str, keep: bool) -> None:
    """Mark a session to be kept whatever its age, or take the mark away."""
    with store.writing() as writer:
        writer.set_keep(session_id, keep)
