"""Decisions that the user makes outside the agent's call: recorded on a node, used once (rule 26)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.decisions import quorum
from interlock.core.engine.gates import find_gate
from interlock.core.engine.requirements import questions_at
from interlock.core.run.commands import Decision
from interlock.core.run.events import GateResolved
from interlock.core.run.outcomes import Awaited, NeedStep
from interlock.core.run.questions import Question
from interlock.core.run.state import RunState, waits_alike
from interlock.ledger.log.chain import entries_of, logged
from interlock.ledger.log.projection import kept_at, state_of
from interlock.ledger.log.records import DecisionRecorded
from interlock.store.protocol import LoadedRows, Reader, Store

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


def next_decision_key(store: Store, loaded: LoadedRows, gate: str, shown: str) -> str:
    """Return the key of the next decision at a node, on a question in these words (by their digest)."""
    if not loaded.decisions:
        return _decision_key(loaded, gate, shown, imported=-1)
    with store.reading() as reader:
        return _decision_key(loaded, gate, shown, imported_up_to(reader, loaded.session.session_id))


def _decision_key(loaded: LoadedRows, gate: str, shown: str, imported: int) -> str:
    """Return the key of the next decision at a node, where this is the last event that was imported.

    Using one makes a branch, so that a rewind asks the user again. One that was rejected, or that came
    with an import, is over. One on other words, which a later attempt has replaced, stands beside it.
    """
    assert loaded.node is not None
    over = _over(loaded, gate, imported)
    again = f":{over}" if over else ""
    key = f"decision:{loaded.node.node}:{gate}:{loaded.branches}{again}"
    first = (entry.event for row in loaded.decisions if row.key == key for entry in entries_of(row))
    is_on_other_words = any(isinstance(event, DecisionRecorded) and event.shown != shown for event in first)
    return f"{key}:{shown}" if is_on_other_words else key


def _over(loaded: LoadedRows, gate: str, imported: int) -> int:
    """Count the decisions at a node that were rejected, or came with an import."""
    return sum(
        (isinstance(entry.event, GateResolved) or row.last <= imported)
        and isinstance(entry.event, (GateResolved, DecisionRecorded))
        and entry.event.gate == gate
        for row in loaded.decisions
        for entry in entries_of(row)
    )


def rejected_key(node: int, attempt: int) -> str:
    """What an attempt is kept under that the user rejected, beside the decisions of its node."""
    return f"decision:{node}:rejected:{attempt}"


def as_attempted(state: RunState, loaded: LoadedRows) -> RunState:
    """The state that a step's own questions are asked in: with what blocked attempts have sent (rule 10)."""
    return replace(state, variables={**state.variables, **kept_at(loaded.blocked)})


def recorded_decisions(
    plan: Plan, state: RunState, pending: Awaited, loaded: LoadedRows, reader: Reader
) -> dict[str, Decision]:
    """The user's answers to what is pending at this node, by the digest of their question."""
    if isinstance(pending, NeedStep):
        state = as_attempted(state, loaded)
    asked = tuple(questions_at(plan, state, pending))
    nodes = tuple(_waiting_since(reader, loaded)) if asked else ()
    if not any(at.decisions for at in nodes):
        return {}
    imported = imported_up_to(reader, loaded.session.session_id)
    found = (_recorded_answer(nodes, question, imported) for question in asked)
    return {digest: decision for digest, decision in found if decision is not None}


def _waiting_since(reader: Reader, loaded: LoadedRows) -> Iterator[LoadedRows]:
    """Yield a node, then those before it whose tokens lead on to it: a child has begun or returned (rule 8).

    Each comes with the branches that it had before.
    """
    yield loaded
    after, session_id = loaded.node, loaded.session.session_id
    while after is not None and after.attempt is None and after.parent is not None and not loaded.branches:
        before = reader.load(session_id, node=after.parent)
        if before is None or before.node is None or not waits_alike(state_of(before.node), state_of(after)):
            return
        steps = (child for child in reader.children(session_id, after.parent) if child.kind == "step")
        loaded = replace(before, branches=sum(child.node < after.node for child in steps))
        yield loaded
        after = before.node


def _recorded_answer(
    nodes: Iterable[LoadedRows], question: Question, imported: int
) -> tuple[str, Decision | None]:
    """Return the newest answer to a question that is not over, with the question's digest."""
    for loaded in nodes:
        key = _decision_key(loaded, question.id, question.digest, imported)
        for answer in logged(row for row in loaded.decisions if row.key == key):
            event, client = answer.event, answer.principal
            if isinstance(event, DecisionRecorded) and event.shown == question.digest:
                client = client if client != loaded.session.owner else ""
                return question.digest, Decision(event.option, event.channel, client, event.note)
        if _over(loaded, question.id, imported):
            break
    return question.digest, None


def approved(plan: Plan, state: RunState) -> dict[str, Decision]:
    """Return the decision that the approvers of the open question have come to, by its digest."""
    opened = state.visit.open
    found = find_gate(plan, state, opened.gate) if opened is not None and state.replies.polls else None
    if opened is None or found is None or found.gate.decide is None:
        return {}
    decision = quorum(found.gate.decide, state.poll(opened))
    return {opened.shown: decision} if decision is not None else {}
