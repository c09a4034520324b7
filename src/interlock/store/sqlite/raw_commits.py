"""Commits that SQLite cannot reach or read any more, found by their bytes in the pages of a damaged file.

A changed bit in the header of a page or of a row hides rows whose content is whole. Each begins with its
session's id, so it can be found without the page's own list of rows, and its types tell where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.store.protocol import CommitRow
from interlock.store.sqlite.store import PAGE_SIZE

ID = b"sess_"
HEADERS = range(8, 12)  # bytes; the types of seven columns, and how many bytes these are
SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}  # of the types of NULL and of integers
DIGEST = 12 + 2 * 32
MOST_IN_PAGE = PAGE_SIZE - 35
LEAST_IN_PAGE = (PAGE_SIZE - 12) * 32 // 255 - 23


def raw_commits(path: Path) -> Iterator[CommitRow]:
    """Yield every commit that can be found in a file without its log; some may be old or there twice."""
    content = path.read_bytes()
    at = content.find(ID)
    while at >= 0:
        for header in HEADERS:
            if (row := _row(content, at - header, header)) is not None:
                yield row
                break
        at = content.find(ID, at + 1)


def _row(content: bytes, start: int, header: int) -> CommitRow | None:
    """Read the row that begins here, if one does; its header may have one changed bit."""
    stored = content[start : start + header]
    if start < 0 or abs(stored[0] - header) not in (0, 1, 2, 4, 8, 16, 32, 64, 128):
        return None
    for bit in range(-1, 8 * header):
        types = bytearray(stored)
        if bit >= 0:
            types[bit // 8] ^= 1 << bit % 8
        if (row := _read(content, start, bytes(types))) is not None:
            return row
    return None


def _read(content: bytes, start: int, header: bytes) -> CommitRow | None:
    types = list(_varints(header))
    if types[0] != len(header) or len(types) != 8:
        return None
    _, id_, first, last, at, digest, body, key = types
    is_text = id_ > 12 and id_ % 2 == 1 and (key == 0 or (key > 12 and key % 2 == 1))
    if (
        not is_text
        or digest != DIGEST
        or body < 12
        or body % 2
        or any(n not in SIZES for n in (first, last, at))
    ):
        return None
    sizes = [SIZES[kind] if kind in SIZES else (kind - 12) // 2 for kind in types[1:]]
    payload = _payload(content, start, len(header) + sum(sizes))
    parts, place = list[bytes](), len(header)
    for size in sizes:
        parts.append(payload[place : place + size])
        place += size
    try:
        if place != len(payload) or not isinstance(msgspec.json.decode(parts[5]), list):
            return None
        named = parts[6].decode() if key else None
        return CommitRow(
            parts[0].decode(),
            _integer(first, parts[1]),
            _integer(last, parts[2]),
            _integer(at, parts[3]),
            parts[4],
            parts[5],
            named,
        )
    except ValueError:
        return None


def _payload(content: bytes, start: int, size: int) -> bytes:
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


def _integer(kind: int, stored: bytes) -> int:
    return kind - 8 if kind in (8, 9) else int.from_bytes(stored, "big", signed=True)
