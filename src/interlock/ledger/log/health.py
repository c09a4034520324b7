"""Health of a session: what progress checks in constant time, and the whole chain for those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.ledger.log.chain import GENESIS, digest_after, entries_of, follows
from interlock.ledger.log.mending import mended
from interlock.store.protocol import CommitRow, Health, LoadedRows, Reader, SessionRow, StartRow, Store


class ChainReport(Struct, frozen=True):
    """The verdict on a session's log. The `valid` commits form the prefix that can be trusted.

    `events` counts the events in them, `total` those that the session once had.
    """

    health: Health
    valid: int
    events: int
    total: int
    reason: str = ""


def intact(body: bytes, digest: bytes) -> bool:
    """Say whether stored bytes are what was stored; a column of another type is damage too."""
    return isinstance(body, bytes) and sha256(body).digest() == digest


def start_digest(row: StartRow) -> bytes:
    """Return the digest of a start: of all that its row holds, whatever damage has made of it."""
    return sha256(msgspec.json.encode(replace(row, digest=b""))).digest()


def damage(loaded: LoadedRows) -> str | None:
    """Return what keeps a session from being advanced, or None; only the head is checked (rule 44)."""
    session, last = loaded.session, loaded.last
    if session.health != "healthy":
        return session.health_reason or session.health
    if last is None:
        return "its log is empty"
    if last.last != session.head_index or last.digest != session.head_digest:
        return "the head of its log does not match the last event"
    if not follows(loaded.previous_digest, last):
        return "the last event does not match its digest"
    return None


def damage_of(reader: Reader, session: SessionRow) -> str | None:
    """Return the damage of a session that a query returned."""
    current = reader.session(session.session_id)
    if current is None:
        return "it is gone"
    newest = list(reader.commits(session.session_id, newest_first=True, limit=2))
    last = newest[0] if newest else None
    previous = newest[1].digest if len(newest) > 1 else GENESIS
    return damage(LoadedRows(session=current, agent="", last=last, previous_digest=previous))


def examine(store: Store, session: SessionRow) -> ChainReport:
    """Check every commit of a session against the chain."""
    with store.reading() as reader:
        return examine_commits(reader.commits(session.session_id), session)


def examine_commits(commits: Iterable[CommitRow], session: SessionRow) -> ChainReport:
    """Check commits as they come, oldest first; each is looked at once."""
    before, valid, next_index, total = GENESIS, 0, 0, session.head_index + 1
    for row in commits:
        if error := _error_in(row, before, next_index):
            health: Health = "corrupt_head" if valid == 0 else "corrupt_tail"
            if error == "unknown_schema_version":
                health = "unknown_version"
            return ChainReport(health, valid, next_index, total, f"{error} at event {next_index}")
        before, valid, next_index = row.digest, valid + 1, row.last + 1
    if next_index != total or before != session.head_digest:
        health = "corrupt_tail" if valid else "corrupt_head"
        return ChainReport(health, valid, next_index, total, "missing events at the end")
    return ChainReport("healthy", valid, next_index, total)


def _error_in(row: CommitRow, before: bytes, next_index: int) -> str:
    """Return the code of what is wrong with a commit that should follow another; empty if it is sound."""
    if row.first != next_index:
        return "non_contiguous_indices"
    if not follows(before, row):
        return "digest_mismatch"
    try:
        entries = entries_of(row)
    except msgspec.ValidationError as error:
        return "unknown_schema_version" if "Invalid value" in str(error) else "schema_validation_failed"
    except msgspec.DecodeError:
        return "schema_validation_failed"
    return "" if row.last == row.first + len(entries) - 1 else "non_contiguous_indices"


class Trusted(Struct, frozen=True):
    """The verdict on a log, and the commits that a run can be resumed from: whole commands only."""

    report: ChainReport
    commits: tuple[CommitRow, ...]

    @property
    def whole(self) -> bool:
        return self.report.health == "healthy"


def trusted(reader: Reader, session: SessionRow) -> Trusted:
    """Read a session's log as far as it can be trusted."""
    return trusted_of(tuple(reader.commits(session.session_id)), session)


def trusted_of(commits: tuple[CommitRow, ...], session: SessionRow) -> Trusted:
    """Return the commits of a session as far as they can be trusted."""
    report = examine_commits(commits, session)
    return Trusted(report, commits[: report.valid])


def chained(
    commits: Iterable[CommitRow], strays: Iterable[CommitRow], session: SessionRow
) -> list[CommitRow]:
    """Put the commits of a session in the order of their chain, as far as it reaches.

    Position, digest and session of a commit can be told from its neighbours in the chain, so that damage to
    these columns costs no event; nor does one changed bit elsewhere in it. `strays` are commits whose session
    is unknown.
    """
    own, others = list(commits), list(strays)
    ordered: list[CommitRow] = []
    before, index = GENESIS, 0
    while (found := _following(own, others, session, index, before)) is not None:
        row, placed = found
        (own if row in own else others).remove(row)
        ordered.append(placed)
        before, index = placed.digest, placed.last + 1
    return ordered


def _following(
    own: Sequence[CommitRow], strays: Sequence[CommitRow], session: SessionRow, index: int, before: bytes
) -> tuple[CommitRow, CommitRow] | None:
    """Find the commit that comes next in the chain; return it as it is stored, and as it was."""
    digests = {session.head_digest, *(row.digest for row in own)}
    for row in (*own, *strays):
        if (placed := _placed(row, session.session_id, index, before)) is None:
            continue
        digest = digest_after(before, placed)
        after = (digest_after(digest, replace(other, first=placed.last + 1)) for other in own)
        if digest in (row.digest, session.head_digest) or any(next_ in digests for next_ in after):
            return row, replace(placed, digest=digest)
    for row in own:
        if row.first == index and (whole := mended(row, before)) is not None:
            return row, whole
    return None


def _placed(row: CommitRow, session_id: str, index: int, before: bytes) -> CommitRow | None:
    """Return a commit as it would be at a position, or None if its events cannot be read."""
    try:
        last = index + len(entries_of(row)) - 1
    except (ValueError, TypeError):
        return None
    # One changed bit makes text of a body, and leaves its bytes as they are.
    body = row.body if isinstance(row.body, bytes) else str(row.body).encode()
    return replace(row, session_id=session_id, first=index, last=last, body=body)
