"""Everything that is not an event, built again from events: the proof that the log is the truth (rule 44).

The fold keeps the order of the log, so that each row comes out as its command once wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.program import Plan
from interlock.core.engine.evolve import evolved
from interlock.core.engine.settle import awaited
from interlock.core.run.events import ChildReturned, ChildStarted, Event, RunStarted
from interlock.core.run.output import Output
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, POLICIES, SurfacePolicy
from interlock.core.values import TRUNCATED, Json
from interlock.ledger.ids import run_id
from interlock.ledger.log.chain import GENESIS, read_event
from interlock.ledger.log.commit import awaiting, encode_state
from interlock.ledger.log.health import intact
from interlock.ledger.log.records import (
    AdvanceRecorded,
    CallTraced,
    DecisionRecorded,
    NodeCreated,
    ObservationRecorded,
    OutputAppended,
    RepairRecorded,
    ResponseRestored,
    SessionCreated,
)
from interlock.ledger.queries.indexing import search_row
from interlock.ledger.runs.pinned_workflows import PinDamaged, Pins
from interlock.ledger.runs.recap import attempts_towards
from interlock.store.protocol import (
    AttemptRow,
    EventRow,
    NodeRow,
    OutputKind,
    OutputRow,
    Reader,
    RunRow,
    SearchRow,
    SessionRow,
    Writer,
)

PlanOf: TypeAlias = Callable[[str], Plan | None]

OF_CHILDREN = (ChildStarted, ChildReturned)

_encode = msgspec.json.Encoder().encode


class Told(Struct, frozen=True):
    """What an attempt was answered about: enough to render the response again."""

    event: AdvanceRecorded
    run: int
    state: RunState
    notes_cut: bool


class Rebuilt(Struct, frozen=True):
    """A session's rows as its events make them. Attempts come without the bytes of their responses."""

    session: SessionRow
    runs: tuple[RunRow, ...]
    nodes: tuple[NodeRow, ...]
    attempts: tuple[AttemptRow, ...]
    outputs: tuple[OutputRow, ...]
    observations: Mapping[str, str]
    search: SearchRow | None
    told: Mapping[tuple[int, int], Told]


def plans_of(reader: Reader, pins: Pins) -> PlanOf:
    """Look pinned workflows up; a lost one leaves only what depends on it undone."""

    def plan(workflow_hash: str) -> Plan | None:
        try:
            return pins.plan(reader, workflow_hash)
        except PinDamaged:
            return None

    return plan


def rebuild(session_id: str, events: Iterable[EventRow], plan_of: PlanOf) -> Rebuilt:
    """Fold a session's events, oldest first, into its rows."""
    fold = _Fold(session_id, plan_of)
    for row in events:
        fold.take(row)
    return fold.rebuilt()


