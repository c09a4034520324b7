"""Sending what waits in the outbox: at least once, by whichever process takes a message first.

Whoever takes a message moves its next try to the end of a lease. If the process dies, the message is due
again then, with the same id. Nothing is sent while a call waits: a thread of its own does it. Each message
has a thread and a time limit too: a receiver that answers a byte at a time holds up no other channel.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread  # threading costs start-up and adds nothing here
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from interlock.core.message import Message, Send, Undelivered
from interlock.ledger.outbox.announcements import TIMER, Recipient
from interlock.store.protocol import OutboxRow, Store

SEND_SECONDS = 10.0
LEASE_MS = 60_000  # longer than any channel tries
MOST_TRIES = 10
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 4 * 3_600_000
AT_ONCE = 20


def pause_after(tries: int) -> int:
    """Return how many milliseconds to wait after so many tries: each pause is four times the one before."""
    return int(min(FIRST_PAUSE_MS * 4 ** (tries - 1), LONGEST_PAUSE_MS))


class ChannelSilent(Undelivered):
    """A channel has not answered in time."""


class Sending:
    """One message on its way, in a thread of its own, which is left behind if it takes too long."""

    def __init__(self, send: Send, message: Message) -> None:
        self._send = send
        self._message = message
        self._error: Exception | None = None
        self._running = allocate_lock()
        self._running.acquire()
        start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._send(self._message)
        except Exception as error:  # raised again where somebody waits for it
            self._error = error
        finally:
            self._running.release()

    @property
    def is_under_way(self) -> bool:
        return self._running.locked()

    def wait(self) -> None:
        """Wait for the channel's answer; raise what went wrong, or that there is none in time."""
        if not self._running.acquire(timeout=SEND_SECONDS):
            raise ChannelSilent(f"no whole answer within {SEND_SECONDS:g} seconds")
        self._running.release()
        if self._error is not None:
            raise self._error


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
        self._silent: dict[str, tuple[Sending, int]] = {}  # by channel, and when it is tried again

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
        """Try every message that is due now; return how many were tried.

        A channel that has not answered in time is left alone for a while, and as long as it has not let go.
        """
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
        if self._is_silent(row.channel):
            raise Undelivered("the channel has not answered to an earlier message")
        message = self._write(row, recipient)
        if message is None:
            return
        sending = Sending(recipient.send, message)
        try:
            sending.wait()
        except ChannelSilent:
            self._silent[row.channel] = sending, self._clock() + FIRST_PAUSE_MS
            raise

    def _is_silent(self, channel: str) -> bool:
        sending, until = self._silent.get(channel, (None, 0))
        return sending is not None and (sending.is_under_way or self._clock() < until)

    def _put_back(self, row: OutboxRow, error: Exception) -> None:
        reason = error.reason if isinstance(error, Undelivered) else f"{type(error).__name__}: {error}"
        is_final = isinstance(error, Undelivered) and error.final
        if is_final or row.attempts >= MOST_TRIES:
            later = replace(row, state="dead", error=reason)
        else:
            later = replace(row, due_at=self._clock() + pause_after(row.attempts), error=reason)
        with self._store.writing() as writer:
            writer.change_message(row, later)
