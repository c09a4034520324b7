"""Asking the user through the client when an agent responds to a checkpoint (rule 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.engine.gates import answerable_early
from interlock.core.engine.moves import settled_for_navigation
from interlock.core.run.commands import ResolveCheckpoint, Terms
from interlock.core.run.outcomes import NeedAnswer
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call
from interlock.surfaces.navigation.params import NavAction
from interlock.surfaces.shared.asking import asked, heard


def question(position: Position, params: NavAction, terms: Terms, call: Call) -> Ask | None:
    """The question to put before the response counts; None where nobody can be asked."""
    if params.action != "respond_to_checkpoint" or not call.client.can_elicit:
        return None
    state, need = settled_for_navigation(position.plan, position.state)
    early = (found.gate for found in answerable_early(position.plan, state))
    offered = [need.gate] if isinstance(need, NeedAnswer) else early
    gate = next((gate for gate in offered if gate.id == params.checkpoint_id), None)
    return None if gate is None else asked(position, state, gate, terms, call)


def answered(position: Position, command: ResolveCheckpoint, call: Call) -> ResolveCheckpoint:
    """Put the answer of a user who was asked for this call in place of the agent's."""
    if call.asked is None:
        return command
    state, _ = settled_for_navigation(position.plan, position.state)
    return heard(replace(position, decisions={}), state, command, call)
