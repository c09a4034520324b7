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
from interlock.core.run.commands import EXECUTION, GATED, NAVIGATION, SESSION, Door
from interlock.core.run.events import ChildReturned, ChildStarted, Event, RunStarted
from interlock.core.run.output import Output
from interlock.core.run.state import RunState
from interlock.core.values import TRUNCATED, Json
from interlock.ledger.ids import run_id
from interlock.ledger.log.chain import GENESIS, read_fact
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
DOORS = {door.name: door for door in (EXECUTION, SESSION, GATED, NAVIGATION)}

_encode = msgspec.json.Encoder().encode


class Told(Struct, frozen=True):
    """What an attempt was answered about: enough to render the response again."""

    fact: AdvanceRecorded
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
        self.doors: dict[int, Door] = {}
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
        self._fact(row)
        self.session = replace(
            self.session, updated_at=row.recorded_at, head_index=row.index, head_digest=row.digest
        )

    def _fact(self, row: EventRow) -> None:
        fact = read_fact(row)
        match fact:
            case SessionCreated():
                self._created(fact)
            case NodeCreated():
                self._node(fact, row)
            case AdvanceRecorded():
                self._attempt(fact, row)
            case OutputAppended():
                self._output(fact, row)
            case ObservationRecorded():
                self.observations[fact.key] = fact.value
            case ResponseRestored():
                self._restored(fact)
            case DecisionRecorded() | CallTraced() | RepairRecorded():
                pass
            case RunStarted():
                self._run(fact, row)
            case _:
                self._event(fact, row)

    def _created(self, fact: SessionCreated) -> None:
        self.session = replace(
            self.session,
            owner=fact.owner,
            title=fact.title,
            created_at=fact.at,
            parent_session=fact.parent_session,
        )

    def _run(self, fact: RunStarted, row: EventRow) -> None:
        number = _number(row.run)
        self.doors[number] = DOORS.get(fact.door, EXECUTION)
        self.runs[number] = RunRow(
            session_id=row.session_id,
            run=number,
            run_id=run_id(row.session_id, number),
            workflow_id=fact.workflow_id,
            workflow_hash=fact.workflow_hash,
            status="in_progress",
            tip=_number(row.node),
            started_at=fact.at,
            updated_at=fact.at,
        )
        self._event(fact, row)

    def _event(self, fact: Event, row: EventRow) -> None:
        """Keep a fact for the node it leads to, or let it change the node it is attached to."""
        if row.node is None:
            self.loose.append(fact)
        elif row.node in self.nodes:
            self._set_state(row.node, evolved(self.states[row.node], [fact]), row.recorded_at)
        else:
            self.ahead.setdefault(row.node, []).append(fact)

    def _set_state(self, number: int, state: RunState, at: int) -> None:
        body, digest = encode_state(state)
        self.states[number] = state
        self.nodes[number] = replace(self.nodes[number], state=body, state_digest=digest)
        run = self.runs[self.nodes[number].run]
        if run.tip == number:
            self._advance(run.run, number, state, at)

    def _node(self, fact: NodeCreated, row: EventRow) -> None:
        parent = self.nodes[fact.parent] if fact.parent is not None else None
        before = self.states[parent.node] if parent else RunState()
        facts = self.ahead.pop(fact.node, [])
        state = evolved(before, facts)
        body, digest = encode_state(state)
        if fact.edge == "acked_step" and parent:
            self._claim_outputs(parent.node, fact.node)
        self.nodes[fact.node] = NodeRow(
            session_id=row.session_id,
            node=fact.node,
            run=_number(row.run),
            parent=fact.parent,
            kind="checkpoint" if fact.edge == "checkpoint" else "step",
            depth=parent.depth + 1 if parent else 0,
            entries=self._entries(parent, fact.node) if parent else 0,
            state=body,
            state_digest=digest,
            event_index=row.index,
            created_at=fact.at,
        )
        self.states[fact.node] = state
        self.session = replace(self.session, next_node=max(self.session.next_node, fact.node + 1))
        if fact.edge == "root" or self._leads(_number(row.run), fact, facts):
            self._advance(_number(row.run), fact.node, state, row.recorded_at)
            self.session = replace(self.session, head_run=row.run, head_node=fact.node)
        if fact.edge == "root":
            self._index(state, Output())

    def _leads(self, run: int, fact: NodeCreated, facts: list[Event]) -> bool:
        """Say whether a node without an attempt moves the tip: behind it, or with news of a child."""
        if fact.edge == "checkpoint":
            return False
        return fact.parent == self.runs[run].tip or any(isinstance(one, OF_CHILDREN) for one in facts)

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
        door = self.doors[number]
        waits = awaiting(awaited(plan, state, door)) if plan else ""
        if door.paced and state.open is not None:
            status = "blocked"
        self.runs[number] = replace(
            run, status=status or state.status, tip=tip, updated_at=at, awaiting=waits
        )

    def _attempt(self, fact: AdvanceRecorded, row: EventRow) -> None:
        number = _number(row.run)
        self.attempts.setdefault(fact.node, {})[fact.attempt] = AttemptRow(
            session_id=row.session_id,
            node=fact.node,
            attempt=fact.attempt,
            outcome=fact.outcome,
            request_digest=bytes.fromhex(fact.request),
            response=b"",
            response_digest=bytes.fromhex(fact.response),
            child=fact.child,
            successor=fact.successor,
            kept=_encode(fact.kept) if fact.kept else b"",
        )
        self._follow(fact, number, row.recorded_at)
        state = self.states[fact.node if fact.outcome != "advanced" or fact.child is None else fact.child]
        cut = self.fresh.notes.endswith(TRUNCATED)
        self.told[fact.node, fact.attempt] = Told(fact, number, evolved(state, self.loose), cut)
        self.loose, self.fresh = [], _Fresh()

    def _restored(self, fact: ResponseRestored) -> None:
        kept = self.attempts[fact.node]
        kept[fact.attempt] = replace(kept[fact.attempt], response_digest=bytes.fromhex(fact.response))

    def _follow(self, fact: AdvanceRecorded, number: int, at: int) -> None:
        """Let the run, and what the session is found by, follow the attempt."""
        if fact.outcome == "checkpointed":
            self._index(self.states[fact.node], self.fresh.output())
            return
        self.doors[number] = DOORS.get(fact.door, EXECUTION)
        if fact.child is not None:
            state = self.states[fact.child]
            self._advance(number, fact.child, state, at)
            self.session = replace(self.session, head_run=number, head_node=fact.child)
            if self.fresh.rows:
                self._index(state, self.fresh.output())
        elif self.runs[number].tip == fact.node:
            state = evolved(self.states[fact.node], self.loose)
            self._advance(number, fact.node, state, at, None if state.finished else "blocked")

    def _output(self, fact: OutputAppended, row: EventRow) -> None:
        if fact.node != self.fresh.node or (fact.node < 0 and fact.attempt != self.fresh.attempt):
            self.fresh = _Fresh(fact.node, fact.attempt)
        self.fresh = self.fresh.with_one(fact)
        if fact.node < 0:
            head = self.session.head_node
            self._index(self.states[head] if head is not None else None, self.fresh.output())
            return
        kind: OutputKind = "notes" if fact.channel == "recap" else "artifact"
        body = fact.notes if kind == "notes" else _encode(fact.artifact).decode()
        kept = self.outputs.setdefault(fact.node, [])
        ordinal = sum(one.attempt == fact.attempt for one in kept)
        kept.append(
            OutputRow(
                row.session_id,
                fact.node,
                fact.attempt,
                ordinal,
                kind,
                fact.step,
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

    def with_one(self, fact: OutputAppended) -> _Fresh:
        if fact.channel == "recap":
            notes = f"{self.notes}\n{fact.notes}" if self.notes else fact.notes
            return replace(self, notes=notes, rows=self.rows + 1)
        return replace(self, artifacts=(*self.artifacts, fact.artifact), rows=self.rows + 1)

    def output(self) -> Output:
        return Output(self.notes, self.artifacts)


def _number(found: int | None) -> int:
    assert found is not None, "this fact is always attached"
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
