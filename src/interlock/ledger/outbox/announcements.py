"""What a commit has to say to people: it is stored with the commit, and put into words when it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.message import OCCASIONS, Occasion, Send
from interlock.core.run.channels import is_at_least
from interlock.core.run.events import GateResolved, QuestionShown, RunAbandoned, RunCompleted
from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.log.chain import Entry
from interlock.store.protocol import Changes, CommitRow, OutboxRow

TIMER = ""  # the channel of what is done here and not sent
Detail = Literal["link", "title", "question", "report"]


class Recipient(Struct, frozen=True):
    """A channel that notifications go to. `approver` is who may answer by the links in them."""

    send: Send
    occasions: tuple[Occasion, ...] = OCCASIONS
    detail: Detail = "title"
    approver: str = ""


class Announcement(Struct, frozen=True, omit_defaults=True):
    """What a message is about, as the outbox holds it. Free text that a user has answered is not kept.

    `since` is when a gate's question was put: the same words can be asked again, after a rewind for example.
    """

    at: int
    run: int
    gate: str = ""
    key: str = ""
    shown: str = ""
    option: str = ""
    channel: str = ""
    by: str = ""
    status: str = ""
    every: int = 0
    since: int = 0


_announcement = LazyDecoder(Announcement)


def announcement_in(row: OutboxRow) -> Announcement:
    """Return what a row is about."""
    return _announcement.decode(row.body)


def timers(commit: CommitRow, entries: Sequence[Entry]) -> Iterator[OutboxRow]:
    """Yield when the approvers of the questions that a commit puts are reminded, and when their time ends."""
    for number, entry in enumerate(entries):
        asked, run = entry.event, entry.run or 0
        if not isinstance(asked, QuestionShown) or not (asked.until or asked.remind_ms):
            continue
        about = replace(_asked(asked, run), every=asked.remind_ms)
        body, now = msgspec.json.encode(about), commit.recorded_at
        name = f"tmr_{_name(commit, number)}"
        if asked.until:
            yield OutboxRow(commit.session_id, name, TIMER, "due", body, asked.until, now)
        if asked.remind_ms:
            due_at = asked.at + asked.remind_ms
            yield OutboxRow(commit.session_id, f"{name}r", TIMER, "remind", body, due_at, now)


def of_entries(entries: Sequence[Entry]) -> Iterator[tuple[Occasion, Announcement]]:
    """Yield what the events of a commit announce; what it both asks and answers is only answered.

    A user's answer is announced where it is recorded, not where an agent's next call uses it.
    """
    resolved = {entry.event.key for entry in entries if isinstance(entry.event, GateResolved)}
    for entry in entries:
        run = entry.run or 0
        match entry.event:
            case QuestionShown() as asked if asked.key not in resolved:
                yield "opened", _asked(asked, run)
            case GateResolved() as answer if not is_at_least(answer.channel, "user"):
                if answer.how != "dismissed":
                    yield "answered", _answered(answer, run)
            case RunCompleted() as end:
                yield "ended", Announcement(end.at, run, status=end.status)
            case RunAbandoned() as end:
                yield "ended", Announcement(end.at, run, channel=end.channel, by=end.by, status="abandoned")


def _asked(asked: QuestionShown, run: int) -> Announcement:
    since = 0 if asked.input else asked.at
    return Announcement(asked.at, run, asked.gate, asked.key, asked.shown, since=since)


def _answered(answer: GateResolved, run: int) -> Announcement:
    option = (answer.option or "") if answer.options else ""
    return Announcement(
        answer.at, run, answer.gate, answer.key, answer.shown, option, answer.channel, answer.client
    )


def messages(commit: CommitRow, announced: Sequence[tuple[Occasion, Announcement]]) -> list[OutboxRow]:
    """Return the messages of a commit, not yet addressed."""
    rows: list[OutboxRow] = []
    for number, (occasion, about) in enumerate(announced):
        body = msgspec.json.encode(about)
        name, at = f"msg_{_name(commit, number)}", commit.recorded_at
        rows.append(OutboxRow(commit.session_id, name, "", occasion, body, at, at))
    return rows


def _name(commit: CommitRow, number: int) -> str:
    """Name what a commit says, the same at every try; two sessions may have commits with one digest."""
    return sha256(commit.session_id.encode() + commit.digest + number.to_bytes(4, "big")).hexdigest()[:32]


def addressed(changes: Changes, recipients: Mapping[str, Recipient]) -> Changes:
    """Return what a command changes with its messages to those who want them, and its timers."""
    if not changes.outbox:
        return changes
    outbox = [row for row in changes.outbox if row.message_id.startswith("tmr_")]
    outbox += [
        replace(message, channel=name)
        for message in changes.outbox
        for name, recipient in recipients.items()
        if message.kind in recipient.occasions
    ]
    return replace(changes, outbox=outbox)
