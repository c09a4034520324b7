"""The rows of a session as its events make them; live commands and a rebuild use the same function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.engine.evolve import evolve, evolved
from interlock.core.guard.audit import Audit, learn, learned
from interlock.core.run.channels import Channel
from interlock.core.run.events import (
    ActivityEntered,
    ApprovalGiven,
    Event,
    PreferencesChanged,
    QuestionDeclined,
    QuestionEscalated,
    RunCompleted,
    RunEvent,
    RunStarted,
)
from interlock.core.run.outcomes import Decided
from interlock.core.run.polls import Poll
from interlock.core.run.preferences import SessionTerms
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.decoders import LazyDecoder
from interlock.ledger.ids import run_id
from interlock.ledger.log.chain import GENESIS, Logged, logged
from interlock.ledger.log.records import (
    AdvanceRecorded,
    HeadMoved,
    NodeCreated,
    ObservationRecorded,
    OutputAppended,
    ResponseRestored,
    SessionCreated,
    SessionImported,
    SessionTitled,
)
from interlock.store.protocol import (
    WHOLE_SESSION,
    BlockedRow,
    CommitRow,
    ModeRow,
    NodeRow,
    RunRow,
    SessionRow,
)

_encode = msgspec.json.Encoder().encode
OF_THE_RUN = (QuestionDeclined, ApprovalGiven, QuestionEscalated)  # what holds on all branches


class NodeState(Struct, frozen=True, array_like=True):
    """The state of a run at a node, and what the guard has learned of it, as the row holds both.

    `shared` says that the audit's variables and items are those of the state, and are stored once.
    """

    run: RunState
    audit: Audit
    shared: bool = True


class _OnlyState(Struct, frozen=True, array_like=True):
    run: RunState


_node_state = LazyDecoder(NodeState)
_state = LazyDecoder(_OnlyState)
_change = LazyDecoder(PreferencesChanged)
_declines = LazyDecoder(dict[str, Channel])
_polls = LazyDecoder(dict[str, Poll])


class StoredOutput(Struct, frozen=True, array_like=True):
    """Notes or an artifact as a row holds it: an artifact is JSON text."""

    channel: str
    step: str
    body: str


class RowDamaged(ValueError):
    """A stored row cannot be read. The message names its session and what it is."""


_outputs = LazyDecoder(tuple[StoredOutput, ...])


def outputs_of(row: NodeRow | BlockedRow) -> tuple[StoredOutput, ...]:
    """Return the outputs that came with an attempt."""
    try:
        return _outputs.decode(row.outputs) if row.outputs else ()
    except (ValueError, TypeError) as error:
        raise RowDamaged(f"the outputs at node {row.node} of session {row.session_id}") from error


def notes_in(row: NodeRow | BlockedRow) -> list[StoredOutput]:
    return [output for output in outputs_of(row) if output.channel == "recap"]


def state_of(node: NodeRow, mode: bytes | None = None) -> RunState:
    """Return the state of a node, with the terms that were attached to it."""
    try:
        state = _state.decode(node.state).run
        return state if mode is None else evolve(state, _change.decode(mode))
    except (ValueError, TypeError) as error:
        raise RowDamaged(f"the state of node {node.node} of session {node.session_id}") from error


def terms_within(created: SessionCreated, modes: Sequence[ModeRow]) -> SessionTerms:
    """Return the terms of what a session begins later: the last change to them, else those of its start."""
    changed = [row.preferences for row in modes if row.node == WHOLE_SESSION]
    if not changed:
        return SessionTerms(created.preferences, created.policy, created.enforcement)
    change = _change.decode(changed[-1])
    return SessionTerms(change.effective, change.policy, change.enforcement)


def audited_state_of(node: NodeRow, mode: bytes | None = None) -> tuple[RunState, Audit]:
    """Return the state of a node and the guard's, with the terms that were attached to it."""
    try:
        stored = _node_state.decode(node.state)
        state, audit = stored.run, stored.audit
        if stored.shared:
            visit = audit.visit
            if state.visit.frames or visit.rounds:
                frames = zip(visit.rounds, state.visit.frames, strict=True)
                rounds = tuple(replace(round_, items=frame.items) for round_, frame in frames)
                visit = replace(visit, rounds=rounds)
            audit = replace(audit, variables=state.variables, visit=visit)
        if mode is not None:
            change = _change.decode(mode)
            state, audit = evolve(state, change), learn(audit, change)
    except (ValueError, TypeError) as error:
        raise RowDamaged(f"the state of node {node.node} of session {node.session_id}") from error
    return state, audit


