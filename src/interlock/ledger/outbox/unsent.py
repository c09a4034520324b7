"""What the outbox still holds: messages that wait to be sent, and those that no channel has taken."""

from __future__ import annotations

from typing import Literal

from interlock.ledger.outbox.announcements import TIMER
from interlock.ledger.queries.status import Shown
from interlock.store.protocol import OutboxRow, Store

MOST = 10_000


class UnsentMessage(Shown, frozen=True):
    """A message to one channel. A dead one is tried no more; `error` is why the last try failed."""

    id: str
    channel: str
    event: str
    session: str
    state: Literal["waiting", "dead"]
    tries: int
    created_at: int
    next_try_at: int | None
    error: str


class OutboxStatus(Shown, frozen=True):
    """The messages that are not sent, dead ones first, then by the time of their next try."""

    messages: tuple[UnsentMessage, ...]

    @property
    def dead(self) -> int:
        return sum(message.state == "dead" for message in self.messages)

    @property
    def waiting(self) -> int:
        return len(self.messages) - self.dead


def outbox_status(store: Store) -> OutboxStatus:
    """Return what is not sent; a timer that only waits for its time is not a message."""
    with store.reading() as reader:
        rows = reader.messages(MOST)
    return OutboxStatus(tuple(_message(row) for row in rows if row.channel != TIMER or row.state == "dead"))


def _message(row: OutboxRow) -> UnsentMessage:
    return UnsentMessage(
        id=row.message_id,
        channel=row.channel,
        event=row.kind,
        session=row.session_id,
        state=row.state,
        tries=row.attempts,
        created_at=row.created_at,
        next_try_at=row.due_at if row.state == "waiting" else None,
        error=row.error,
    )
