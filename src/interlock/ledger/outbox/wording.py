"""Messages in words: no more than the recipient's detail allows, and nothing that a user has typed.

What an agent wrote is marked and cleaned (`core.definition.quoting`), as in every question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import msgspec
from msgspec.structs import asdict

from interlock.core.definition.quoting import quoted
from interlock.core.message import Link, Message, Occasion
from interlock.core.run.channels import named
from interlock.core.values import Json, cut
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.decisions.substance import substance_of, substance_text
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.announcements import Announcement, Detail, Recipient, announcement_in
from interlock.ledger.outbox.courier import Courier
from interlock.ledger.outbox.timers import act, asked_in
from interlock.ledger.queries.status import ref_of
from interlock.ledger.tokens.answer_links import AnswerLink, sealed
from interlock.store.protocol import OutboxRow, RunRow, SessionRow

MOST_OF_TITLE = 120  # characters
MOST_OF_TEXT = 6_000  # bytes
LINK_MS = 24 * 3_600_000
WITH_TEXT: tuple[Detail, ...] = ("question", "report")
ASKING: tuple[Occasion, ...] = ("opened", "reminded", "escalated")
HEADS: Mapping[Occasion, str] = {
    "opened": "A decision waits",
    "reminded": "A decision still waits",
    "escalated": "A decision is overdue",
    "answered": "A decision was made",
    "ended": "A run has ended",
}


def equip(ledger: Ledger) -> Courier:
    """Let a ledger send what its outbox holds."""

    def write(row: OutboxRow, recipient: Recipient) -> Message | None:
        return message_of(ledger, row, recipient)

    courier = Courier(
        ledger.store, ledger.clock, lambda: ledger.settings.recipients, write, lambda row: act(ledger, row)
    )
    ledger.courier = lambda: courier
    return courier


def message_of(ledger: Ledger, row: OutboxRow, recipient: Recipient) -> Message | None:
    """Put a message into words; None if its session is gone, or its question no longer waits."""
    about = announcement_in(row)
    with ledger.store.reading() as reader:
        session = reader.session(row.session_id)
        run = reader.run(row.session_id, about.run)
    if session is None or run is None:
        return None
    occasion: Occasion = msgspec.convert(row.kind, Occasion)
    own = ledger.of(session.owner)
    question = asked_in(own, row.session_id, about) if occasion in ASKING else None
    if occasion in ASKING and question is None:
        return None
    url = _address(ledger.settings.console_url, session, about)
    report = _report(own, question) if recipient.detail == "report" else ""
    lines = _lines(session, run, about, question, recipient.detail)
    text = cut("\n".join(filter(None, (*lines, url, report))), MOST_OF_TEXT)
    title = HEADS[occasion]
    if recipient.detail != "link":
        title = f"{title}: {question.name if question else about.gate or run.workflow_id}"
    data = _data(session, run, about, question, recipient.detail)
    if report:
        data["report"] = report
    links = _links(ledger, url, question, recipient.approver, row.created_at + LINK_MS, about.since)
    if len(links) > 1:
        data["answers"] = [{"label": link.label, "url": link.url} for link in links[1:]]
    return Message(row.message_id, occasion, about.at, _short(title), text, url, links, data)


def _short(title: str) -> str:
    """Cut a title, and close the marks around an agent's words."""
    kept = title[:MOST_OF_TITLE]
    closing = "»" if kept.count("«") > kept.count("»") else ""
    return title if kept == title else f"{kept}…{closing}"


def _report(ledger: Ledger, question: WaitingQuestion | None) -> str:
    """Return what the agent reported before the question, as forms have it."""
    if question is None:
        return ""
    position = ledger.position(question.session_id, question.node)
    return substance_text(substance_of(ledger, position, question))


def _address(console: str, session: SessionRow, about: Announcement) -> str:
    """Name where the question waits in the console, or the session's own page; empty without a console."""
    if not console:
        return ""
    if not about.shown:
        return f"{console}/sessions/{session.session_id}"
    return f"{console}/inbox?{urlencode({'session': session.session_id, 'shown': about.shown})}"


def _links(
    ledger: Ledger, url: str, question: WaitingQuestion | None, approver: str, until: int, since: int
) -> tuple[Link, ...]:
    """Return where the question is opened, and a link for each answer that the recipient may give."""
    if not url:
        return ()
    links = (Link("Open", url),)
    if question is None or not approver or not _is_asked(ledger, question, approver):
        return links
    base, keyring = ledger.settings.console_url.removesuffix("/console"), ledger.keys.keyring()
    answers = (
        AnswerLink(
            question.session_id,
            question.run_id,
            question.key,
            question.id,
            question.shown,
            option.id,
            approver,
            until,
            since,
        )
        for option in question.options
    )
    labels = (option.label for option in question.options)
    return (
        *links,
        *(
            Link(label, f"{base}/answer/{sealed(keyring, link)}")
            for label, link in zip(labels, answers, strict=True)
        ),
    )


def _is_asked(ledger: Ledger, question: WaitingQuestion, approver: str) -> bool:
    """Say whether a person's answer is missing: of anybody who decides, or of those whom the gate names."""
    if not ledger.may_decide(approver):
        return False
    if question.decide is None:
        return True
    person = ledger.approvers(approver)
    names = {name for each in (person, *person.stands_in_for) for name in (each.name, *each.groups)}
    has_answered = any(each.by == approver for each in question.decide.answered)
    is_listed = approver != question.decide.not_by and not names.isdisjoint(question.decide.by)
    return is_listed and not has_answered


def _lines(
    session: SessionRow, run: RunRow, about: Announcement, question: WaitingQuestion | None, detail: Detail
) -> Iterator[str]:
    """Yield the lines of the text, the most important first."""
    if detail in WITH_TEXT and question is not None:
        yield f"{question.message}\n"
        for option in question.options:
            effect = f" ({option.effect})" if option.effect else ""
            yield f"- {option.label}{effect}"
    if question is not None and question.decide is not None and detail != "link":
        yield question.decide.text
    if about.channel:
        chosen = f"{about.option} " if about.option and detail != "link" else ""
        by = f", {about.by}" if about.by and detail != "link" else ""
        yield f"Answer: {chosen}by {named(about.channel)}{by}" if about.shown else f"By {about.channel}{by}"
    if about.status:
        yield f"Status: {about.status.replace('_', ' ')}"
    if detail != "link":
        yield f"Workflow {run.workflow_id}, session {quoted(session.title, MOST_OF_TITLE)} of {session.owner}"
    yield f"Reference: {ref_of(session.session_id)}"


def _data(
    session: SessionRow, run: RunRow, about: Announcement, question: WaitingQuestion | None, detail: Detail
) -> dict[str, Json]:
    """What a program is told: where it is about, and as much of the question as people are told."""
    data: dict[str, Json] = {
        "sessionId": session.session_id,
        "runId": run.run_id,
        "ref": ref_of(session.session_id),
    }
    if about.shown:
        data["shown"] = about.shown
    if detail == "link":
        return data
    data |= {"workflow": run.workflow_id, "title": session.title, "owner": session.owner}
    for name, value in asdict(about).items():
        if name in ("gate", "option", "channel", "by", "status") and value:
            data[name] = value
    if question is not None:
        data |= {"question": question.id, "node": question.node, "name": question.name}
        if question.decide is not None:
            data["decide"] = msgspec.to_builtins(question.decide)
        if detail in WITH_TEXT:
            data["text"] = question.message
            data["options"] = msgspec.to_builtins(question.options)
    return data
