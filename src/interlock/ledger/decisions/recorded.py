"""Decisions that the user makes outside the agent's call: recorded on a node, used once (rule 26)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.program import confirmation
from interlock.core.engine.gates import shown
from interlock.core.engine.requirements import input_id
from interlock.core.run.commands import Decision
from interlock.core.run.outcomes import Awaited, NeedAnswer, NeedStep
from interlock.ledger.log.chain import read_event
from interlock.ledger.log.records import DecisionRecorded
from interlock.store.protocol import Reader


def decision_key(node: int, gate: str, branches: int = 0) -> str:
    """What a decision is kept under. Using it makes a branch, so that a rewind asks the user again."""
    return f"decision:{node}:{gate}:{branches}"


def branches_from(reader: Reader, session_id: str, node: int) -> int:
    """How many ways were already gone from a node."""
    return sum(child.kind == "step" for child in reader.children(session_id, node))


def recorded_decisions(reader: Reader, session_id: str, node: int, pending: Awaited) -> dict[str, Decision]:
    """The user's answers to what is pending at this node, by gate id or input key."""
    found = {}
    for name, digest in _questions(pending):
        row = reader.event_by_key(
            session_id, decision_key(node, name, branches_from(reader, session_id, node))
        )
        event = read_event(row) if row is not None else None
        if isinstance(event, DecisionRecorded) and event.shown in ("", digest):
            found[name] = Decision(event.option, event.channel, note=event.note)
    return found


def _questions(pending: Awaited) -> Iterator[tuple[str, str]]:
    """What the user may be asked at this place, each with the digest of the question."""
    match pending:
        case NeedAnswer():
            yield pending.gate.id, shown(pending.gate)
        case NeedStep():
            for need in pending.step.user_input:
                yield input_id(pending.step, need), ""
            if pending.step.confirm is not False:
                gate = confirmation(pending.step)
                yield gate.id, shown(gate)
        case _:
            return
