"""Copying one store into another: whole sessions, each checked against its chain before and after.

A copy can be stopped and run again: what the target already has is skipped, what grew since is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from interlock.ledger.log.health import examine_commits
from interlock.store.protocol import (
    HandleRow,
    OutboxRow,
    Reader,
    SessionRows,
    StartRow,
    Store,
    StoreConflict,
    TraceRow,
    Writer,
)

BATCH = 200
EVERY_TRACE = 2**31

T = TypeVar("T")

Outcome = Literal["copied", "present", "refused"]


class SessionCopied(Struct, frozen=True):
    """What became of one session, and why it was refused if it was."""

    session_id: str
    outcome: Outcome
    reason: str = ""


class Everything(Struct, frozen=True, kw_only=True):
    """All rows that belong to one session."""

    rows: SessionRows
    handles: Sequence[HandleRow]
    starts: Sequence[StartRow]
    traces: Sequence[TraceRow]
    outbox: Sequence[OutboxRow]


def copy_store(source: Store, target: Store) -> Iterator[SessionCopied]:
    """Copy contents, settings and tombstones, then every session."""
    copy_contents(source, target)
    with source.reading() as reader:
        settings = reader.settings()
    with target.writing() as writer:
        for setting in settings:
            writer.set_setting(setting)
    for removed in _pages(
        source, lambda reader, last: reader.tombstones(last.session_id if last else "", BATCH)
    ):
        with target.writing() as writer:
            for tombstone in removed:
                writer.set_tombstone(tombstone)
    for session_ids in _pages(source, lambda reader, last: reader.session_ids(last or "", BATCH)):
        for session_id in session_ids:
            yield _copy_session(source, target, session_id)


def _pages(source: Store, page: Callable[[Reader, T | None], list[T]]) -> Iterator[list[T]]:
    last: T | None = None
    while True:
        with source.reading() as reader:
            rows = page(reader, last)
        if not rows:
            return
        yield rows
        last = rows[-1]


def copy_contents(source: Store, target: Store) -> None:
    """Copy what runs are pinned to, as far as the target lacks it."""
    for digests in _pages(source, lambda reader, last: reader.content_digests(last or "", BATCH)):
        with target.reading() as reader:
            missing = [digest for digest in digests if reader.content(digest) is None]
        if not missing:
            continue
        with source.reading() as reader, target.writing() as writer:
            for digest in missing:
                if (body := reader.content(digest)) is not None:
                    writer.add_content(digest, body)


def _copy_session(source: Store, target: Store, session_id: str) -> SessionCopied:
    with source.reading() as reader:
        wanted = everything(reader, session_id)
    if wanted is None:
        return SessionCopied(session_id, "refused", "it was removed meanwhile")
    rows = wanted.rows
    report = examine_commits(rows.commits, rows.session)
    if report.health != "healthy":
        return SessionCopied(session_id, "refused", f"its log is damaged: {report.reason}")
    try:
        with target.writing() as writer:
            known = writer.session(session_id)
            present = list(writer.commits(session_id)) if known is not None else []
            if present != rows.commits[: len(present)]:
                return SessionCopied(session_id, "refused", "the target has another log under this id")
            is_present = known == rows.session and present == rows.commits
            if not is_present:
                writer.replace_session(rows)
            for handle in set(wanted.handles).difference(writer.handles(session_id)):
                writer.add_handle(handle)
            for start in wanted.starts:
                if writer.start(start.owner, start.request_id) is None:  # else the target's own one stays
                    writer.add_start(start)
            _copy_outbox(writer, session_id, wanted.outbox, is_new=not is_present)
            traced = set(writer.traces(session_id, 0, rows.session.head_index, EVERY_TRACE))
    except StoreConflict as conflict:
        return SessionCopied(session_id, "refused", f"the target has other rows in its place: {conflict}")
    target.trace([trace for trace in wanted.traces if trace not in traced])
    return SessionCopied(session_id, "present") if is_present else _verified(target, rows)


def _copy_outbox(writer: Writer, session_id: str, outbox: Sequence[OutboxRow], *, is_new: bool) -> None:
    """Let the target send what the source has not sent, and nothing that the source or itself has.

    What a session that was there already lacks, the target has sent.
    """
    kept = {(row.message_id, row.channel): row for row in outbox}
    for row in writer.messages_of(session_id):
        if is_new or (row.message_id, row.channel) not in kept:
            writer.drop_message(row)
    for row in outbox if is_new else ():
        writer.add_message(row)


def everything(reader: Reader, session_id: str) -> Everything | None:
    session = reader.session(session_id)
    if session is None:
        return None
    rows = SessionRows(
        session=session,
        commits=list(reader.commits(session_id)),
        runs=reader.runs(session_id),
        nodes=list(reader.nodes(session_id)),
        blocked=list(reader.blocked(session_id)),
        modes=reader.modes(session_id),
        observations=reader.observations(session_id),
    )
    return Everything(
        rows=rows,
        handles=reader.handles(session_id),
        starts=reader.starts(session_id),
        traces=reader.traces(session_id, 0, session.head_index, EVERY_TRACE),
        outbox=reader.messages_of(session_id),
    )


def _verified(target: Store, copied: SessionRows) -> SessionCopied:
    """Read a copy back: its chain must hold and be the source's, byte by byte."""
    session_id = copied.session.session_id
    with target.reading() as reader:
        stored = list(reader.commits(session_id))
    report = examine_commits(stored, copied.session)
    if report.health == "healthy" and [row.digest for row in stored] == [
        row.digest for row in copied.commits
    ]:
        return SessionCopied(session_id, "copied")
    return SessionCopied(session_id, "refused", f"the copy differs: {report.reason or 'its commits'}")
