"""What waits for the user: each question with what was handed in before it and what each answer leads to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from threading import Lock

from msgspec.structs import replace

from interlock.core.definition.prompts import stored
from interlock.core.definition.workflow import Effect
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.gates import find_gate, question_of
from interlock.core.principals import Principal
from interlock.core.run.commands import AcknowledgeStep, Decision, ResolveCheckpoint
from interlock.core.run.outcomes import Decided
from interlock.core.run.surface_policy import EXECUTION, POLICIES
from interlock.ledger.decisions.inbox import WaitingQuestion, asking_sessions, questions
from interlock.ledger.decisions.user_pin import has_pin
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.status import PendingLine, Shown, pending_line
from interlock.ledger.queries.story import HandedIn, last_handed_in
from interlock.ledger.runs.position import Position

MOST_QUESTIONS = 50
MOST_REMEMBERED = 2000


class WhatFollows(Shown, frozen=True):
    """What choosing an option does, in words, and what the run waits for then, if that is known."""

    option: str
    effects: tuple[str, ...]
    pending: PendingLine | None


class InboxQuestion(Shown, frozen=True):
    """A question as its user must see it: what was handed in before it, and what each option leads to."""

    question: WaitingQuestion
    owner: str
    workflow_id: str
    handed_in: HandedIn | None
    follows: tuple[WhatFollows, ...]


class InboxPage(Shown, frozen=True):
    """The newest of what waits for the user; `more` says that there are others.

    `needs_pin` says that deciding asks for the PIN, `can_decide` that this principal may decide at all.
    """

    questions: tuple[InboxQuestion, ...]
    more: bool
    needs_pin: bool
    can_decide: bool


class WaitingQuestions:
    """The questions of sessions, remembered for as long as a session has the same head."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: OrderedDict[tuple[str, bytes], tuple[InboxQuestion, ...]] = OrderedDict()
        self._turn = Lock()

    def page(self, principal: Principal) -> InboxPage:
        """Return what a principal is asked: its own questions, and others' if it decides for others."""
        asked = list(islice(self._asked(principal), MOST_QUESTIONS + 1))
        needs_pin = has_pin(self._ledger.store, principal.name)
        return InboxPage(
            questions=tuple(asked[:MOST_QUESTIONS]),
            more=len(asked) > MOST_QUESTIONS,
            needs_pin=needs_pin,
            can_decide=principal.decides,
        )

    def _asked(self, principal: Principal) -> Iterator[InboxQuestion]:
        sessions = {session.session_id: session for session in asking_sessions(self._ledger, principal.name)}
        if principal.decides:
            sessions |= {session.session_id: session for session in asking_sessions(self._ledger, None)}
        for session in sorted(sessions.values(), key=lambda each: (-each.updated_at, each.session_id)):
            key = session.session_id, session.head_digest
            with self._turn:
                known = self._known.get(key)
            if known is None:
                ledger = self._ledger.of(session.owner)
                found = (inbox_question(ledger, each) for each in questions(ledger, session))
                known = tuple(each for each in found if each is not None)
                with self._turn:
                    self._known[key] = known
                    while len(self._known) > MOST_REMEMBERED:
                        self._known.popitem(last=False)
            yield from known


def inbox_question(ledger: Ledger, question: WaitingQuestion) -> InboxQuestion | None:
    """Return a question with what was handed in before it; None if it cannot be read any more."""
    try:
        position = ledger.position(question.session_id, question.node)
    except LedgerError:
        return None
    return InboxQuestion(
        question=question,
        owner=ledger.owner,
        workflow_id=position.run.workflow_id,
        handed_in=last_handed_in(position),
        follows=tuple(what_follows(ledger, position, question)),
    )


def what_follows(ledger: Ledger, position: Position, question: WaitingQuestion) -> Iterator[WhatFollows]:
    """Yield what each option leads to, as the run would go on from here."""
    plan, state = position.plan, position.state
    gate = find_gate(plan, state, question.id)
    options = question_of(plan, state, gate.gate, gate.confirms).options if gate else ()
    effects = {option.id: tuple(effect_words(option.effect)) for option in options}
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
        yield WhatFollows(option.id, effects.get(option.id, ()), pending)


def effect_words(effect: Effect) -> Iterator[str]:
    """Yield what an option does, a clause for each thing."""
    for name, value in effect.set_variables.items():
        yield f"sets {name} to {stored(value)}"
    if effect.transition_to is not None:
        yield f"goes to {effect.transition_to}"
    if effect.skip_activities:
        yield f"skips {', '.join(effect.skip_activities)}"
