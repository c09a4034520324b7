"""Asking the user through the client when an agent responds to a checkpoint (rule 27)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.engine.moves import settled_for_navigation
from interlock.core.run.commands import Decision, ResolveCheckpoint, Terms
from interlock.core.run.outcomes import NeedAnswer
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call
from interlock.surfaces.navigation.params import NavAction
from interlock.surfaces.shared.asking import asked, chosen


def question(position: Position, params: NavAction, terms: Terms, call: Call) -> Ask | None:
    """The question to put before the response counts; None where nobody can be asked."""
    if params.action != "respond_to_checkpoint" or not call.client.can_elicit:
        return None
    need = settled_for_navigation(position.plan, position.state)[1]
    if not isinstance(need, NeedAnswer) or need.gate.id != params.checkpoint_id:
        return None
    return asked(position, need.gate, terms, call)


def heard(at: Position, command: ResolveCheckpoint, call: Call) -> ResolveCheckpoint:
    """Put the user's own choice in place of the agent's; a user who was asked and said nothing still must."""
    decision = _ruling(at, command, call)
    if decision is not None:
        return replace(command, option=decision.option, decisions={command.gate or "": decision})
    if call.asked is None or command.decisions:
        return command
    return replace(command, terms=replace(command.terms, decisions="user"))


def _ruling(at: Position, command: ResolveCheckpoint, call: Call) -> Decision | None:
    need = settled_for_navigation(at.plan, at.state)[1]
    if not isinstance(need, NeedAnswer) or need.gate.id != command.gate:
        return None
    return chosen(call, need.gate)
