"""The log of a session as tests read it."""

from __future__ import annotations

from interlock.ledger.log.chain import Logged, kind_of, logged
from interlock.store.protocol import Store


def logged_events(store: Store, session_id: str, *kinds: str) -> list[Logged]:
    """The events of a session, oldest first, of these kinds or of all."""
    with store.reading() as reader:
        rows = list(logged(reader.commits(session_id)))
    return [row for row in rows if not kinds or kind_of(row.event) in kinds]


def event_kinds(store: Store, session_id: str) -> list[str]:
    """The kinds of a session's events, oldest first."""
    return [kind_of(row.event) for row in logged_events(store, session_id)]
