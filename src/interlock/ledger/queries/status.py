"""What people ask about sessions, as values: which there are, their status, their notes.

The command line and the console print these; their field names are a contract with scripts.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from interlock.core.run.keys import item_of, rounds_in
from interlock.core.run.outcomes import PendingLine, pending_line
from interlock.core.run.preferences import Autonomy, Mode, RiskPolicy, mode_of
from interlock.core.run.state import KnownGap
from interlock.ledger.decisions.recorded import recorded_decisions
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import state_of
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.ledger.runs.recap import Recap, recap, session_notes
from interlock.ledger.runs.whole_session import WholeSession
from interlock.store.protocol import NodeRow, Reader, RunRow, SessionFilter, SessionRow, Store

REF = 8
SHORTEST = 4
EVERYTHING = 1 << 40


class Shown(Struct, frozen=True, rename="camel"):
    """The base of what is printed; times are milliseconds since 1970."""


class RunStatus(Shown, frozen=True):
    """One run at its preferred tip. `decided` is the user's answer that the agent has not used yet.

    `abandoned` says who gave the run up, and why.
    """

    run_id: str
    workflow_id: str
    workflow_hash: str
    status: str
    mode: Mode
    autonomy: Autonomy
    risk_policy: RiskPolicy
    pending: PendingLine
    decided: str | None
    gaps: int
    gap_list: tuple[KnownGap, ...]
    tip: int
    branches: int
    started_at: int
    updated_at: int
    abandoned: str | None = None


class SessionStatus(Shown, frozen=True):
    """The status of a session and of all its runs."""

    session_id: str
    ref: str
    title: str
    health: str
    reason: str
    events: int
    created_at: int
    updated_at: int
    keep: bool
    observed: dict[str, str]
    runs: tuple[RunStatus, ...]


class Note(Shown, frozen=True):
    """One note of a branch, and the step it was made at."""

    step: str
    notes: str
    recorded_at: int


class Notes(Shown, frozen=True):
    """What was noted along one branch, and its gaps, open and resolved; `session` notes belong to no run."""

    session_id: str
    title: str
    workflow_id: str
    entries: tuple[Note, ...]
    session: tuple[str, ...] = ()
    omitted: int = 0
    gap_list: tuple[KnownGap, ...] = ()


def ref_of(session_id: str) -> str:
    """Return the short id that people use."""
    return session_id.removeprefix("sess_")[:REF]


class Referred(Struct, frozen=True):
    """What a reference leads to: a session, or one of its runs."""

    session_id: str
    run: RunRow | None = None


def referred(reader: Reader, ref: str, owner: str | None) -> list[Referred]:
    """Return what has this id or begins with it: sessions, else runs; several are ambiguous (rule 42)."""
    short = ref.removeprefix("sess_").removeprefix("run_")
    if len(short) < SHORTEST or not short.isalnum():
        return []
    sessions = []
    if not ref.startswith("run_"):
        sessions = reader.sessions_by_prefix(f"sess_{short}", owner=owner, limit=3)
    if sessions or ref.startswith("sess_"):
        return [Referred(session_id) for session_id in sessions]
    runs = reader.runs_by_prefix(f"run_{short}", owner=owner, limit=3)
    return [Referred(run.session_id, run) for run in runs]


def find_session(positions: Positions, ref: str) -> SessionRow:
    """Find one of the owner's sessions by its id, by that of a run, or by a beginning of either (rule 42)."""
    return find_session_of(positions.store, ref, positions.owner)


def find_session_of(store: Store, ref: str, owner: str | None) -> SessionRow:
    """Find a session of an owner, or of anybody where an operator asks."""
    with store.reading() as reader:
        matches = referred(reader, ref, owner)
        if len(matches) > 1:
            ids = [match.run.run_id if match.run else match.session_id for match in matches[:2]]
            longer = (name.partition("_")[2][: len(ref.rpartition("_")[2]) + 4] for name in ids)
            next_action = f"Say more: {' or '.join(longer)}."
            raise LedgerError("AMBIGUOUS", f"More than one session begins with {ref}.", next_action)
        session = reader.session(matches[0].session_id) if matches else None
        if session is not None:
            return session
        removed = reader.tombstone(ref)
        if removed is not None and owner in (None, removed.owner):
            next_action = "See `interlock sessions` for the rest."
            head = f", with event {removed.head_index} (sha256:{removed.head_digest.hex()}) as its last"
            ended = head if removed.head_digest else ""
            raise LedgerError("NOT_FOUND", f"Session {ref} was removed{ended}.", next_action)
    next_action = "See `interlock sessions`, or search with `interlock resume WORDS`."
    raise LedgerError("NOT_FOUND", f"There is no session {ref}.", next_action)


