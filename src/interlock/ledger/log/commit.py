"""One command, one transaction: events, node, attempt, outputs and head go in together (rule 43)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from interlock.core.run.events import Event
from interlock.core.run.outcomes import Awaited, Done, NeedAnswer, NeedInput, Notice
from interlock.core.run.output import Output, within_budget
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.log.chain import Chain
from interlock.ledger.log.records import (
    AdvanceRecorded,
    AttemptOutcome,
    Cause,
    EdgeKind,
    NodeCreated,
    OutputAppended,
)
from interlock.ledger.runs.recap import count_entries
from interlock.ledger.tokens.slots import unnamed
from interlock.store.protocol import (
    AttemptRow,
    NodeRow,
    OutputKind,
    OutputRow,
    RunRow,
    SessionRow,
    Writer,
)

_encode = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(RunState).decode


def encode_state(state: RunState) -> tuple[bytes, bytes]:
    """A state as stored, and its digest."""
    body = _encode(state)
    return body, sha256(body).digest()


def decode_state(node: NodeRow) -> RunState:
    state: RunState = _decode_state(node.state)
    return state


class Commit:
    """The transaction of one command on one session; `finish` moves the session's head."""

    def __init__(self, tx: Writer, session: SessionRow, now: int) -> None:
        self.tx = tx
        self.session = session
        self.now = now
        self.chain = Chain.onto(session, now)

    def add_node(
        self,
        run: int,
        parent: NodeRow | None,
        state: RunState,
        events: Iterable[Event],
        cause: Cause,
        key: str | None = None,
    ) -> NodeRow:
        """Record the events and the step node that they lead to; `key` makes a single event findable."""
        node = self._next_node()
        for event in events:
            self.chain.add(event, run=run, node=node, key=key)
        edge: EdgeKind = "acked_step" if parent else "root"
        return self._hang(node, run, parent, state, edge, cause)

    def add_checkpoint(self, run: int, parent: NodeRow, state: RunState) -> NodeRow:
        """Record a checkpoint node; it hangs on its parent and never counts as a child (rule 8)."""
        return self._hang(self._next_node(), run, parent, state, "checkpoint", "checkpoint_created")

    def _next_node(self) -> int:
        node = self.session.next_node
        self.session = replace(self.session, next_node=node + 1)
        return node

    def _hang(
        self, node: int, run: int, parent: NodeRow | None, state: RunState, edge: EdgeKind, cause: Cause
    ) -> NodeRow:
        above = parent.node if parent else None
        self.chain.add(NodeCreated(node, above, edge, cause, self.now), run=run, node=node)
        body, digest = encode_state(state)
        row = NodeRow(
            session_id=self.session.session_id,
            node=node,
            run=run,
            parent=above,
            kind="checkpoint" if edge == "checkpoint" else "step",
            depth=parent.depth + 1 if parent else 0,
            entries=count_entries(self.tx, parent, node) if parent else 0,
            state=body,
            state_digest=digest,
            event_index=self.chain.head_index,
            created_at=self.now,
        )
        self.tx.add_node(row)
        return row

    def add_outputs(self, node: NodeRow, attempt: int, step: str, output: Output, child: int | None) -> None:
        """Keep notes and artifacts with the attempt that wrote them (rule 45)."""
        kept, rows = within_budget(output), list[OutputRow]()
        if kept.notes:
            event = OutputAppended(node.node, attempt, "recap", step, kept.notes)
            self.chain.add(event, run=node.run, node=None)
            rows.append(self._row(node, attempt, len(rows), step, child, notes=kept.notes))
        for artifact in kept.artifacts:
            event = OutputAppended(node.node, attempt, "artifact", step, artifact=artifact)
            self.chain.add(event, run=node.run, node=None)
            rows.append(self._row(node, attempt, len(rows), step, child, artifact=artifact))
        if rows:
            self.tx.add_outputs(rows)

    def add_session_outputs(self, output: Output, key: str) -> None:
        """Keep notes that belong to the session as a whole, in the log alone, numbered by their event."""
        kept, number = within_budget(output), self.chain.head_index + 1
        events = [OutputAppended(-1, number, "recap", "", kept.notes)] if kept.notes else []
        events += [OutputAppended(-1, number, "artifact", "", artifact=one) for one in kept.artifacts]
        for event in events:
            self.chain.add(event, key=key if event is events[0] else None)

    def _row(
        self,
        node: NodeRow,
        attempt: int,
        ordinal: int,
        step: str,
        child: int | None,
        *,
        notes: str = "",
        artifact: Mapping[str, Json] | None = None,
    ) -> OutputRow:
        body = notes if artifact is None else _encode(artifact).decode()
        kind: OutputKind = "notes" if artifact is None else "artifact"
        return OutputRow(
            node.session_id,
            node.node,
            attempt,
            ordinal,
            kind,
            step,
            body,
            child,
            self.now,
        )

    def add_attempt(
        self,
        node: NodeRow,
        attempt: int,
        outcome: AttemptOutcome,
        request: bytes,
        response: bytes,
        *,
        child: int | None = None,
        successor: int | None = None,
        blockers: tuple[Blocker, ...] = (),
        kept: Mapping[str, Json] | None = None,
        notices: tuple[Notice, ...] = (),
        surface: str = "execution",
    ) -> None:
        """Record the attempt with its response; a replay returns exactly this (rule 7)."""
        response = unnamed(response, node.session_id, node.run)
        digest = sha256(response).digest()
        event = AdvanceRecorded(
            node.node,
            attempt,
            outcome,
            request.hex(),
            digest.hex(),
            child,
            successor,
            blockers,
            kept or {},
            notices,
            surface,
        )
        self.chain.add(event, run=node.run, node=None, key=f"advance_recorded:{node.node}:{attempt}")
        remembered = _encode(kept) if kept else b""
        self.tx.add_attempt(
            AttemptRow(
                node.session_id,
                node.node,
                attempt,
                outcome,
                request,
                response,
                digest,
                child,
                successor,
                remembered,
            )
        )

    def finish(self, run: int | None = None, node: int | None = None) -> SessionRow:
        """Write the events and move the head."""
        self.tx.add_events(self.chain.rows)
        self.session = replace(
            self.session,
            updated_at=self.now,
            head_index=self.chain.head_index,
            head_digest=self.chain.head_digest,
            head_run=run if run is not None else self.session.head_run,
            head_node=node if node is not None else self.session.head_node,
        )
        self.tx.set_session(self.session)
        return self.session


def run_after(run: RunRow, tip: int, state: RunState, awaited: Awaited, now: int, *, blocked: bool) -> RunRow:
    """The run's row as its preferred tip makes it."""
    status = "blocked" if blocked and not state.finished else state.status
    return replace(run, status=status, tip=tip, updated_at=now, awaiting=awaiting(awaited))


def awaiting(awaited: Awaited) -> str:
    """What people find in the inbox: the gate that waits, if one does."""
    match awaited:
        case NeedAnswer():
            return awaited.gate.id
        case NeedInput():
            return awaited.subject
        case Done():
            return ""
        case _:
            return ""
