"""Decisions that the user makes outside the agent's call: recorded on a node, used once (rule 26)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.decisions import quorum
from interlock.core.engine.gates import find_gate
from interlock.core.engine.requirements import questions_at
from interlock.core.run.commands import Decision
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Awaited, NeedStep
from interlock.core.run.state import RunState
from interlock.ledger.log.chain import entries_of, logged
from interlock.ledger.log.projection import kept_at
from interlock.ledger.log.records import DecisionRecorded
from interlock.store.protocol import LoadedRows, Reader

IMPORTED = "imported:"


def imported_key(times: int) -> str:
    """What an import is kept under, after that many earlier ones."""
    return f"{IMPORTED}{times}"


def imported_up_to(reader: Reader, session_id: str) -> int:
    """Return the last event that came from a bundle; -1 in a session that began here."""
    times, last = 0, -1
    while (row := reader.commit_by_key(session_id, imported_key(times))) is not None:
        times, last = times + 1, row.last
    return last


def decision_key(loaded: LoadedRows, gate: str, imported: int) -> str:
    """Return the key of the next decision at a node.

    Using one makes a branch, so that a rewind asks the user again. One that was rejected, or that came
    with an import, is over.
    """
    assert loaded.node is not None
    over = [
        entry
        for row in loaded.decisions
        for entry in entries_of(row)
        if (isinstance(entry.event, GateResolved) or row.last <= imported)
        and isinstance(entry.event, (GateResolved, DecisionRecorded))
        and entry.event.gate == gate
    ]
    again = f":{len(over)}" if over else ""
    return f"decision:{loaded.node.node}:{gate}:{loaded.branches}{again}"


def rejected_key(node: int, attempt: int) -> str:
    """What an attempt is kept under that the user rejected, beside the decisions of its node."""
    return f"decision:{node}:rejected:{attempt}"


def as_attempted(state: RunState, loaded: LoadedRows) -> RunState:
    """The state that a step's own questions are asked in: with what blocked attempts have sent (rule 10)."""
    return replace(state, variables={**state.variables, **kept_at(loaded.blocked)})


def recorded_decisions(
    plan: Plan, state: RunState, pending: Awaited, loaded: LoadedRows, imported: int
) -> dict[str, Decision]:
    """The user's answers to what is pending at this node, by the digest of their question."""
    if isinstance(pending, NeedStep):
        state = as_attempted(state, loaded)
    by_key = {row.key: row for row in loaded.decisions}
    decisions: dict[str, Decision] = {}
    for question in questions_at(plan, state, pending):
        row = by_key.get(decision_key(loaded, question.id, imported))
        for logged_event in logged((row,)) if row is not None else ():
            event, principal = logged_event.event, logged_event.principal
            if isinstance(event, DecisionRecorded) and event.shown == question.digest:
                client = principal if principal != loaded.session.owner else ""
                decisions[question.digest] = Decision(event.option, event.channel, client, event.note)
    return decisions


def approved(plan: Plan, state: RunState) -> dict[str, Decision]:
    """Return the decision that the approvers of the open question have come to, by its digest."""
    opened = state.open
    found = find_gate(plan, state, opened.gate) if opened is not None and state.polls else None
    if opened is None or found is None or found.gate.decide is None:
        return {}
    decision = quorum(found.gate.decide, state.poll(opened))
    return {opened.shown: decision} if decision is not None else {}
