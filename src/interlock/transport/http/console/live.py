"""What has moved, as server-sent events. A stream that was cut resumes after the last event that arrived."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

import anyio
import msgspec

from interlock.transport.http.stopping import Stopping

LOOK_SECONDS = 0.5
ALIVE_EVERY = 30
RETRY_MS = 1500
ASKED = b"event: asked\ndata: {}\n\n"  # the inbox is not as it was


class SessionHead(Protocol):
    """Where a session stands."""

    @property
    def updated_at(self) -> int: ...


Heads = Mapping[str, SessionHead]


class Look(Protocol):
    """Where the newest sessions stand, and what differs whenever one of all begins or ceases to ask."""

    @property
    def heads(self) -> Heads: ...

    @property
    def asking(self) -> object: ...


async def change_stream(
    look: Callable[[], Awaitable[Look | None]], after: str, stopping: Stopping
) -> AsyncIterator[bytes]:
    """Yield an event for every change, until the server stops or the reader may not look any more.

    `after` is the id of the last event that the reader has seen; what moved since is sent at once.
    """
    seen = await look()
    if seen is None:
        return
    heads = seen.heads
    yield f"retry: {RETRY_MS}\nid: {cursor_of(heads)}\nevent: began\ndata: {{}}\n\n".encode()
    if after.isdigit():
        since = int(after)
        if missed := [name for name, head in heads.items() if head.updated_at >= since]:
            yield moved_event(missed, heads)
    quiet = 0
    while not stopping.is_set:
        with anyio.move_on_after(LOOK_SECONDS):
            await stopping.wait()
        before, seen = seen, await look()
        if seen is None:
            return
        events = events_between(before, seen)
        quiet = 0 if events else quiet + 1
        for event in events:
            yield event
        if quiet >= ALIVE_EVERY:
            quiet = 0
            yield b": alive\n\n"


def events_between(before: Look, seen: Look) -> list[bytes]:
    """Return what to send of the difference between two looks."""
    moved = [*changed(before.heads, seen.heads), *removed(before.heads, seen.heads)]
    events = [moved_event(moved, seen.heads)] if moved else []
    return [*events, ASKED] if before.asking != seen.asking else events


def changed(known: Heads, heads: Heads) -> list[str]:
    """Return the sessions that are new, or not as they were."""
    return [name for name, head in heads.items() if known.get(name) != head]


def removed(known: Heads, heads: Heads) -> list[str]:
    """Return the sessions that are gone; one that newer ones pushed out of the look is not."""
    oldest = min((head.updated_at for head in heads.values()), default=0)
    return [
        name
        for name, head in known.items()
        if name not in heads and (len(heads) < len(known) or head.updated_at >= oldest)
    ]


def moved_event(sessions: list[str], heads: Heads) -> bytes:
    """Return one event that names the sessions that have moved."""
    data = msgspec.json.encode({"sessions": sessions})
    return b"id: %d\nevent: moved\ndata: %b\n\n" % (cursor_of(heads), data)


def cursor_of(heads: Heads) -> int:
    """Return the id of the newest change."""
    return max((head.updated_at for head in heads.values()), default=0)
