"""The hash chain: every event's digest covers the one before it, its place and its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from interlock.ledger.log.records import LogEntry
from interlock.store.protocol import EventRow, SessionRow

GENESIS = bytes(32)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LogEntry).decode


class Chain:
    """Events of one transaction, chained onto a session's head."""

    def __init__(self, session_id: str, head_index: int, head_digest: bytes, now: int) -> None:
        self.session_id = session_id
        self.head_index = head_index
        self.head_digest = head_digest
        self.now = now
        self.rows: list[EventRow] = []

    @classmethod
    def onto(cls, session: SessionRow, now: int) -> Chain:
        return cls(session.session_id, session.head_index, session.head_digest, now)

    def add(
        self, event: LogEntry, *, run: int | None = None, node: int | None = None, key: str | None = None
    ) -> None:
        """Append one event; `key` makes it unique in its session."""
        payload, kind = _encode(event), kind_of(event)
        index = self.head_index + 1
        digest = link(self.head_digest, index, kind, payload, run, node)
        self.rows.append(EventRow(self.session_id, index, kind, payload, digest, self.now, run, node, key))
        self.head_index, self.head_digest = index, digest

    def add_all(self, events: Iterable[LogEntry], *, run: int, node: int | None) -> None:
        for event in events:
            self.add(event, run=run, node=node)


def kind_of(event: LogEntry) -> str:
    return str(event.__struct_config__.tag)


def link(before: bytes, index: int, kind: str, payload: bytes, run: int | None, node: int | None) -> bytes:
    """The digest of one event."""
    target = f"{index}:{kind}:{run}:{node}:".encode()
    return sha256(before + target + payload).digest()


def follows(before: bytes, row: EventRow) -> bool:
    """Say whether the row's digest is the one that its content and predecessor demand."""
    return isinstance(row.payload, bytes) and row.digest == link(
        before, row.index, row.kind, row.payload, row.run, row.node
    )


def read_event(row: EventRow) -> LogEntry:
    """Decode a stored event."""
    event: LogEntry = _decode(row.payload)
    return event