class _Fold:
    """A session in the making."""

    def __init__(self, session_id: str, plan_of: PlanOf) -> None:
        self.session = SessionRow(session_id, "", "", 0, 0, -1, GENESIS, 0)
        self.plan_of = plan_of
        self.runs: dict[int, RunRow] = {}
        self.policies: dict[int, SurfacePolicy] = {}
        self.nodes: dict[int, NodeRow] = {}
        self.states: dict[int, RunState] = {}
        self.attempts: dict[int, dict[int, AttemptRow]] = {}
        self.outputs: dict[int, list[OutputRow]] = {}
        self.observations: dict[str, str] = {}
        self.search: SearchRow | None = None
        self.ahead: dict[int, list[Event]] = {}
        self.loose: list[Event] = []
        self.fresh = _Fresh()
        self.told: dict[tuple[int, int], Told] = {}

    def take(self, row: EventRow) -> None:
        self._event(row)
        self.session = replace(
            self.session, updated_at=row.recorded_at, head_index=row.index, head_digest=row.digest
        )

    def _event(self, row: EventRow) -> None:
        event = read_event(row)
        match event:
            case SessionCreated():
                self._created(event)
            case NodeCreated():
                self._node(event, row)
            case AdvanceRecorded():
                self._attempt(event, row)
            case OutputAppended():
                self._output(event, row)
            case ObservationRecorded():
                self.observations[event.key] = event.value
            case ResponseRestored():
                self._restored(event)
            case DecisionRecorded() | CallTraced() | RepairRecorded():
                pass
            case RunStarted():
                self._run(event, row)
            case _:
                self._run_event(event, row)

    def _created(self, event: SessionCreated) -> None:
        self.session = replace(
            self.session,
            owner=event.owner,
            title=event.title,
            created_at=event.at,
            parent_session=event.parent_session,
        )

    def _run(self, event: RunStarted, row: EventRow) -> None:
        number = _number(row.run)
        self.policies[number] = POLICIES.get(event.surface, EXECUTION)
        self.runs[number] = RunRow(
            session_id=row.session_id,
            run=number,
            run_id=run_id(row.session_id, number),
            workflow_id=event.workflow_id,
            workflow_hash=event.workflow_hash,
            status="in_progress",
            tip=_number(row.node),
            started_at=event.at,
            updated_at=event.at,
        )
        self._run_event(event, row)

    def _run_event(self, event: Event, row: EventRow) -> None:
        """Keep an event for the node it leads to, or let it change the node it is attached to."""
        if row.node is None:
            self.loose.append(event)
        elif row.node in self.nodes:
            self._set_state(row.node, evolved(self.states[row.node], [event]), row.recorded_at)
        else:
            self.ahead.setdefault(row.node, []).append(event)

    def _set_state(self, number: int, state: RunState, at: int) -> None:
        body, digest = encode_state(state)
        self.states[number] = state
        self.nodes[number] = replace(self.nodes[number], state=body, state_digest=digest)
        run = self.runs[self.nodes[number].run]
        if run.tip == number:
            self._advance(run.run, number, state, at)

    def _node(self, event: NodeCreated, row: EventRow) -> None:
        parent = self.nodes[event.parent] if event.parent is not None else None
        before = self.states[parent.node] if parent else RunState()
        events = self.ahead.pop(event.node, [])
        state = evolved(before, events)
        body, digest = encode_state(state)
        if event.edge == "acked_step" and parent:
            self._claim_outputs(parent.node, event.node)
        self.nodes[event.node] = NodeRow(
            session_id=row.session_id,
            node=event.node,
            run=_number(row.run),
            parent=event.parent,
            kind="checkpoint" if event.edge == "checkpoint" else "step",
            depth=parent.depth + 1 if parent else 0,
            entries=self._entries(parent, event.node) if parent else 0,
            state=body,
            state_digest=digest,
            event_index=row.index,
            created_at=event.at,
        )
        self.states[event.node] = state
        self.session = replace(self.session, next_node=max(self.session.next_node, event.node + 1))
        if event.edge == "root" or self._leads(_number(row.run), event, events):
            self._advance(_number(row.run), event.node, state, row.recorded_at)
            self.session = replace(self.session, head_run=row.run, head_node=event.node)
        if event.edge == "root":
            self._index(state, Output())

    def _leads(self, run: int, event: NodeCreated, events: list[Event]) -> bool:
        """Say whether a node without an attempt moves the tip: behind it, or with news of a child."""
        if event.edge == "checkpoint":
            return False
        return event.parent == self.runs[run].tip or any(isinstance(one, OF_CHILDREN) for one in events)

    def _claim_outputs(self, parent: int, child: int) -> None:
        kept = self.outputs.get(parent, [])
        first = len(kept) - self.fresh.rows
        kept[first:] = [replace(one, child=child) for one in kept[first:]]

    def _entries(self, parent: NodeRow, child: int) -> int:
        notes = [one for one in self.outputs.get(parent.node, []) if one.kind == "notes"]
        mine = attempts_towards(list(self.attempts.get(parent.node, {}).values()), child)
        return parent.entries + sum(one.child == child or one.attempt in mine for one in notes)

    def _advance(self, number: int, tip: int, state: RunState, at: int, status: str | None = None) -> None:
        run = self.runs[number]
        plan = self.plan_of(run.workflow_hash)
        policy = self.policies[number]
        waits = awaiting(awaited(plan, state, policy)) if plan else ""
        if policy.exits == "claimed" and state.open is not None:
            status = "blocked"
        self.runs[number] = replace(
            run, status=status or state.status, tip=tip, updated_at=at, awaiting=waits
        )

    def _attempt(self, event: AdvanceRecorded, row: EventRow) -> None:
        number = _number(row.run)
        self.attempts.setdefault(event.node, {})[event.attempt] = AttemptRow(
            session_id=row.session_id,
            node=event.node,
            attempt=event.attempt,
            outcome=event.outcome,
            request_digest=bytes.fromhex(event.request),
            response=b"",
            response_digest=bytes.fromhex(event.response),
            child=event.child,
            successor=event.successor,
            kept=_encode(event.kept) if event.kept else b"",
        )
        self._follow(event, number, row.recorded_at)
        state = self.states[event.node if event.outcome != "advanced" or event.child is None else event.child]
        cut = self.fresh.notes.endswith(TRUNCATED)
        self.told[event.node, event.attempt] = Told(event, number, evolved(state, self.loose), cut)
        self.loose, self.fresh = [], _Fresh()

    def _restored(self, event: ResponseRestored) -> None:
        kept = self.attempts[event.node]
        kept[event.attempt] = replace(kept[event.attempt], response_digest=bytes.fromhex(event.response))

    def _follow(self, event: AdvanceRecorded, number: int, at: int) -> None:
        """Let the run, and what the session is found by, follow the attempt."""
        if event.outcome == "checkpointed":
            self._index(self.states[event.node], self.fresh.output())
            return
        self.policies[number] = POLICIES.get(event.surface, EXECUTION)
        if event.child is not None:
            state = self.states[event.child]
            self._advance(number, event.child, state, at)
            self.session = replace(self.session, head_run=number, head_node=event.child)
            if self.fresh.rows:
                self._index(state, self.fresh.output())
        elif self.runs[number].tip == event.node:
            state = evolved(self.states[event.node], self.loose)
            self._advance(number, event.node, state, at, None if state.finished else "blocked")

    def _output(self, event: OutputAppended, row: EventRow) -> None:
        if event.node != self.fresh.node or (event.node < 0 and event.attempt != self.fresh.attempt):
            self.fresh = _Fresh(event.node, event.attempt)
        self.fresh = self.fresh.with_one(event)
        if event.node < 0:
            head = self.session.head_node
            self._index(self.states[head] if head is not None else None, self.fresh.output())
            return
        kind: OutputKind = "notes" if event.channel == "recap" else "artifact"
        body = event.notes if kind == "notes" else _encode(event.artifact).decode()
        kept = self.outputs.setdefault(event.node, [])
        ordinal = sum(one.attempt == event.attempt for one in kept)
        kept.append(
            OutputRow(
                row.session_id,
                event.node,
                event.attempt,
                ordinal,
                kind,
                event.step,
                body,
                None,
                row.recorded_at,
            )
        )

    def _index(self, state: RunState | None, output: Output) -> None:
        plans = [plan for run in self.runs.values() if (plan := self.plan_of(run.workflow_hash))]
        self.search = search_row(self.session, plans, state, output)

    def rebuilt(self) -> Rebuilt:
        return Rebuilt(
            session=self.session,
            runs=tuple(self.runs.values()),
            nodes=tuple(self.nodes.values()),
            attempts=tuple(one for each in self.attempts.values() for one in each.values()),
            outputs=tuple(one for each in self.outputs.values() for one in each),
            observations=self.observations,
            search=self.search,
            told=self.told,
        )


