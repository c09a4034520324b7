"""Where sessions stand now, to tell which of them have moved since somebody looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import SessionFilter

NEWEST = 50


class NewestHead(Struct, frozen=True):
    """The last event of a session, when it was recorded, and whether the session is marked to be kept."""

    updated_at: int
    index: int
    keep: bool


def newest_heads(positions: Positions, owner: str | None) -> Mapping[str, NewestHead]:
    """Return the heads of the sessions that were worked on last: an owner's, or everybody's."""
    with positions.store.reading() as reader:
        sessions = reader.sessions(SessionFilter(owner, limit=NEWEST))
    return {
        session.session_id: NewestHead(session.updated_at, session.head_index, session.keep)
        for session in sessions
    }


def head_digests(positions: Positions, session_ids: Sequence[str]) -> Mapping[str, bytes]:
    """Return the digests of the last events of these sessions; one that was removed is missing."""
    with positions.store.reading() as reader:
        return reader.head_digests(session_ids)
