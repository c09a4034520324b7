"""Health of a session: what progress checks in constant time, and the whole chain for those who look."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct

from interlock.ledger.log.chain import GENESIS, follows, read_event
from interlock.store.protocol import EventRow, Health, Reader, SessionRow


class ChainReport(Struct, frozen=True):
    """The verdict on a session's log. `valid` events form the prefix that can be trusted."""

    health: Health
    valid: int
    total: int
    reason: str = ""


def intact(body: bytes, digest: bytes) -> bool:
    """Say whether stored bytes are what was stored; a column of another type is damage too."""
    return isinstance(body, bytes) and sha256(body).digest() == digest


def damage(reader: Reader, session: SessionRow) -> str | None:
    """What keeps this session from going on; checks the head only (rule 44)."""
    if session.health != "healthy":
        return session.health_reason or session.health
    before = max(session.head_index - 1, 0)
    events = list(reader.events(session.session_id, start=before, limit=3))
    if not events:
        return "its log is empty"
    *earlier, last = events
    if last.index != session.head_index or last.digest != session.head_digest:
        return "the head of its log does not match the last event"
    if not follows(earlier[-1].digest if earlier else GENESIS, last):
        return "the last event does not match its digest"
    return None


def examine(reader: Reader, session: SessionRow) -> ChainReport:
    """Check every event of a session against the chain."""
    return examine_events(reader.events(session.session_id), session)


def examine_events(events: Iterable[EventRow], session: SessionRow) -> ChainReport:
    """Check events as they come, oldest first; each is looked at once."""
    before, valid, total = GENESIS, 0, session.head_index + 1
    for row in events:
        diagnostic = _problem(before, valid, row)
        if diagnostic:
            health: Health = "corrupt_head" if valid == 0 else "corrupt_tail"
            if diagnostic == "unknown_schema_version":
                health = "unknown_version"
            return ChainReport(health, valid, total, f"{diagnostic} at event {row.index}")
        before, valid = row.digest, valid + 1
    if valid != total or before != session.head_digest:
        return ChainReport(
            "corrupt_tail" if valid else "corrupt_head", valid, total, "missing events at the end"
        )
    return ChainReport("healthy", valid, total)


def _problem(before: bytes, expected: int, row: EventRow) -> str:
    if row.index != expected:
        return "non_contiguous_indices"
    if not isinstance(row.payload, bytes) or not follows(before, row):
        return "digest_mismatch"
    try:
        read_event(row)
    except msgspec.ValidationError as error:
        return "unknown_schema_version" if "Invalid value" in str(error) else "schema_validation_failed"
    except msgspec.DecodeError:
        return "schema_validation_failed"
    return ""
