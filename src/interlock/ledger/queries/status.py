"""What people ask about sessions, as values: which there are, where each stands, what it has noted.

The command line and the console print these; their field names are a contract with scripts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct

from interlock.core.engine.settle import awaited
from interlock.core.run.outcomes import (
    Awaited,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
)
from interlock.core.run.preferences import Autonomy, Mode, RiskPolicy, mode_of
from interlock.core.run.surface_policy import EXECUTION
from interlock.ledger.decisions.recorded import imported_up_to, recorded_decisions
from interlock.ledger.errors import LedgerError
from interlock.ledger.log.chain import logged
from interlock.ledger.log.health import damage_of
from interlock.ledger.log.projection import state_of
from interlock.ledger.log.records import OutputAppended
from interlock.ledger.runs.position import tip_of
from interlock.ledger.runs.positions import Positions
from interlock.ledger.runs.recap import RecapEntry, recap
from interlock.store.protocol import NodeRow, Reader, RunRow, SessionFilter, SessionRow

REF = 8
SHORTEST = 3
EVERYTHING = 1 << 40

PendingKind = Literal["step", "decision", "input", "choice", "nothing"]


class Shown(Struct, frozen=True, rename="camel"):
    """The base of what is printed; times are milliseconds since 1970."""


class SessionLine(Shown, frozen=True):
    """A session in a list, with the run that work goes on with."""

    session_id: str
    ref: str
    title: str
    status: str
    workflow_id: str
    awaiting: str
    runs: int
    created_at: int
    updated_at: int
    keep: bool = False


class PendingLine(Shown, frozen=True):
    """What a run waits for."""

    kind: PendingKind
    id: str
    title: str


class RunStatus(Shown, frozen=True):
    """One run at its preferred tip. `decided` is the user's answer that the agent has not used yet."""

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
    tip: int
    branches: int
    started_at: int
    updated_at: int


class SessionStatus(Shown, frozen=True):
    """Everything about where a session stands."""

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
    """What was noted along one branch; `session` notes belong to no run."""

    session_id: str
    title: str
    workflow_id: str
    entries: tuple[Note, ...]
    session: tuple[str, ...] = ()
    omitted: int = 0


def ref_of(session_id: str) -> str:
    """The short id that people use."""
    return session_id.removeprefix("sess_")[:REF]


def find_session(positions: Positions, ref: str, owner: str) -> SessionRow | LedgerError:
    """A session by its id, by the id of a run, or by an unambiguous beginning (rule 42)."""
    with positions.store.reading() as reader:
        return _found(reader, ref, owner)


def _found(reader: Reader, ref: str, owner: str) -> SessionRow | LedgerError:
    run = reader.run_by_id(ref)
    if run is not None:
        return _owned(reader, run.session_id, ref, owner)
    short = ref.removeprefix("sess_")
    found = reader.sessions_by_prefix(f"sess_{short}", 3) if len(short) >= SHORTEST else []
    if len(found) > 1:
        listed = " or ".join(one.removeprefix("sess_")[: len(short) + 4] for one in found[:2])
        return LedgerError("AMBIGUOUS", f"More than one session begins with {ref}.", f"Say more: {listed}.")
    return _owned(reader, found[0], ref, owner) if found else _no_session(reader, ref)


def _owned(reader: Reader, session_id: str, ref: str, owner: str) -> SessionRow | LedgerError:
    session = reader.session(session_id)
    return session if session is not None and session.owner == owner else _no_session(reader, ref)


def _no_session(reader: Reader, ref: str) -> LedgerError:
    if reader.removed_at(ref) is not None:
        return LedgerError(
            "NOT_FOUND", f"Session {ref} was removed.", "See `interlock sessions` for the rest."
        )
    hint = "See `interlock sessions`, or search with `interlock resume WORDS`."
    return LedgerError("NOT_FOUND", f"There is no session {ref}.", hint)


def handle_of(positions: Positions, session_id: str) -> bytes:
    """A handle of a session, for a person who works on it at this machine."""
    with positions.store.reading() as reader:
        return reader.handles(session_id)[0].handle


def session_lines(positions: Positions, wanted: SessionFilter) -> tuple[SessionLine, ...]:
    """The sessions that fit, newest activity first."""
    with positions.store.reading() as reader:
        return tuple(_line(reader, session) for session in reader.sessions(wanted))


def _line(reader: Reader, session: SessionRow) -> SessionLine:
    runs = reader.runs(session.session_id)
    run = head_run(session, runs)
    status = "damaged" if damage_of(reader, session) else run.status if run else "no run"
    return SessionLine(
        session_id=session.session_id,
        ref=ref_of(session.session_id),
        title=session.title,
        status=status,
        workflow_id=run.workflow_id if run else "",
        awaiting=run.awaiting if run else "",
        runs=len(runs),
        created_at=session.created_at,
        updated_at=session.updated_at,
        keep=session.keep,
    )