def handle_of(positions: Positions, session_id: str) -> bytes:
    """Return a handle of a session, for a person who works on it at this machine."""
    with positions.store.reading() as reader:
        return reader.handles(session_id)[0].handle


def recent_references(positions: Positions, most: int) -> list[str]:
    """Return the references of the owner's sessions that were worked on last."""
    with positions.store.reading() as reader:
        sessions = reader.sessions(SessionFilter(positions.owner, limit=most))
    return [ref_of(session.session_id) for session in sessions]


def head_run(session: SessionRow, runs: list[RunRow]) -> RunRow | None:
    """Return the run that work continues with."""
    return next((run for run in runs if run.run == session.head_run), runs[-1] if runs else None)


def session_status(reading: WholeSession) -> SessionStatus:
    """Return the status of a session, run by run."""
    session = reading.session
    with reading.positions.store.reading() as reader:
        damage, observed = damage_of(reader, session), dict(reader.observations(session.session_id))
    return SessionStatus(
        session_id=session.session_id,
        ref=ref_of(session.session_id),
        title=session.title,
        health=session.health if damage is None or session.health != "healthy" else "corrupt_tail",
        reason=damage or "",
        events=session.head_index + 1,
        created_at=session.created_at,
        updated_at=session.updated_at,
        keep=session.keep,
        observed=observed,
        runs=tuple(_run_status(reading, run) for run in reading.runs),
    )


def _run_status(reading: WholeSession, run: RunRow) -> RunStatus:
    session = reading.session
    tip = reading.positions.load(session.session_id, node=tip_of(session, run))
    assert tip is not None
    assert tip.node is not None, "a run has a tip"
    state = state_of(tip.node, tip.mode)
    plan, need = reading.plan(run), reading.awaited(run, state)
    with reading.positions.store.reading() as reader:
        decisions = recorded_decisions(plan, state, need, tip, reader)
    # the lists say the same of a run that waits for its user
    is_waiting = bool(run.awaiting) and not decisions and not state.finished
    return RunStatus(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        workflow_hash=run.workflow_hash,
        status="waiting" if is_waiting else run.status,
        mode=mode_of(state.terms.preferences),
        autonomy=state.terms.preferences.autonomy,
        risk_policy=state.terms.preferences.risk_policy,
        pending=pending_line(need, plan.scope(state.variables)),
        decided=next((decision.option for decision in decisions.values()), None),
        gaps=state.gaps.open,
        gap_list=state.gaps.newest,
        tip=tip.node.node,
        branches=len(tips(reading.nodes(run))),
        started_at=run.started_at,
        updated_at=max(run.updated_at, tip.node.created_at),
        abandoned=state.abandoned.text if state.abandoned else None,
    )


def tips(nodes: Iterable[NodeRow]) -> list[NodeRow]:
    """Return the ends of all branches of a run."""
    steps = [node for node in nodes if node.kind == "step"]
    parents = {node.parent for node in steps}
    return [node for node in steps if node.node not in parents]


def notes_of(positions: Positions, session: SessionRow, node: int | None = None) -> Notes:
    """Collect the notes on the path to a node, or to the head if none is named."""
    session_id, number = session.session_id, session.head_node if node is None else node
    with positions.store.reading() as reader:
        row = reader.node(session_id, number) if number is not None else None
        if row is None and node is not None:
            next_action = f"See `interlock tree {ref_of(session_id)}` for the nodes."
            message = f"Session {ref_of(session_id)} has no node {node}."
            raise LedgerError("NOT_FOUND", message, next_action)
        run = reader.run(session_id, row.run) if row else None
        path = recap(reader, row, EVERYTHING, farthest=EVERYTHING) if row else Recap(())
        gaps = state_of(row).gaps.newest if row and damage_of(reader, session) is None else ()
        own_notes = session_notes(reader, session_id)
    return Notes(
        session_id=session_id,
        title=session.title,
        workflow_id=run.workflow_id if run else "",
        entries=tuple(Note(step_label(note.step), note.notes, note.recorded_at) for note in path.entries),
        session=own_notes,
        omitted=path.omitted,
        gap_list=gaps,
    )


def step_label(key: str) -> str:
    """Name a step; in a loop, with the number of the iteration."""
    rounds = [f"{loop} {number + 1}" for loop, number in rounds_in(key)]
    return f"{item_of(key)} ({', '.join(rounds)})" if rounds else key
