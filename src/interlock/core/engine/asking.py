"""What the user must be asked before the outcome of a command counts (rule 27).

A command is decided first, and its events are looked at afterwards: whatever it would answer in the user's
place is put to a user who can be asked. No surface predicts it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.decisions import counts
from interlock.core.engine.evolve import evolved
from interlock.core.engine.gates import find_gate, question_of
from interlock.core.engine.requirements import input_question
from interlock.core.run import events as e
from interlock.core.run.commands import Answerable, Decision
from interlock.core.run.outcomes import Decided, Refusal
from interlock.core.run.questions import Question, Unanswered
from interlock.core.run.state import RunState


def unanswered(
    plan: Plan, state: RunState, command: Answerable, outcome: Decided | Refusal
) -> tuple[Unanswered, ...]:
    """Return the questions that the outcome answers for the user, or of which it lacks only the answer."""
    asks_by = command.terms.asks_by
    if asks_by is None or state.preferences.never_stops:
        return ()
    if asks_by == "elicitation" and not command.terms.asks_by_form:
        return ()
    if asks_by == "inbox" and command.terms.decisions != "user":
        return ()
    recorded = outcome.kept if isinstance(outcome, Refusal) else outcome.events
    after = evolved(state, recorded)
    by_user, first = Decision("", asks_by), dict[str, Unanswered]()  # of each question, in order
    for asked in (*_reported(plan, state, recorded), *outcome.unanswered):
        is_answered = asked.question.digest in command.decisions
        found = find_gate(plan, after, asked.question.id)
        gate = found.gate if found is not None else None
        if not is_answered and counts(by_user, state, asked.key, command.terms, gate):
            first.setdefault(asked.question.id, asked)
    return tuple(first.values())


def _reported(plan: Plan, state: RunState, events: tuple[e.Event, ...]) -> Iterator[Unanswered]:
    """Yield the questions that these events answer by the agent's report."""
    for index, event in enumerate(events):
        if not isinstance(event, e.GateResolved) or event.channel != "agent" or event.how == "dismissed":
            continue
        at = evolved(state, events[:index])
        yield Unanswered(event.key, _question_behind(plan, at, event))


def _question_behind(plan: Plan, state: RunState, answer: e.GateResolved) -> Question:
    """Render the question that an answer is for, in the state in which it was given."""
    found = find_gate(plan, state, answer.gate)
    if found is not None:
        question = question_of(plan, state, found.gate, found.confirms)
        if question.digest == answer.shown:
            return question
    activity = plan.workflow.activity(state.activity)
    assert activity is not None, "a step that asks is in an activity"
    questions = (
        input_question(plan, state, step, need)
        for step in activity.steps()
        for need in step.user_input
        if step.input_id(need) == answer.gate
    )
    return next(question for question in questions if question.digest == answer.shown)


def with_declines(
    state: RunState, command: Answerable, declined: tuple[Unanswered, ...]
) -> tuple[RunState, tuple[e.Event, ...]]:
    """Return the state after the user has declined questions, and the events that say so."""
    events = tuple(
        e.QuestionDeclined(
            asked.key,
            asked.question.id,
            asked.question.digest,
            command.now,
            command.terms.asks_by or "elicitation",
            command.client,
        )
        for asked in declined
        if state.declined_by(asked.key) is None
    )
    return evolved(state, events), events


def kept_with(outcome: Decided | Refusal, events: tuple[e.Event, ...]) -> Decided | Refusal:
    """Return the outcome with events that came before its own."""
    if isinstance(outcome, Refusal):
        return replace(outcome, kept=(*events, *outcome.kept))
    return replace(outcome, events=(*events, *outcome.events))