def head_run(session: SessionRow, runs: list[RunRow]) -> RunRow | None:
    """The run that work goes on with."""
    return next((one for one in runs if one.run == session.head_run), runs[-1] if runs else None)


def session_status(positions: Positions, session: SessionRow) -> SessionStatus:
    """Where a session stands, run by run."""
    with positions.store.reading() as reader:
        found = damage_of(reader, session)
        observed, runs = dict(reader.observations(session.session_id)), reader.runs(session.session_id)
    return SessionStatus(
        session_id=session.session_id,
        ref=ref_of(session.session_id),
        title=session.title,
        health=session.health if found is None or session.health != "healthy" else "corrupt_tail",
        reason=found or "",
        events=session.head_index + 1,
        created_at=session.created_at,
        updated_at=session.updated_at,
        keep=session.keep,
        observed=observed,
        runs=tuple(_run_status(positions, session, run) for run in runs),
    )


def _run_status(positions: Positions, session: SessionRow, run: RunRow) -> RunStatus:
    with positions.store.reading() as reader:
        tip = reader.load(session.session_id, node=tip_of(session, run))
        branches = len(tips(reader, run))
        imported = imported_up_to(reader, session.session_id)
    assert tip is not None
    assert tip.node is not None, "a run has a tip"
    plan = positions.pins.plan(positions.content, run.workflow_hash)
    state = state_of(tip.node, tip.mode)
    need = awaited(plan, state, EXECUTION)
    decisions = recorded_decisions(plan, state, need, tip, imported)
    return RunStatus(
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        workflow_hash=run.workflow_hash,
        status=run.status,
        mode=mode_of(state.preferences),
        autonomy=state.preferences.autonomy,
        risk_policy=state.preferences.risk_policy,
        pending=pending_line(need),
        decided=next((decision.option for decision in decisions.values()), None),
        gaps=state.gaps,
        tip=tip.node.node,
        branches=branches,
        started_at=run.started_at,
        updated_at=max(run.updated_at, tip.node.created_at),
    )


def tips(reader: Reader, run: RunRow) -> list[NodeRow]:
    """The ends of all branches of a run."""
    nodes = [node for node in reader.nodes(run.session_id, run.run) if node.kind == "step"]
    parents = {node.parent for node in nodes}
    return [node for node in nodes if node.node not in parents]


def pending_line(need: Awaited) -> PendingLine:
    """What is awaited, in one line."""
    match need:
        case NeedStep():
            return PendingLine("step", need.step.id, need.step.title)
        case NeedAnswer():
            return PendingLine("decision", need.gate.id, need.gate.name)
        case NeedInput():
            return PendingLine("input", need.subject, need.message)
        case NeedLoop():
            return PendingLine("choice", need.loop.id, need.loop.title)
        case NeedExit() | NeedEntry():
            return PendingLine("choice", "way", "the next activity")
        case Done():
            return PendingLine("nothing", "", "")
        case _:
            assert_never(need)


def notes_of(positions: Positions, session: SessionRow, node: int | None = None) -> Notes | LedgerError:
    """Everything noted on the way to a node, the head unless another is named."""
    with positions.store.reading() as reader:
        return _notes(reader, session, node)


def _notes(reader: Reader, session: SessionRow, node: int | None) -> Notes | LedgerError:
    wanted = node if node is not None else session.head_node
    row = reader.node(session.session_id, wanted) if wanted is not None else None
    if row is None and node is not None:
        hint = f"See `interlock tree {ref_of(session.session_id)}` for the nodes."
        return LedgerError("NOT_FOUND", f"Session {ref_of(session.session_id)} has no node {node}.", hint)
    run = reader.run(session.session_id, row.run) if row else None
    kept = recap(reader, row, EVERYTHING, farthest=EVERYTHING) if row else None
    return Notes(
        session_id=session.session_id,
        title=session.title,
        workflow_id=run.workflow_id if run else "",
        entries=tuple(_note(one) for one in kept.entries) if kept else (),
        session=tuple(_session_notes(reader, session.session_id)),
        omitted=kept.omitted if kept else 0,
    )


def _note(entry: RecapEntry) -> Note:
    return Note(placed(entry.step), entry.notes, entry.recorded_at)


def _session_notes(reader: Reader, session_id: str) -> Iterator[str]:
    for row in logged(reader.commits(session_id)):
        if isinstance(row.event, OutputAppended) and row.event.node < 0 and row.event.notes:
            yield row.event.notes


def placed(key: str) -> str:
    """A step by its name; in a loop, with the round."""
    path, separator, step = key.rpartition("::")
    if not separator:
        return key
    rounds = (part.rpartition("@") for part in path.split("/"))
    return f"{step} ({', '.join(f'{loop} {int(number) + 1}' for loop, _, number in rounds)})"
