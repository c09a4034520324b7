"""Asking the user through the client before a checkpoint is answered or a step completed (rule 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.engine.gates import Question, answerable_early
from interlock.core.engine.moves import settled_for_navigation
from interlock.core.engine.requirements import asked_before
from interlock.core.run.commands import AcknowledgeStep, ResolveCheckpoint
from interlock.core.run.outcomes import NeedAnswer, NeedStep
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call
from interlock.surfaces.elicitation import answer_to, ask_for
from interlock.surfaces.navigation.actions import Action
from interlock.surfaces.shared.asking import asked, heard


def question(position: Position, command: Action, call: Call) -> Ask | None:
    """The question to put before the action counts; None where nobody can be asked."""
    if not call.client.can_elicit or call.asked is not None:
        return None
    state, need = settled_for_navigation(position.plan, position.state)
    if isinstance(command, AcknowledgeStep):
        inputs = _inputs(position, command)
        return ask_for(*inputs) if inputs else None
    if not isinstance(command, ResolveCheckpoint):
        return None
    early = (found.gate for found in answerable_early(position.plan, state))
    offered = [need.gate] if isinstance(need, NeedAnswer) else early
    gate = next((gate for gate in offered if gate.id == command.gate), None)
    return None if gate is None else asked(position, state, gate, command.terms, call)


def _inputs(position: Position, command: AcknowledgeStep) -> tuple[Question, ...]:
    """What only the user can give, and is asked for before the step that the action completes."""
    state, need = settled_for_navigation(position.plan, position.state)
    if not isinstance(need, NeedStep) or need.step.id != command.step:
        return ()
    return asked_before(position.plan, state, need, command)


def answered(position: Position, command: Action, call: Call) -> Action:
    """Put the answers of a user who was asked for this call in place of the agent's."""
    if call.asked is None:
        return command
    if isinstance(command, AcknowledgeStep):
        answers = {question.id: answer_to(question, call) for question in _inputs(position, command)}
        given = {name: answer for name, answer in answers.items() if answer is not None}
        declined = tuple(name for name, answer in answers.items() if answer is None)
        return replace(command, decisions={**command.decisions, **given}, declined=declined)
    if not isinstance(command, ResolveCheckpoint):
        return command
    state, _ = settled_for_navigation(position.plan, position.state)
    return heard(replace(position, decisions={}), state, command, call)
