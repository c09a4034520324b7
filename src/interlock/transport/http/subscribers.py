"""Everybody whom this process tells of changes. One look a second serves all, while somebody listens.

Replicas tell each other nothing: each looks for what its own clients follow.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from msgspec import Struct

from interlock.surfaces.resources import Topic
from interlock.surfaces.tool import Surface
from interlock.transport.http.stopping import Stopping
from interlock.transport.subscriptions import Changed, Subscription, Versions

MOST_SESSIONS = 10_000

Look = Callable[[Collection[Topic]], Awaitable[Versions]]


class SessionSubscription(Struct):
    """What a session of the handshake era follows, and how it is told, once it has asked for something."""

    subscription: Subscription
    session: ServerSession | None = None


class Subscribers:
    """The open streams of both eras, and the subscriptions of handshake sessions."""

    def __init__(self, look: Look, stopping: Stopping) -> None:
        self._look = look
        self._stopping = stopping
        self._listening: Counter[Subscription] = Counter()
        self._sessions: OrderedDict[str, SessionSubscription] = OrderedDict()
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
        """Return what a session follows. The oldest are forgotten: their clients are long gone."""
        own = self._sessions.get(session_id)
        if own is None:
            own = self._sessions[session_id] = SessionSubscription(Subscription(surface))
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return own

    def forget(self, session_id: str) -> None:
        """Forget a session that its client has ended."""
        self._sessions.pop(session_id, None)

    async def tell_session(self, session_id: str, surface: Surface) -> None:
        """Tell a session of changes while its stream is open; before that a message would be lost."""
        own = self.of_session(session_id, surface)
        with self.listening(own.subscription), suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
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