def _stored_state(state: RunState, audit: Audit) -> bytes:
    """Encode both for a row; what the user declined and approvers answered belongs to the run."""
    state = replace(state, replies=replace(state.replies, declined={}, polls={}))
    audit = replace(audit, declined={}, polls={})
    items = [frame.items for frame in state.visit.frames]
    if audit.variables != state.variables or [round_.items for round_ in audit.visit.rounds] != items:
        return _encode(NodeState(state, audit, shared=False))
    # Always made anew: a visit that is the default itself would be left out, and rows are compared by bytes.
    rounds = tuple(replace(round_, items=()) for round_ in audit.visit.rounds)
    audit = replace(audit, variables={}, visit=replace(audit.visit, rounds=rounds))
    return _encode(NodeState(state, audit))


class Rows:
    """The rows of one session while events are applied: all, or those that one command needs and changes."""

    def __init__(self, session: SessionRow) -> None:
        self.session = session
        self.runs: dict[int, RunRow] = {}
        self.nodes: dict[int, NodeRow] = {}
        self.states: dict[int, RunState] = {}
        self.decided: dict[int, Decided] = {}  # what commands have led to, each under its own mode
        self.audits: dict[int, Audit] = {}
        self.blocked: dict[int, list[BlockedRow]] = {}
        self.notes: dict[int, list[int]] = {}
        self.left: set[int] = set()
        self.modes: list[ModeRow] = []
        self.observations: dict[str, str] = {}
        self._pending: dict[int | None, list[Event]] = {}
        self._outputs: list[StoredOutput] = []

    @classmethod
    def empty(cls, session_id: str) -> Rows:
        """Return the rows of a session before its first event."""
        return cls(SessionRow(session_id, "", "", 0, 0, -1, GENESIS, 0))

    @property
    def lines(self) -> dict[int, bytes]:
        """The time lines of the nodes that are here."""
        return {number: node.line for number, node in self.nodes.items()}

    def apply_commit(self, row: CommitRow) -> None:
        """Apply all events of a command, and move the head to it."""
        for event in logged((row,)):
            apply(self, event)
        self.move_head(row)

    def move_head(self, row: CommitRow) -> None:
        """Let the head be the end of a commit; a clock that was set back makes no session older."""
        updated_at = max(self.session.updated_at, row.recorded_at)
        self.session = replace(
            self.session, updated_at=updated_at, head_index=row.last, head_digest=row.digest
        )

    def notes_towards(self, parent: int, child: NodeRow | None) -> int:
        """Count the recap entries at a node that belong to the path to a child of it."""
        rows: list[NodeRow | BlockedRow] = [*leading_to(self.blocked.get(parent, ()), child)]
        rows += [self.nodes[number] for number in self.notes.get(parent, ())]
        return sum(len(notes_in(row)) for row in rows)

    def all_blocked(self) -> list[BlockedRow]:
        """Return every blocked attempt, oldest first."""
        return sorted(
            (row for rows in self.blocked.values() for row in rows), key=lambda row: row.event_index
        )

    def take_outputs(self) -> list[StoredOutput]:
        """Return the outputs that came since the last attempt."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def add_output(self, output: StoredOutput) -> None:
        self._outputs.append(output)

    def hold(self, node: int | None, event: Event) -> None:
        """Keep an event until the node that it leads to is created."""
        self._pending.setdefault(node, []).append(event)

    def release(self, node: int | None) -> list[Event]:
        return self._pending.pop(node, [])


def leading_to(blocked: Sequence[BlockedRow], child: NodeRow | None) -> list[BlockedRow]:
    """Return the blocked attempts at a node that led to a child of it, oldest first; all if none is named.

    A child that the server made comes after all attempts before it.
    """
    if child is None:
        return list(blocked)
    if child.attempt is None:
        return [row for row in blocked if row.event_index < child.event_index]
    before = {row.successor: row for row in blocked}
    chain: list[BlockedRow] = []
    attempt = child.attempt
    while (row := before.pop(attempt, None)) is not None:
        chain.append(row)
        attempt = row.attempt
    return chain[::-1]


def kept_at(blocked: Sequence[BlockedRow]) -> Mapping[str, Json]:
    """Return the context that blocked attempts at a node have sent; each row holds all of it (rule 10)."""
    if not blocked or not blocked[-1].kept:
        return {}
    try:
        kept: Mapping[str, Json] = msgspec.json.decode(blocked[-1].kept, type=dict[str, Json])
    except (ValueError, TypeError) as error:
        last = blocked[-1]
        raise RowDamaged(f"the context at node {last.node} of session {last.session_id}") from error
    return kept


def apply(rows: Rows, logged: Logged) -> None:
    """Apply one event to the rows."""
    match logged.event:
        case SessionCreated() as created:
            rows.session = replace(
                rows.session,
                owner=created.owner,
                title=created.title,
                created_at=created.at,
                parent_session=created.parent_session,
            )
        case SessionTitled() as titled:
            rows.session = replace(rows.session, title=titled.title)
        case SessionImported() as imported:
            rows.session = replace(rows.session, owner=imported.owner)
            for number, run in rows.runs.items():  # what others have answered elsewhere counts here no more
                rows.runs[number] = replace(run, polls="")
        case ObservationRecorded() as observation:
            rows.observations[observation.key] = observation.value
        case OutputAppended() as output:
            if output.node >= 0:
                artifact = _encode(output.artifact).decode() if output.channel == "artifact" else ""
                rows.add_output(StoredOutput(output.channel, output.step, artifact or output.notes))
        case NodeCreated() as created_node:
            _create_node(rows, created_node, logged)
        case AdvanceRecorded() as attempt:
            _record_attempt(rows, attempt, logged)
        case HeadMoved() as moved:
            _move_head(rows, moved.run, moved.node)
        case ResponseRestored() as restored:
            digest = bytes.fromhex(restored.response)
            for node in [*rows.nodes.values()]:
                if (node.parent, node.attempt) == (restored.node, restored.attempt):
                    rows.nodes[node.node] = replace(node, response_digest=digest)
            rows.blocked[restored.node] = [
                replace(row, response_digest=digest) if row.attempt == restored.attempt else row
                for row in rows.blocked.get(restored.node, ())
            ]
        case RunEvent() as event:
            _apply_run_event(rows, event, logged)
        case _:
            pass


def _apply_run_event(rows: Rows, event: Event, logged: Logged) -> None:
    if isinstance(event, RunStarted):
        assert logged.run is not None
        assert logged.node is not None, "a run starts with a node"
        rows.runs[logged.run] = begun_run(rows.session.session_id, logged.run, logged.node, event)
    if isinstance(event, PreferencesChanged) and logged.node is None:
        rows.modes.append(ModeRow(rows.session.session_id, WHOLE_SESSION, logged.index, _encode(event)))
        return
    if isinstance(event, PreferencesChanged) and logged.node in rows.nodes:
        assert logged.node is not None
        rows.modes.append(ModeRow(rows.session.session_id, logged.node, logged.index, _encode(event)))
        _learn_at(rows, logged.node, event)
        return
    if isinstance(event, OF_THE_RUN) and logged.node in rows.nodes:
        assert logged.node is not None
        assert logged.run is not None
        state, audit = rows.states[logged.node], rows.audits[logged.node]
        known = with_run_wide(state, audit, rows.runs[logged.run])
        rows.states[logged.node], rows.audits[logged.node] = known
        _learn_at(rows, logged.node, event)
        _keep_run_wide(rows, logged.run, rows.states[logged.node])
        return
    if isinstance(event, (ActivityEntered, RunCompleted)):
        began = logged.index if isinstance(event, ActivityEntered) else rows.session.visit_index
        rows.session = replace(rows.session, visit_index=began, visit_node=logged.node)
    rows.hold(logged.node, event)


def begun_run(session_id: str, run: int, node: int, event: RunStarted) -> RunRow:
    """Return the row of a run as it begins."""
    return RunRow(
        session_id=session_id,
        run=run,
        run_id=run_id(session_id, run),
        workflow_id=event.workflow_id,
        workflow_hash=event.workflow_hash,
        surface=event.surface,
        status="in_progress",
        tip=node,
        started_at=event.at,
        updated_at=event.at,
    )


def with_run_wide(state: RunState, audit: Audit, run: RunRow) -> tuple[RunState, Audit]:
    """Return both with what was declined or answered by approvers on any branch of their run (rule 27)."""
    declined = _declines.decode(run.declined) if run.declined else {}
    polls = _polls.decode(run.polls) if run.polls else {}
    if state.replies.declined == declined == audit.declined and state.replies.polls == polls == audit.polls:
        return state, audit
    state = replace(state, replies=replace(state.replies, declined=declined, polls=polls))
    return state, replace(audit, declined=declined, polls=polls)


def _keep_run_wide(rows: Rows, number: int, state: RunState) -> None:
    declined = _encode(state.replies.declined).decode() if state.replies.declined else ""
    polls = _encode(state.replies.polls).decode() if state.replies.polls else ""
    if (rows.runs[number].declined, rows.runs[number].polls) != (declined, polls):
        rows.runs[number] = replace(rows.runs[number], declined=declined, polls=polls)


def _learn_at(rows: Rows, node: int, event: Event) -> None:
    """Apply an event that is attached to a node that exists."""
    rows.states[node] = evolve(rows.states[node], event)
    rows.audits[node] = learn(rows.audits[node], event)


def _create_node(rows: Rows, created: NodeCreated, logged: Logged) -> None:
    """Make the row of a node from the events and outputs that were held for it."""
    assert logged.run is not None, "a node belongs to a run"
    parent = rows.nodes[created.parent] if created.parent is not None else None
    state, audit = _reached(rows, created, logged.run)
    _keep_run_wide(rows, logged.run, state)
    body, outputs = _stored_state(state, audit), rows.take_outputs()
    is_step = created.edge != "checkpoint"
    above = parent.entries + rows.notes_towards(parent.node, None) if parent else 0
    node = NodeRow(
        session_id=rows.session.session_id,
        node=created.node,
        run=logged.run,
        parent=created.parent,
        kind="step" if is_step else "note",
        depth=parent.depth + 1 if parent else 0,
        entries=above + is_step * sum(output.channel == "recap" for output in outputs),
        state=body,
        state_digest=sha256(body).digest(),
        event_index=logged.index,
        created_at=logged.at,
        outputs=_encode(outputs) if outputs else b"",
        line=logged.line,
    )
    rows.nodes[node.node], rows.states[node.node], rows.audits[node.node] = node, state, audit
    rows.session = replace(rows.session, next_node=max(rows.session.next_node, node.node + 1))
    if parent is not None and is_step:
        rows.left.add(parent.node)
    elif parent is not None:
        _hang_note(rows, node, parent.node)
    if is_step and created.leads:
        _lead_to(rows, node, created, state)


def _reached(rows: Rows, created: NodeCreated, run: int) -> tuple[RunState, Audit]:
    """Return the state that the events of a node lead to, and what the guard learns from them.

    Engine and guard have folded the events of a call already. Their states are not those to store if this
    process has decided the call under a tighter mode than the node has: the mode is its own (rule 29).
    """
    before = rows.states[created.parent] if created.parent is not None else RunState()
    known = rows.audits[created.parent] if created.parent is not None else Audit()
    before, known = with_run_wide(before, known, rows.runs[run])
    events, decided = rows.release(created.node), rows.decided.get(created.node)
    is_known = decided is not None and decided.state.terms == before.terms
    state = decided.state if decided is not None and is_known else evolved(before, events)
    audit = decided.audit if decided is not None and is_known else None
    return state, audit or learned(known, events)


def _hang_note(rows: Rows, note: NodeRow, parent: int) -> None:
    """Hang a note node on its parent.

    Nodes that were made from there before have counted their path without it (`entries`). So the run says
    that it has late notes, and a recap then counts one by one.
    """
    rows.notes.setdefault(parent, []).append(note.node)
    if parent in rows.left:
        run = rows.runs[note.run]
        rows.runs[note.run] = replace(run, late_notes=run.late_notes + 1)


def _lead_to(rows: Rows, node: NodeRow, created: NodeCreated, state: RunState) -> None:
    """Let work continue at a node.

    Most steps change nothing in the row of their run, which is then not written: while a run is the
    session's head, its tip is the session's (`tip_of`).
    """
    run, status = rows.runs[node.run], "blocked" if created.held else state.status
    if (run.status, run.awaiting) != (status, created.awaiting):
        rows.runs[node.run] = replace(
            run, status=status, awaiting=created.awaiting, tip=node.node, updated_at=node.created_at
        )
    _move_head(rows, node.run, node.node)


def _move_head(rows: Rows, run: int, node: int) -> None:
    """Move the head; the run that it leaves keeps its tip in its own row."""
    before, tip = rows.session.head_run, rows.session.head_node
    if before is not None and before != run and tip is not None:
        rows.runs[before] = replace(rows.runs[before], tip=tip)
    rows.session = replace(rows.session, head_run=run, head_node=node)


def _record_attempt(rows: Rows, attempt: AdvanceRecorded, logged: Logged) -> None:
    request, response = bytes.fromhex(attempt.request), bytes.fromhex(attempt.response)
    if attempt.child is not None:
        child = rows.nodes[attempt.child]
        child = replace(child, attempt=attempt.attempt, request_digest=request, response_digest=response)
        if child.parent is not None and (rows.blocked.get(child.parent) or rows.notes.get(child.parent)):
            # Of what was kept at its parent, only what led to this attempt is on its path.
            above = rows.nodes[child.parent].entries + rows.notes_towards(child.parent, child)
            own = len(notes_in(child)) if child.kind == "step" else 0
            child = replace(child, entries=above + own)
        rows.nodes[attempt.child] = child
        return
    earlier = rows.blocked.setdefault(attempt.node, [])
    kept, outputs = {**kept_at(earlier), **attempt.kept}, rows.take_outputs()
    row = BlockedRow(
        session_id=rows.session.session_id,
        node=attempt.node,
        attempt=attempt.attempt,
        successor=attempt.successor or 0,
        event_index=logged.index,
        recorded_at=logged.at,
        request_digest=request,
        response_digest=response,
        kept=_encode(kept) if kept else b"",
        outputs=_encode(outputs) if outputs else b"",
    )
    earlier.append(row)
    rows.release(None)
    node = rows.nodes[attempt.node]
    run, is_head = rows.runs[node.run], rows.session.head_run == node.run
    tip = rows.session.head_node if is_head else run.tip  # another run may have been advanced last
    if tip == attempt.node and not rows.states[attempt.node].finished:
        rows.runs[node.run] = replace(
            run, status="blocked", awaiting=attempt.awaiting, tip=node.node, updated_at=logged.at
        )
