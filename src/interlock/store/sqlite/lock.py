"""One writer at a time across processes: an advisory lock on its own file, released when its holder dies.

SQLite's own busy handler is unfair under contention.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import monotonic, sleep

from interlock.store.protocol import StoreBusy

PATIENCE = 10.0
POLL_SECONDS = 0.001

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file for once."""
    lock = FileLock(path)
    try:
        with lock:
            yield
    finally:
        lock.close()


class FileLock:
    """An exclusive lock on `path`, as a context manager. The file itself is never removed."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path = path
        self.patience = patience
        self.ends = inf  # when the call is over that takes it
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)

    def __enter__(self) -> FileLock:
        deadline = min(monotonic() + self.patience, self.ends)
        while not self._acquire():
            if monotonic() > deadline:
                raise StoreBusy(f"another process has held {self.path.name} for too long")
            sleep(POLL_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        _unlock(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _acquire(self) -> bool:
        try:
            _try_lock(self._descriptor)
        except (BlockingIOError, PermissionError):
            return False
        return True
