"""What a person needs to know to answer a question: the agent's report, open gaps, what each option leads to.

It is bounded, so that a long report cannot bury the question. Whoever shows it marks it as the agent's words.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.core.engine.decide import outcome_of
from interlock.core.engine.gates import find_gate
from interlock.core.run.commands import AcknowledgeStep, Decision, ResolveCheckpoint
from interlock.core.run.outcomes import Decided
from interlock.core.run.state import KnownGap
from interlock.core.run.surface_policy import EXECUTION, POLICIES
from interlock.ledger.decisions.inbox import WaitingQuestion
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.check_results import ShownCheck, checks_at
from interlock.ledger.queries.status import PendingLine, Shown, pending_line
from interlock.ledger.queries.story import HandedIn, last_handed_in
from interlock.ledger.runs.position import Position

LONGEST_REPORT = 20_000
MOST_ARTIFACTS = 20


class WhatFollows(Shown, frozen=True):
    """What the run waits for after an option was chosen, if that is known."""

    option: str
    pending: PendingLine | None


class Substance(Shown, frozen=True):
    """What belongs to a question; `shortened` says that the session has more of the report."""

    handed_in: HandedIn | None
    shortened: bool
    checks: tuple[ShownCheck, ...]
    gaps: tuple[KnownGap, ...]
    follows: tuple[WhatFollows, ...]


def substance_of(ledger: Ledger, position: Position, question: WaitingQuestion) -> Substance:
    """Return what belongs to a question that waits at this position."""
    report = last_handed_in(position)
    bounded = _bounded(report) if report is not None else None
    return Substance(
        handed_in=bounded,
        shortened=bounded != report,
        checks=checks_at(ledger.store, position),
        gaps=tuple(gap for gap in position.state.gap_list if not gap.resolved),
        follows=tuple(_what_follows(ledger, position, question)),
    )


def _bounded(report: HandedIn) -> HandedIn:
    """Cut a report to what a person reads before an answer."""
    notes = tuple(
        note if len(note) <= LONGEST_REPORT else f"{note[:LONGEST_REPORT]}…" for note in report.notes
    )
    return replace(report, notes=notes, artifacts=report.artifacts[:MOST_ARTIFACTS])


def _what_follows(ledger: Ledger, position: Position, question: WaitingQuestion) -> Iterator[WhatFollows]:
    """Yield what each option leads to, as the run would go on from here."""
    plan, state = position.plan, position.state
    gate = find_gate(plan, state, question.id)
    policy, now = POLICIES[position.run.surface], ledger.clock()
    terms = replace(ledger.terms(state), min_response_ms=0)
    for option in question.options:
        if gate is not None and policy.exits == "claimed":
            outcome = outcome_of(
                plan, state, ResolveCheckpoint(policy, now, terms, "console", question.id, option.id)
            )
        else:
            answers = {question.shown: Decision(option.id, "console")}
            command = AcknowledgeStep(EXECUTION, now, terms, variables=position.kept, decisions=answers)
            outcome = outcome_of(plan, state, command)
        pending = None
        if isinstance(outcome, Decided) and not outcome.blockers:
            pending = pending_line(outcome.awaited, plan.scope(outcome.state.variables))
        yield WhatFollows(option.id, pending)
