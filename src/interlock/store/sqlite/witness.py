"""A witness of each session's head beside the database, so that commits that vanish are missed.

SQLite drops the end of a log that was damaged or lost without a word. The witness is written after each
commit, without waiting for the disk: it may lag behind the database, and never claims what was not stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import crc32

from msgspec import Struct

LARGEST = 2**20  # bytes; a longer one is cut to the newest line of each session
MOST_SESSIONS = 5_000
LONGEST_LINE = 1024


class Head(Struct, frozen=True):
    """The last event that a session had, and the digest of its commit."""

    session_id: str
    index: int
    digest: bytes


class Witness:
    """A file of lines that only grows; the last line of a session counts, and a damaged one does not.

    `store_id` tells this store from one that was in its place before.
    """

    def __init__(self, path: Path, store_id: int) -> None:
        self.path = path
        self._mark = b"%08x" % (store_id & 0xFFFFFFFF)
        self._descriptor: int | None = None

    def note(self, heads: Iterable[Head]) -> None:
        """Add heads that are stored now."""
        text = b"".join(map(self._line, heads))
        if not text:
            return
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
                self._descriptor = os.open(self.path, flags, 0o600)
            os.write(self._descriptor, text)
        except OSError:
            pass  # what was acknowledged is stored; a witness that cannot be written only sees less

    def heads(self) -> Mapping[str, Head]:
        """Return the newest head of each session that has one."""
        heads: dict[str, Head] = {}
        for head in self._read(0):
            heads.pop(head.session_id, None)
            heads[head.session_id] = head
        return heads

    def newest(self) -> Head | None:
        """Return the head that was noted last."""
        return next(iter(self._read(-LONGEST_LINE)[::-1]), None)

    def _read(self, start: int) -> list[Head]:
        try:
            with self.path.open("rb") as file:
                file.seek(max(start, -os.fstat(file.fileno()).st_size), os.SEEK_END if start else os.SEEK_SET)
                lines = file.read().split(b"\n")
        except OSError:
            return []
        heads = []
        for line in lines:
            body, _, checked = line.rpartition(b" ")
            parts = body.split(b" ")
            if len(parts) == 4 and parts[0] == self._mark and checked == b"%08x" % crc32(body):
                session_id, index, digest = (part.decode() for part in parts[1:])
                heads.append(Head(session_id, int(index), bytes.fromhex(digest)))
        return heads

    def replace(self, heads: Iterable[Head]) -> None:
        """Write the witness anew; under the store's lock."""
        self.close()
        draft = self.path.with_name(f"{self.path.name}.new")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(map(self._line, heads))
            draft.replace(self.path)
        except OSError:
            draft.unlink(missing_ok=True)

    def shorten(self) -> None:
        """Keep the newest line of each session, if the file has grown long; under the store's lock."""
        try:
            is_long = self.path.stat().st_size > LARGEST
        except OSError:
            return
        if is_long:
            self.replace(list(self.heads().values())[-MOST_SESSIONS:])

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _line(self, head: Head) -> bytes:
        body = b"%s %s %d %s" % (
            self._mark,
            head.session_id.encode(),
            head.index,
            head.digest.hex().encode(),
        )
        return b"%s %08x\n" % (body, crc32(body))
