"""The hash chain: a commit's digest covers the one before it, its position, time, key and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.log.records import LogEntry
from interlock.ledger.tokens.tokens import LINE_BYTES
from interlock.store.protocol import CommitRow

GENESIS = bytes(32)


class Entry(Struct, frozen=True, array_like=True):
    """One event in a commit. `node` is the node that it leads to or is attached to."""

    event: LogEntry
    run: int | None = None
    node: int | None = None


class CommitBody(Struct, frozen=True, array_like=True):
    """What a command brought about, and the principal who gave it: the digest covers both."""

    principal: str
    entries: tuple[Entry, ...]


class Logged(Struct, frozen=True):
    """One event with its position in the session, and the time, principal and time line of its command."""

    index: int
    at: int
    event: LogEntry
    run: int | None
    node: int | None
    principal: str
    line: bytes


_encode = msgspec.json.Encoder().encode
_body = LazyDecoder(CommitBody)


def commit_of(
    session_id: str,
    head_index: int,
    before: bytes,
    principal: str,
    entries: Sequence[Entry],
    now: int,
    key: str | None,
) -> CommitRow:
    """Chain the events of one command onto the commit before it."""
    body, first = _encode((principal, entries)), head_index + 1
    digest = link(before, first, now, key, body)
    return CommitRow(session_id, first, head_index + len(entries), now, digest, body, key)


def link(before: bytes, first: int, recorded_at: int, key: str | None, body: bytes) -> bytes:
    """Return the digest of a commit."""
    return sha256(link_prefix(before, first, recorded_at, key) + body).digest()


def link_prefix(before: bytes, first: int, recorded_at: int, key: str | None) -> bytes:
    """Return what the digest of a commit covers before its bytes."""
    return before + f"{first}:{recorded_at}:{key or ''}:".encode()


def follows(before: bytes, row: CommitRow) -> bool:
    """Say whether the commit's digest is the one that its content and predecessor demand."""
    return isinstance(row.body, bytes) and row.digest == digest_after(before, row)


def digest_after(before: bytes, row: CommitRow) -> bytes:
    """Return the digest that a commit must have after another."""
    return link(before, row.first, row.recorded_at, row.key, row.body)


def body_of(row: CommitRow) -> CommitBody:
    """Decode what a commit holds."""
    return _body.decode(row.body)


def entries_of(row: CommitRow) -> tuple[Entry, ...]:
    """Decode the events of a commit."""
    return body_of(row).entries


def logged(
    commits: Iterable[CommitRow], *, newest_first: bool = False, end: int | None = None
) -> Iterator[Logged]:
    """Yield the events of commits in the order in which the commits come; none of a commit from `end` on."""
    for row in commits:
        if end is not None and row.first >= end:
            continue
        body = body_of(row)
        events = [
            logged_entry(row, offset, entry, body.principal) for offset, entry in enumerate(body.entries)
        ]
        yield from reversed(events) if newest_first else events


def logged_entry(row: CommitRow, offset: int, entry: Entry, principal: str) -> Logged:
    """Return one event of a commit with what its commit says about it."""
    line = row.digest[:LINE_BYTES]
    return Logged(row.first + offset, row.recorded_at, entry.event, entry.run, entry.node, principal, line)


def kind_of(event: LogEntry) -> str:
    """Return the name under which an event is stored."""
    return str(event.__struct_config__.tag)
