"""Sending what waits in the outbox: at least once, by whichever process takes a message first.

Whoever takes a message moves its next try to the end of a lease. If the process dies, the message is due
again then, with the same id. Nothing is sent while a call waits: a thread of its own does it.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # threading costs start-up and adds nothing here
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from interlock.core.message import Message, Undelivered
from interlock.ledger.outbox.announcements import TIMER, Recipient
from interlock.store.protocol import OutboxRow, Store

LEASE_MS = 60_000  # longer than any channel tries
MOST_TRIES = 10
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 4 * 3_600_000
AT_ONCE = 20


def pause_after(tries: int) -> int:
    """Return how many milliseconds to wait after so many tries: each pause is four times the one before."""
    return int(min(FIRST_PAUSE_MS * 4 ** (tries - 1), LONGEST_PAUSE_MS))


class Courier:
    """Sends due messages and does what is due.

    `write` puts a message into words, or returns None if there is nothing left to say; `act` returns when a
    timer is due next, or None.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], int],
        recipients: Callable[[], Mapping[str, Recipient]],
        write: Callable[[OutboxRow, Recipient], Message | None],
        act: Callable[[OutboxRow], OutboxRow | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._recipients = recipients
        self._write = write
        self._act = act
        self._busy = allocate_lock()

    def wake(self) -> None:
        """Send what is due, beside whatever else this process does."""
        if self._busy.acquire(blocking=False):
            start_new_thread(self._work, ())

    def _work(self) -> None:
        try:
            self.send_due()
        except Exception as error:  # a store that is away, or a bug: what was taken is due again later
            from logging import getLogger  # which most processes never need

            getLogger("interlock.outbox").warning("stopped sending: %s: %s", type(error).__name__, error)
        finally:
            self._busy.release()

    def send_due(self) -> int:
        """Try every message that is due now; return how many were tried."""
        tried = 0
        while (row := self._taken()) is not None:
            self._try(row)
            tried += 1
        return tried

    def _taken(self) -> OutboxRow | None:
        """Take one due message, so that no other process tries it before the lease ends."""
        now = self._clock()
        with self._store.reading() as reader:
            due = reader.due_messages(now, AT_ONCE)
        for row in due:
            taken = replace(row, due_at=now + LEASE_MS, attempts=row.attempts + 1)
            with self._store.writing() as writer:
                if writer.change_message(row, taken):
                    return taken
        return None

    def _try(self, row: OutboxRow) -> None:
        try:
            later = self._act(row) if row.channel == TIMER else None
            if row.channel != TIMER:
                self._send(row)
        except Exception as error:
            self._put_back(row, error)
            return
        with self._store.writing() as writer:
            if later is None:
                writer.drop_message(row)
            else:
                writer.change_message(row, later)

    def _send(self, row: OutboxRow) -> None:
        recipient = self._recipients().get(row.channel)
        if recipient is None:
            raise Undelivered(f"no channel '{row.channel}' is configured here")
        message = self._write(row, recipient)
        if message is not None:
            recipient.send(message)

    def _put_back(self, row: OutboxRow, error: Exception) -> None:
        reason = error.reason if isinstance(error, Undelivered) else f"{type(error).__name__}: {error}"
        is_final = isinstance(error, Undelivered) and error.final
        if is_final or row.attempts >= MOST_TRIES:
            later = replace(row, state="dead", error=reason)
        else:
            later = replace(row, due_at=self._clock() + pause_after(row.attempts), error=reason)
        with self._store.writing() as writer:
            writer.change_message(row, later)
