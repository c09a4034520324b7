"""Everybody whom this process tells of changes. One look a second serves all, while somebody listens.

Replicas tell each other nothing: each looks for what its own clients follow.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import anyio
import mcp_types as types
from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.session import ServerSession
from mcp.server.streamable_http_manager import DEFAULT_SESSION_IDLE_TIMEOUT
from msgspec import Struct

from interlock.surfaces.resources import Topic
from interlock.surfaces.tool import Surface
from interlock.transport.http.stopping import Stopping
from interlock.transport.subscriptions import Changed, Subscription, Versions

Look = Callable[[Collection[Topic]], Awaitable[Versions]]


class SessionSubscription(Struct):
    """What a session of the handshake era follows, and how it is told, once it has asked for something."""

    subscription: Subscription
    used_at: float
    session: ServerSession | None = None


class Subscribers:
    """The open streams of both eras, and the subscriptions of handshake sessions."""

    def __init__(self, look: Look, stopping: Stopping, clock: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._stopping = stopping
        self._clock = clock
        self._listening: Counter[Subscription] = Counter()
        self._sessions: dict[str, SessionSubscription] = {}
        self._versions: Versions = {}
        self._looked = anyio.Event()
        stopping.on_stop(self._wake)

    @contextmanager
    def listening(self, subscription: Subscription) -> Iterator[None]:
        """Look for what a subscription follows, as long as its stream is open."""
        self._listening[subscription] += 1
        try:
            yield
        finally:
            self._listening[subscription] -= 1
            self._listening += Counter()  # drops those that nobody listens to

    async def look(self) -> None:
        """Look for all who listen, and wake those who wait for changes."""
        self._forget_idle_sessions()
        topics = {topic for subscription in self._listening for topic in subscription.topics()}
        if topics:
            self._versions = await self._look(topics)
            self._wake()

    async def changes(self, subscription: Subscription) -> list[Changed]:
        """Wait until something has changed for a subscription; nothing is returned when the server stops.

        Who is slow to read gets everything at once: nothing piles up meanwhile.
        """
        while not self._stopping.is_set:
            await self._looked.wait()
            if changed := subscription.changes(self._versions):
                return changed
        return []

    def of_session(self, session_id: str, surface: Surface) -> SessionSubscription:
        """Return what a session follows."""
        if session_id not in self._sessions:
            self._sessions[session_id] = SessionSubscription(Subscription(surface), self._clock())
        self.renew(session_id)
        return self._sessions[session_id]

    def renew(self, session_id: str) -> None:
        """Keep what a session follows, because it was in use until now."""
        if (own := self._sessions.pop(session_id, None)) is not None:
            own.used_at = self._clock()
            self._sessions[session_id] = own  # the order is that of their last use

    def _forget_idle_sessions(self) -> None:
        """Forget the sessions that the SDK has ended, because no request of theirs was open for long."""
        for session_id, own in list(self._sessions.items()):
            if self._clock() - own.used_at < DEFAULT_SESSION_IDLE_TIMEOUT:
                return
            if own.subscription not in self._listening:
                del self._sessions[session_id]

    def forget(self, session_id: str) -> None:
        """Forget a session that its client has ended."""
        self._sessions.pop(session_id, None)

    async def tell_session(self, session_id: str, surface: Surface) -> None:
        """Tell a session of changes while its stream is open; before that a message would be lost."""
        own = self.of_session(session_id, surface)
        with self.listening(own.subscription), suppress(ClosedResourceError, BrokenResourceError):
            while changes := await self.changes(own.subscription):
                assert own.session is not None, "who follows something has asked for it"
                for change in changes:
                    await own.session.send_notification(notification_of(change, {}))

    def _wake(self) -> None:
        self._looked.set()
        self._looked = anyio.Event()


def notification_of(change: Changed, meta: dict[str, str | int]) -> types.ServerNotification:
    """Return a change as the SDK sends it."""
    message = {"method": change.method, "params": change.params(meta) or None}
    return types.server_notification_adapter.validate_python(message)