class _Fresh(Struct, frozen=True):
    """What the attempt at hand has written so far."""

    node: int = -1
    attempt: int | None = None
    notes: str = ""
    artifacts: tuple[Mapping[str, Json], ...] = ()
    rows: int = 0

    def with_one(self, event: OutputAppended) -> _Fresh:
        if event.channel == "recap":
            notes = f"{self.notes}\n{event.notes}" if self.notes else event.notes
            return replace(self, notes=notes, rows=self.rows + 1)
        return replace(self, artifacts=(*self.artifacts, event.artifact), rows=self.rows + 1)

    def output(self) -> Output:
        return Output(self.notes, self.artifacts)


def _number(found: int | None) -> int:
    assert found is not None, "this event is always attached"
    return found


def restore(tx: Writer, rebuilt: Rebuilt, responses: Mapping[tuple[int, int], bytes]) -> None:
    """Write all rows but the session's own and its events; the responses by node and attempt."""
    session_id = rebuilt.session.session_id
    for run in rebuilt.runs:
        tx.add_run(run)
    for node in rebuilt.nodes:
        tx.add_node(node)
    for one in rebuilt.attempts:
        tx.add_attempt(replace(one, response=responses.get((one.node, one.attempt), b"")))
    tx.add_outputs(rebuilt.outputs)
    for key, value in rebuilt.observations.items():
        tx.set_observation(session_id, key, value)
    if rebuilt.search is not None:
        tx.set_search(rebuilt.search)


def differences(reader: Reader, rebuilt: Rebuilt) -> Iterator[str]:
    """Say where the stored rows differ from those that the events make."""
    session_id = rebuilt.session.session_id
    stored = reader.session(session_id)
    if stored is None or _bare(stored) != _bare(rebuilt.session):
        yield "session row"
    if [_bare_run(row) for row in reader.runs(session_id)] != [_bare_run(row) for row in rebuilt.runs]:
        yield "runs"
    if {row.node: row for row in reader.nodes(session_id)} != {row.node: row for row in rebuilt.nodes}:
        yield "nodes"
    if dict(reader.observations(session_id)) != rebuilt.observations:
        yield "observations"
    if reader.search_row(session_id) != rebuilt.search:
        yield "search row"
    yield from _written(reader, rebuilt)


def _written(reader: Reader, rebuilt: Rebuilt) -> Iterator[str]:
    """Attempts with their responses, and outputs, one by one: a long session is never held as a whole."""
    session_id = rebuilt.session.session_id
    tried = {(one.node, one.attempt): one for one in rebuilt.attempts}
    for row in reader.each_attempt(session_id):
        if tried.pop((row.node, row.attempt), None) != replace(row, response=b""):
            yield f"attempt {row.attempt} on node {row.node}"
        if not intact(row.response, row.response_digest):
            yield f"response to attempt {row.attempt} on node {row.node}"
    said = {(one.node, one.attempt, one.ordinal): one for one in rebuilt.outputs}
    for output in reader.each_output(session_id):
        if said.pop((output.node, output.attempt, output.ordinal), None) != output:
            yield f"output of node {output.node}"
    yield from (f"attempt {attempt} on node {node}" for node, attempt in tried)
    yield from (f"output of node {node}" for node, _, _ in said)


def _bare(row: SessionRow) -> SessionRow:
    """A session row without what the user or an import sets beside the log."""
    return replace(row, owner="", keep=False, health="healthy", health_reason="")


def _bare_run(row: RunRow) -> RunRow:
    """A run row without what its last caller chose to show: which question waits, and since when."""
    ended = row.status if row.status in ("complete", "complete_with_gaps") else ""
    return replace(row, status=ended, awaiting="", updated_at=0)
