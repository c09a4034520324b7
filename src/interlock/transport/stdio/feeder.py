"""A thread that reads where a pipe cannot be selected on, and feeds the same loop.

It is imported only there.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator

_CHUNK = 64 * 1024
_HEARTBEAT = 0.5


def fed_chunks(fd: int, ended: Callable[[], bool]) -> Iterator[bytes]:
    """Give what is read until the input ends or a signal says stop."""
    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_feed, args=(fd, chunks), daemon=True).start()
    while not ended():
        try:
            chunk = chunks.get(timeout=_HEARTBEAT)
        except queue.Empty:
            continue
        if not chunk:
            yield b"\n"  # the last line may lack its end
            return
        yield chunk


def _feed(fd: int, chunks: queue.SimpleQueue[bytes]) -> None:
    while chunk := os.read(fd, _CHUNK):
        chunks.put(chunk)
    chunks.put(b"")
