"""The inbox: each question as its user must see it, with what was handed in before it."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.core.engine.decide import decide
from interlock.core.run.commands import AcknowledgeStep, Decision
from interlock.core.run.outcomes import Decided
from interlock.core.run.surface_policy import EXECUTION
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import (
    PendingLine,
    Shown,
    pending_line,
)
from interlock.ledger.queries.story import HandedIn, last_handed_in


class WhatFollows(Shown, frozen=True):
    """What a run waits for next if an option is chosen."""

    option: str
    pending: PendingLine


class InboxQuestion(Shown, frozen=True):
    """A question as its user must see it: what was handed in before it, and what each option leads to."""

    question: WaitingQuestion
    owner: str
    workflow_id: str
    handed_in: HandedIn | None
    follows: tuple[WhatFollows, ...]


class InboxPage(Shown, frozen=True):
    """Everything that waits for the user; `needs_pin` says that deciding asks for the PIN."""

    questions: tuple[InboxQuestion, ...]
    needs_pin: bool


def inbox_page(ledger: Ledger, waiting: Iterable[tuple[str, WaitingQuestion]], needs_pin: bool) -> InboxPage:
    """Return what waits, newest first, each question with its owner."""
    asked = [each for owner, question in waiting if (each := inbox_question(ledger.of(owner), question))]
    newest = sorted(asked, key=lambda each: (-each.question.since, each.question.session_id))
    return InboxPage(tuple(newest), needs_pin)


def inbox_question(ledger: Ledger, question: WaitingQuestion) -> InboxQuestion | None:
    """Return a question with what was handed in before it; None if it cannot be read any more."""
    position = ledger.position(question.session_id, question.node)
    if isinstance(position, LedgerError):
        return None
    follows: list[WhatFollows] = []
    for option in question.options:
        answer = AcknowledgeStep(
            EXECUTION,
            ledger.clock(),
            ledger.terms(position.state),
            variables=position.kept,
            decisions={question.id: Decision(option.id, "console")},
        )
        outcome = decide(position.plan, position.state, answer)
        if isinstance(outcome, Decided) and not outcome.blockers:
            scope = position.plan.scope(outcome.state.variables)
            follows.append(WhatFollows(option.id, pending_line(outcome.awaited, scope)))
    return InboxQuestion(
        question=question,
        owner=ledger.owner,
        workflow_id=position.run.workflow_id,
        handed_in=last_handed_in(position),
        follows=tuple(follows),
    )
