"""The end of the server: what waits hears of it at once, so that what was promised can still be sent."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from starlette.types import Message, Receive


class Stopping:
    """Set once, when the server is to exit."""

    def __init__(self) -> None:
        self.is_set = False
        self._event: anyio.Event | None = None
        self._actions: list[Callable[[], None]] = []

    def on_stop(self, action: Callable[[], None]) -> None:
        """Do this when the server stops."""
        self._actions.append(action)

    def set(self) -> None:
        """Tell everybody that waits."""
        self.is_set = True
        for action in self._actions:
            action()
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until the server is to exit."""
        if self._event is None:
            self._event = anyio.Event()
        if not self.is_set:
            await self._event.wait()

    def ending(self, receive: Receive) -> Receive:
        """Return a channel that reports a disconnect when the server stops: an endless stream ends by it."""

        async def next_message() -> Message:
            message: Message = {"type": "http.disconnect"}

            async def from_client() -> None:
                nonlocal message
                message = await receive()
                either.cancel()

            async def from_server() -> None:
                await self.wait()
                either.cancel()

            async with anyio.create_task_group() as group:
                either = group.cancel_scope
                group.start_soon(from_client)
                group.start_soon(from_server)
            return message

        return next_message
