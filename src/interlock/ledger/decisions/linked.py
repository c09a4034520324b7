"""Answering by a link: what it would do, and doing it; a used, expired or changed one says so."""

from __future__ import annotations

from msgspec import Struct

from interlock.core.run.events import ApprovalGiven, GateResolved
from interlock.ledger.decisions.inbox import (
    AskedBefore,
    LocatedQuestion,
    WaitingQuestion,
    answer_question,
    questions,
)
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import DecisionRecorded
from interlock.ledger.tokens.answer_links import AnswerLink, opened

LOOKED_AT = 500  # the newest commits, in which a used link is looked for


class LinkedQuestion(Struct, frozen=True):
    """The question that a link answers, where it waits, and the answer; looking at it records nothing."""

    located: LocatedQuestion
    option: str
    label: str
    approver: str


def linked_question(ledger: Ledger, text: str) -> LinkedQuestion:
    """Return what a link would answer, or raise why it no longer does."""
    link = opened(ledger.keys.keyring(), text)
    if link is None:
        raise LedgerError("VALIDATION_ERROR", "This link is not valid.", "Open the question in the console.")
    if not ledger.may_decide(link.approver):
        raise LedgerError("VALIDATION_ERROR", f"'{link.approver}' is no longer an approver.")
    if ledger.clock() >= link.until:
        raise LedgerError("CONFLICT", "This link has expired.", "Open the question in the console.")
    with ledger.store.reading() as reader:
        session = reader.session(link.session_id)
        run = next((row for row in reader.runs(link.session_id) if row.run_id == link.run_id), None)
    if session is None or run is None:
        raise LedgerError("NOT_FOUND", "The session of this question was removed.")
    meant = AskedBefore(link.run_id, link.key, link.shown, link.since)
    waiting = [
        each
        for each in questions(ledger.of(session.owner), session)
        if (each.question.run_id, each.question.key) == (link.run_id, link.key)
    ]
    located = next((each for each in waiting if meant.is_still(each.question)), None)
    asked = located.question if located is not None else None
    if (used := _answered(ledger, link, run.run, asked)) is not None:
        raise LedgerError("ALREADY_DECIDED", f"This link has been used: you have answered '{used}'.")
    if located is None and waiting:
        raise LedgerError(
            "QUESTION_CHANGED", "The question has changed or was asked again since this link was sent."
        )
    if located is None:
        raise LedgerError(
            "ALREADY_DECIDED",
            "This question no longer waits: it was answered elsewhere, or the run has ended.",
        )
    label = next(
        (option.label for option in located.question.options if option.id == link.option), link.option
    )
    return LinkedQuestion(located, link.option, label, link.approver)


def _answered(ledger: Ledger, link: AnswerLink, run: int, asked: WaitingQuestion | None) -> str | None:
    """Return the option that the approver has chosen for this question since it was put, if any."""
    answered = asked.decide.answered if asked is not None and asked.decide is not None else ()
    if (option := next((each.option for each in answered if each.by == link.approver), None)) is not None:
        return option
    with ledger.store.reading() as reader:
        commits = list(reader.commits(link.session_id, newest_first=True, limit=LOOKED_AT))
    for entry in (each for each in logged(commits) if each.run == run):
        match entry.event:
            case ApprovalGiven(shown=link.shown, approval=given) if given.by == link.approver:
                if given.at >= link.since:
                    return given.option
            case (DecisionRecorded() | GateResolved()) as answer if answer.shown == link.shown:
                if entry.principal == link.approver and answer.at >= link.since:
                    return answer.option or ""
    return None


def answer_by_link(ledger: Ledger, text: str, note: str = "") -> LinkedQuestion:
    """Record the answer of a link; it cannot be used again."""
    linked = linked_question(ledger, text)
    own = ledger.of(linked.located.position.session.owner, linked.approver)
    answer_question(own, linked.located, linked.option, note, "link")
    return linked
