"""Where sessions stand now, to tell which of them have moved since somebody looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import AskingMark, SessionFilter

NEWEST = 50


class NewestHead(Struct, frozen=True):
    """The last event of a session, when it was recorded, and whether the session is marked to be kept."""

    updated_at: int
    index: int
    keep: bool


class SeenSessions(Struct, frozen=True):
    """The heads of the sessions that were worked on last, and a mark of all that ask something."""

    heads: Mapping[str, NewestHead]
    asking: AskingMark


def look_at_sessions(positions: Positions, owner: str | None) -> SeenSessions:
    """Look at the sessions of an owner, or of everybody."""
    with positions.store.reading() as reader:
        sessions, asking = reader.sessions(SessionFilter(owner, limit=NEWEST)), reader.asking_mark(owner)
    heads = {
        session.session_id: NewestHead(session.updated_at, session.head_index, session.keep)
        for session in sessions
    }
    return SeenSessions(heads, asking)


def head_digests(positions: Positions, session_ids: Sequence[str]) -> Mapping[str, bytes]:
    """Return the digests of the last events of these sessions; one that was removed is missing."""
    with positions.store.reading() as reader:
        return reader.head_digests(session_ids)
