"""The threads of the server: a store that hangs takes only those of the calls that use it.

A call waits a bounded time for a thread. While none becomes free, further calls are refused at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

STORE_THREADS = 8
OTHER_THREADS = 4
MOST_QUEUED = 512
QUEUE_SECONDS = 10.0
SATURATED_SECONDS = 2.0


class Saturated(Exception):
    """All threads are taken, and have been for longer than a call waits for one."""


class Workers:
    """Threads for what uses the store, and a few for what does not."""

    def __init__(self) -> None:
        self._store = anyio.CapacityLimiter(STORE_THREADS)
        self._others = anyio.CapacityLimiter(OTHER_THREADS)
        self._taken = anyio.CapacityLimiter(math.inf)  # who runs has one of `_store` already
        self._queue: dict[object, float] = {}
        self._freed_at = -math.inf

    @property
    def are_saturated(self) -> bool:
        """Tell whether a call that uses the store should not even wait: others do, and none gets a thread."""
        stuck_since = max(self._freed_at, next(iter(self._queue.values()), math.inf))
        return len(self._queue) >= MOST_QUEUED or anyio.current_time() - stuck_since > SATURATED_SECONDS

    async def on_store(self, call: Callable[..., T], *arguments: object) -> T:
        """Run what may wait for the store, so that others are answered meanwhile."""
        caller = object()
        self._queue[caller] = anyio.current_time()
        try:
            with anyio.fail_after(QUEUE_SECONDS):
                await self._store.acquire_on_behalf_of(caller)
        except TimeoutError:
            raise Saturated from None
        finally:
            del self._queue[caller]
        try:
            return await anyio.to_thread.run_sync(call, *arguments, limiter=self._taken)
        finally:
            self._freed_at = anyio.current_time()
            self._store.release_on_behalf_of(caller)

    async def beside_store(self, call: Callable[..., T], *arguments: object) -> T:
        """Run what uses no store."""
        return await anyio.to_thread.run_sync(call, *arguments, limiter=self._others)


class Readiness:
    """Asks whether calls can be answered, on a thread of its own; no answer is older than its question."""

    def __init__(self, not_ready: Callable[[], str | None]) -> None:
        self._not_ready = not_ready
        self._thread = anyio.CapacityLimiter(1)
        self._turn = anyio.Lock()
        self._began = 0.0
        self._reason: str | None = None

    async def reason(self) -> str | None:
        """Say why calls cannot be answered now; None if they can."""
        asked = anyio.current_time()
        async with self._turn:
            if self._began <= asked:
                self._began = anyio.current_time()
                self._reason = await anyio.to_thread.run_sync(self._not_ready, limiter=self._thread)
            return self._reason
