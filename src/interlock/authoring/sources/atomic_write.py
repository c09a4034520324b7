"""Atomic replacement of a file, for every room that writes files beside the database."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

PRIVATE = 0o600


def replace_file(path: Path, body: bytes, *, mode: int = PRIVATE, durable: bool = False) -> None:
    """Replace a file in one step: a reader finds the old content or the new, never a part.

    A file that is replaced keeps its permissions; a new one gets `mode`. With `durable`, the new content
    also survives a power loss.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    before = path.stat() if path.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(draft, flags, PRIVATE if before else mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if before:
            os.chmod(draft, stat.S_IMODE(before.st_mode))
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that files that were just made in a folder are still found after a power loss."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
