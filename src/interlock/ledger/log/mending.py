"""One changed bit in a commit, found by its digest: without it, all that comes after would be cut."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from msgspec.structs import replace

from interlock.ledger.log.chain import follows, link_prefix
from interlock.store.protocol import CommitRow

LARGEST_BODY = 32_768  # bytes; every bit is tried, and the time grows with the square
BITS_OF_A_TIME = 48


def mended(row: CommitRow, before: bytes) -> CommitRow | None:
    """Return a commit as it was before one bit of its time, key or body changed; None if it was more."""
    body = _mended_body(row, before) if isinstance(row.body, bytes) else None
    if body is not None:
        return replace(row, body=body)
    return next((other for other in _with_another_head(row) if follows(before, other)), None)


def _with_another_head(row: CommitRow) -> Iterator[CommitRow]:
    for bit in range(BITS_OF_A_TIME):
        yield replace(row, recorded_at=row.recorded_at ^ 1 << bit)
    key = (row.key or "").encode()
    for bit in range(8 * len(key)):
        changed = bytearray(key)
        changed[bit // 8] ^= 1 << bit % 8
        yield replace(row, key=changed.decode(errors="replace"))


def _mended_body(row: CommitRow, before: bytes) -> bytes | None:
    """Try every bit; what comes before it is hashed once."""
    if len(row.body) > LARGEST_BODY:
        return None
    hashed = sha256(link_prefix(before, row.first, row.recorded_at, row.key))
    for at, byte in enumerate(row.body):
        rest = row.body[at + 1 :]
        for bit in range(8):
            whole = hashed.copy()
            whole.update(bytes((byte ^ 1 << bit,)) + rest)
            if whole.digest() == row.digest:
                return row.body[:at] + bytes((byte ^ 1 << bit,)) + rest
        hashed.update(row.body[at : at + 1])
    return None
