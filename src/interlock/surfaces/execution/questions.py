"""Which questions the user is asked through the client before an acknowledgement (rules 10 and 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.engine.decide import decide
from interlock.core.engine.gates import Question, question_of
from interlock.core.engine.requirements import asked_before
from interlock.core.run.commands import AcknowledgeStep
from interlock.core.run.outcomes import Decided, NeedAnswer, NeedStep
from interlock.core.run.reasons import BlockerCode
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Call
from interlock.surfaces.elicitation import answer_to


def questions(position: Position, command: AcknowledgeStep) -> tuple[Question, ...]:
    """What the user must be asked before this acknowledgement can pass."""
    plan, state, pending = position.plan, position.state, position.awaited
    if state.preferences.never_stops or command.terms.decisions == "agent":
        return ()
    if isinstance(pending, NeedAnswer):
        asked = question_of(plan, state, pending.gate, pending.confirms)
        return () if asked.id in command.decisions else (asked,)
    if not isinstance(pending, NeedStep):
        return ()
    if asked_first := asked_before(plan, state, pending, command):
        return asked_first
    decided = decide(plan, state, replace(command, reports=False))
    if not isinstance(decided, Decided) or decided.blockers:
        return ()
    gate = decided.awaited
    if isinstance(gate, NeedAnswer) and gate.confirms is not None and gate.confirms.id == pending.step.id:
        return (question_of(plan, decided.state, gate.gate, gate.confirms),)
    return ()


def waits_for_the_user(decided: Decided) -> bool:
    """Tell whether nothing but the user's own decision is missing."""
    codes = {blocker.code for blocker in decided.blockers}
    return codes == {BlockerCode.USER_ONLY_DEPENDENCY}


def answered(position: Position, command: AcknowledgeStep, call: Call) -> AcknowledgeStep:
    """The same command with the user's answers, and with the questions that were asked in vain."""
    if call.asked is None:
        return command
    asked = questions(position, command)
    answers = {question.id: answer_to(question, call) for question in asked}
    return replace(
        command,
        decisions={**command.decisions, **{name: answer for name, answer in answers.items() if answer}},
        declined=tuple(name for name, answer in answers.items() if answer is None),
    )
