"""Asking the user through the client before an agent's report of a decision counts (rule 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.workflow import Gate
from interlock.core.engine.gates import Question, find_gate, question_of
from interlock.core.run.commands import ResolveCheckpoint, Terms
from interlock.core.run.state import RunState
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call
from interlock.surfaces.elicitation import answer_to, ask_for


def asked(position: Position, state: RunState, gate: Gate, terms: Terms, call: Call) -> Ask | None:
    """The question to put to the user; None where the client cannot, or the user's terms say otherwise."""
    settled = gate.id in position.decisions or state.preferences.never_stops
    if not call.client.can_elicit or call.asked is not None or settled or terms.decisions == "agent":
        return None
    return ask_for(_question(position, state, gate))


def heard(position: Position, state: RunState, command: ResolveCheckpoint, call: Call) -> ResolveCheckpoint:
    """Put the user's own answer in place of the agent's, or say that the user was asked in vain."""
    found = find_gate(position.plan, state, command.gate) if command.gate else None
    if found is None:
        return command
    decision = answer_to(_question(position, state, found.gate), call) or position.decisions.get(
        found.gate.id
    )
    if decision is None:
        return replace(command, declined=call.asked is not None)
    return replace(command, option=decision.option, decisions={found.gate.id: decision})


def _question(position: Position, state: RunState, gate: Gate) -> Question:
    found = find_gate(position.plan, state, gate.id)
    return question_of(position.plan, state, gate, found.confirms if found else None)
