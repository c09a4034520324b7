"""Tells by size and time whether files have changed since they were read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

CLOCK_GRAIN_NS = 50_000_000


class Stamp(Struct, frozen=True, array_like=True):
    """A path as it was when it was looked at; size -1 stands for nothing there."""

    path: str
    size: int
    time: int


def stamp_of(path: Path | str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return Stamp(str(path), -1, 0)
    size = found.st_size if S_ISREG(found.st_mode) else 0
    return Stamp(str(path), size, found.st_mtime_ns)


def unchanged(stamps: Iterable[Stamp], read_at: int) -> bool:
    """Say whether every path is as it was.

    A file that was written in the same tick of the clock as it was read may have changed again within it.
    """
    return all(stamp_of(one.path) == one and abs(read_at - one.time) > CLOCK_GRAIN_NS for one in stamps)


def fingerprint(paths: Iterable[Path]) -> str:
    """One word for the state of many files."""
    known = sorted((one.path, one.size, one.time) for one in map(stamp_of, paths))
    return sha256(repr(known).encode()).hexdigest()[:32]
