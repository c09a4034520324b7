"""Detects by size and time whether files have changed since they were read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

CLOCK_GRAIN_NS = 50_000_000


class Stamp(Struct, frozen=True, array_like=True):
    """Size and time of a path when it was read; size -1 means that nothing was there."""

    path: str
    size: int
    time: int


def stamp_of(path: Path | str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return Stamp(str(path), -1, 0)
    size = status.st_size if S_ISREG(status.st_mode) else 0
    return Stamp(str(path), size, status.st_mtime_ns)


def unchanged(stamps: Iterable[Stamp], read_at: int) -> bool:
    """Say whether every path has the same size and time.

    A file that was read in the same clock tick in which it was written may have changed again since.
    """
    return all(
        stamp_of(stamp.path) == stamp and abs(read_at - stamp.time) > CLOCK_GRAIN_NS for stamp in stamps
    )


def fingerprint(paths: Iterable[Path]) -> str:
    """Return one word for the state of many files."""
    states = sorted((stamp.path, stamp.size, stamp.time) for stamp in map(stamp_of, paths))
    return sha256(repr(states).encode()).hexdigest()[:32]
