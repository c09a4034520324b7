"""One command, one commit: its events, and the rows that follow from them, ready to be appended (rule 43)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from interlock.core.message import Occasion
from interlock.core.run.commands import Claim
from interlock.core.run.notices import Notice
from interlock.core.run.outcomes import Awaited, Decided, NeedAnswer, NeedInput, NeedStep
from interlock.core.run.output import within_budget
from interlock.core.run.reasons import Blocker
from interlock.core.values import Json
from interlock.ledger.log.chain import Entry, commit_of, logged_entry
from interlock.ledger.log.projection import Rows, apply
from interlock.ledger.log.records import (
    AdvanceRecorded,
    AttemptOutcome,
    Cause,
    EdgeKind,
    HeadMoved,
    LogEntry,
    NodeCreated,
    OutputAppended,
)
from interlock.ledger.outbox.announcements import Announcement, messages, of_entries, timers
from interlock.ledger.tokens.slots import unnamed
from interlock.store.protocol import Changes, HandleRow, StartRow


class Commit:
    """The events of one command on one session, in order, and the principal who gave it."""

    def __init__(self, rows: Rows, principal: str, now: int, *, new: bool = False) -> None:
        self.rows = rows
        self.principal = principal
        self.now = now
        self._before = None if new else rows.session.head_digest
        self._entries: list[Entry] = []
        self._next_node = rows.session.next_node
        self._known_nodes, self._known_runs = set(rows.nodes), dict(rows.runs)
        self._known_blocked = {(row.node, row.attempt) for row in rows.all_blocked()}
        self._responses: dict[int, bytes] = {}
        self._blocked_response = b""
        self._announced: list[tuple[Occasion, Announcement]] = []

    def add(self, event: LogEntry, *, run: int | None = None, node: int | None = None) -> None:
        self._entries.append(Entry(event, run, node))

    def announce(self, occasion: Occasion, about: Announcement) -> None:
        """Tell people what the events alone do not say."""
        self._announced.append((occasion, about))

    def add_node(
        self,
        run: int,
        parent: int | None,
        decided: Decided,
        cause: Cause = "advanced",
        *,
        leads: bool = True,
        held: bool = False,
    ) -> int:
        """Record the events of a command and the step node that they lead to."""
        node = self._next_node
        self._next_node += 1
        for event in decided.events:
            self.add(event, run=run, node=node)
        self.rows.decided[node] = decided
        edge: EdgeKind = "root" if parent is None else "acked_step"
        created = NodeCreated(node, parent, edge, cause, awaiting(decided.awaited), leads, held)
        self.add(created, run=run, node=node)
        return node

    def make_head(self, run: int, node: int) -> None:
        """Let work continue with another run of the session."""
        if (self.rows.session.head_run, self.rows.session.head_node) != (run, node):
            self.add(HeadMoved(run, node), run=run)

    def keep_head(self, run: int) -> None:
        """Let work continue where it is, if that is in another run than the one that gets a node."""
        head = self.rows.session
        if head.head_run is not None and head.head_run != run and head.head_node is not None:
            self.add(HeadMoved(head.head_run, head.head_node), run=head.head_run)

    def add_note_node(self, run: int, parent: int) -> int:
        """Record a node of notes; it hangs on its parent and never counts as a child (rule 8)."""
        node = self._next_node
        self._next_node += 1
        self.add(NodeCreated(node, parent, "checkpoint", "noted", leads=False), run=run, node=node)
        return node

    def add_outputs(self, run: int | None, node: int, attempt: int, claims: Sequence[Claim]) -> None:
        """Keep the notes and artifacts of steps with the attempt that sent them (rule 45)."""
        for step, kept in [(claim.step, within_budget(claim.output)) for claim in claims]:
            if kept.notes:
                self.add(OutputAppended(node, attempt, "recap", step, kept.notes), run=run)
            for artifact in kept.artifacts:
                self.add(OutputAppended(node, attempt, "artifact", step, artifact=artifact), run=run)

    def add_attempt(
        self,
        run: int,
        node: int,
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
        awaited: Awaited | None = None,
    ) -> None:
        """Record the attempt with its response; a replay returns exactly this (rule 7)."""
        response = unnamed(response, self.rows.runs[run])
        if child is None:
            self._blocked_response = response
        else:
            self._responses[child] = response
        event = AdvanceRecorded(
            node=node,
            attempt=attempt,
            outcome=outcome,
            request=request.hex(),
            response=sha256(response).hexdigest(),
            child=child,
            successor=successor,
            blockers=blockers,
            kept=kept or {},
            notices=notices,
            surface=surface,
            awaiting=awaiting(awaited) if awaited is not None else "",
        )
        self.add(event, run=run)

    def finish(
        self,
        key: str | None = None,
        *,
        handles: tuple[HandleRow, ...] = (),
        starts: tuple[StartRow, ...] = (),
        contents: Mapping[str, bytes] | None = None,
    ) -> Changes:
        """Chain the events onto the head and return all that the command changes."""
        rows, session = self.rows, self.rows.session
        before = session.head_index, session.head_digest
        row = commit_of(session.session_id, *before, self.principal, self._entries, self.now, key)
        for offset, entry in enumerate(self._entries):
            apply(rows, logged_entry(row, offset, entry, self.principal))
        rows.move_head(row)
        return Changes(
            session=rows.session,
            before=self._before,
            commit=row,
            runs=[run for number, run in rows.runs.items() if run is not self._known_runs.get(number)],
            nodes=[
                replace(node, response=self._responses.get(number, b""))
                for number, node in rows.nodes.items()
                if number not in self._known_nodes
            ],
            blocked=[
                replace(blocked, response=self._blocked_response)
                for blocked in rows.all_blocked()
                if (blocked.node, blocked.attempt) not in self._known_blocked
            ],
            modes=rows.modes,
            handles=handles,
            starts=starts,
            observations=rows.observations if self._before is None else {},
            contents=contents or {},
            outbox=[
                *messages(row, [*of_entries(self._entries), *self._announced]),
                *timers(row, self._entries),
            ],
        )


def awaiting(awaited: Awaited) -> str:
    """Return what the inbox shows: the gate, question or input that the run waits for, if any."""
    match awaited:
        case NeedStep(asks=(first, *_)):
            return first
        case NeedAnswer():
            return awaited.gate.id
        case NeedInput():
            return awaited.subject
        case _:
            return ""
