"""Asking the user through the client before an agent's report of a decision counts (rule 27)."""

from __future__ import annotations

from interlock.core.definition.workflow import Gate
from interlock.core.engine.gates import shown
from interlock.core.run.commands import Decision, Terms
from interlock.core.run.outcomes import Code, Refusal
from interlock.ledger.runs.position import Position
from interlock.surfaces.call import Ask, Call
from interlock.surfaces.elicitation import CHOICE, gate_question


def asked(at: Position, gate: Gate, terms: Terms, call: Call) -> Ask | None:
    """The question to put to the user; None where the client cannot, or the user's terms say otherwise."""
    settled = gate.id in at.decisions or at.state.preferences.never_stops
    if not call.client.can_elicit or call.asked is not None or settled or terms.decisions == "agent":
        return None
    return gate_question(at, gate)


def declined(call: Call, gate: Gate) -> Refusal | None:
    """A user who was asked and did not answer is not answered for by the agent."""
    if call.asked != shown(gate) or chosen(call, gate) is not None:
        return None
    return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id, "asked": True})


def chosen(call: Call, gate: Gate) -> Decision | None:
    """The user's own answer, bound to the question as it was shown (rule 26)."""
    answer = call.answers.get(gate.id)
    if call.asked != shown(gate) or answer is None or answer.action != "accept":
        return None
    choice, note = answer.content.get(CHOICE), answer.content.get("note")
    if not isinstance(choice, str):
        return None
    return Decision(choice, "elicitation", call.client.name, note if isinstance(note, str) else "")
