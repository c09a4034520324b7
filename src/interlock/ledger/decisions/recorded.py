"""Decisions that the user makes outside the agent's call: recorded on a node, used once (rule 26)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.definition.program import confirmation
from interlock.core.engine.gates import shown
from interlock.core.engine.requirements import input_id
from interlock.core.run.commands import Decision
from interlock.core.run.outcomes import Awaited, NeedAnswer, NeedStep
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.records import DecisionRecorded
from interlock.store.protocol import LoadedRows


def decision_key(node: int, gate: str, branches: int) -> str:
    """Return the key of a decision. Using it makes a branch, so that a rewind asks the user again."""
    return f"decision:{node}:{gate}:{branches}"


def recorded_decisions(pending: Awaited, loaded: LoadedRows) -> dict[str, Decision]:
    """Return the user's answers to what is pending at this node, by gate id or input key."""
    assert loaded.node is not None
    by_key = {row.key: row for row in loaded.decisions}
    decisions: dict[str, Decision] = {}
    for name, digest in _questions(pending):
        row = by_key.get(decision_key(loaded.node.node, name, loaded.branches))
        for entry in entries_of(row) if row is not None else ():
            event = entry.event
            if isinstance(event, DecisionRecorded) and event.shown in ("", digest):
                decisions[name] = Decision(event.option, event.channel, note=event.note)
    return decisions


def _questions(pending: Awaited) -> Iterator[tuple[str, str]]:
    """Yield what the user may be asked at this position, each with the digest of the question."""
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
