"""Commits that SQLite cannot reach or read any more, found by their bytes in the pages of a damaged file.

A changed bit in the header of a page or of a row hides rows whose content is whole. Each begins with its
session's id, so it can be found without the page's own list of rows, and its types tell where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.store.protocol import CommitRow
from interlock.store.sqlite.store import PAGE_SIZE

ID = b"sess_"
HEADERS = range(8, 12)  # bytes; the types of seven columns, and how many bytes these are
SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}  # of the types of NULL and of integers
EARLIEST = 10**12  # milliseconds; before 2002 nothing was recorded
DIGEST = 12 + 2 * 32
MOST_IN_PAGE = PAGE_SIZE - 35
LEAST_IN_PAGE = (PAGE_SIZE - 12) * 32 // 255 - 23


class RawCommit(Struct, frozen=True):
    """A commit as its bytes tell it; one that is `mended` had a changed bit in its header."""

    row: CommitRow
    mended: bool


def raw_commits(path: Path) -> Iterator[RawCommit]:
    """Yield every commit that can be found in a file without its log; some may be old or there twice."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        at = content.find(ID)
        while at >= 0:
            found = (_found(content, at - header, header) for header in HEADERS if header <= at)
            if (raw := next(filter(None, found), None)) is not None:
                yield raw
            at = content.find(ID, at + 1)


def _found(content: mmap, start: int, size: int) -> RawCommit | None:
    """Read the row that begins here with a header of this size, if one does."""
    header = content[start : start + size]
    if (header[0] != size) + (header[5] != DIGEST) + (not _is_text(header[1])) > 1:
        return None
    if (row := _read(content, start, header)) is not None:
        return RawCommit(row, mended=False)
    for bit in range(8 * size):
        changed = bytearray(header)
        changed[bit // 8] ^= 1 << bit % 8
        row = _read(content, start, bytes(changed))
        if row is not None and 0 <= row.first <= row.last and row.recorded_at > EARLIEST:
            return RawCommit(row, mended=True)  # several bits may fit; with another one the time is none
    return None


def _read(content: mmap, start: int, header: bytes) -> CommitRow | None:
    types = list(_varints(header))
    if len(types) != 8 or types[0] != len(header):
        return None
    _, session_id, first, last, recorded_at, digest, body, key = types
    are_right = (
        _is_text(session_id),
        {first, last, recorded_at} <= SIZES.keys(),
        digest == DIGEST,
        body >= 12 and body % 2 == 0,
        key == 0 or _is_text(key),
    )
    if not all(are_right):
        return None
    sizes = [SIZES[kind] if kind in SIZES else (kind - 12) // 2 for kind in types[1:]]
    places = [*accumulate(sizes, initial=len(header))]
    payload = _payload(content, start, places[-1])
    parts = [payload[begin:end] for begin, end in pairwise(places)]
    numbers = [
        kind - 8 if kind in (8, 9) else int.from_bytes(part, "big", signed=True)
        for kind, part in zip(types[2:5], parts[1:4], strict=True)
    ]
    try:
        msgspec.json.decode(parts[5])
        name, named = parts[0].decode(), parts[6].decode() if key else None
    except ValueError:
        return None
    if len(payload) != places[-1]:
        return None
    return CommitRow(name, numbers[0], numbers[1], numbers[2], parts[4], parts[5], named)


def _is_text(kind: int) -> bool:
    return kind > 12 and kind % 2 == 1


def _payload(content: mmap, start: int, size: int) -> bytes:
    """Return the bytes of a row: what is in its page, and what is in the pages that this leads to."""
    if size <= MOST_IN_PAGE:
        return content[start : start + size]
    local = LEAST_IN_PAGE + (size - LEAST_IN_PAGE) % (PAGE_SIZE - 4)
    local = local if local <= MOST_IN_PAGE else LEAST_IN_PAGE
    payload = content[start : start + local]
    number = int.from_bytes(content[start + local : start + local + 4], "big")
    while len(payload) < size and 0 < number <= len(content) // PAGE_SIZE:
        page = content[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        payload += page[4 : 4 + size - len(payload)]
        number = int.from_bytes(page[:4], "big")
    return payload


def _varints(text: bytes) -> Iterator[int]:
    value = 0
    for byte in text:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0
