"""One call of one agent on the head of its session: what it may read, its token, and its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from interlock.core.definition.workflow import Activity, Gate, Workflow
from interlock.core.engine.gates import find_gate
from interlock.core.run.state import RunState
from interlock.ledger.runs.position import Position
from interlock.ledger.runs.shared_sessions import Calling, Sessions
from interlock.ledger.tokens.tokens import Pointer
from interlock.surfaces.call import Reply
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.documents import Documents
from interlock.surfaces.shared.replies import failure


class SessionPosition(Struct, frozen=True):
    """A reading call on the head of a session."""

    sessions: Sessions
    pointer: Pointer
    position: Position
    calling: Calling

    @property
    def state(self) -> RunState:
        return self.position.state

    @property
    def workflow(self) -> Workflow:
        return self.position.plan.workflow

    @property
    def activity(self) -> Activity | None:
        return self.workflow.activity(self.state.activity)

    @property
    def token(self) -> str:
        """The caller's token for the current visit."""
        return self.sessions.ledger.mint("ses", self.pointer.handle, self.state.visit)

    @property
    def documents(self) -> Documents:
        """The texts that the run is pinned to."""
        ledger = self.sessions.ledger
        return Documents(self.workflow, ledger.text, ledger.library)

    def warnings(self) -> tuple[str, ...]:
        """What is worth saying whatever was asked: a token of an earlier visit, a changed definition."""
        return (*self._moved_on(), *validation.drift(self.sessions.ledger, self.position))

    def _moved_on(self) -> Iterator[str]:
        if self.pointer.node != self.state.visit:
            where = f"'{self.state.activity}'" if self.state.activity else "its beginning"
            yield f"The session has moved on to {where}; use the session_token of this response."

    def answer(self, reply: Reply, warnings: Sequence[str] = (), error: str = "") -> Reply:
        """Trace the call and return its answer."""
        error = error or (reply.text.partition("\n")[0] if reply.is_error else "")
        self.sessions.trace(self.position, self.calling, error, tuple(warnings))
        return reply

    def not_found(self, what: str, ref: str, next_action: str) -> Reply:
        text = f"{what} not found: {ref}"
        return self.answer(failure("NOT_FOUND", text, next_action, token=self.token), error=text)


def status_of(position: Position) -> str:
    """active, blocked or completed."""
    if position.state.finished:
        return "completed"
    return "blocked" if position.state.open is not None else "active"


def open_gate(position: Position) -> Gate | None:
    """The gate whose question is open."""
    state = position.state
    found = find_gate(position.plan, state, state.open.gate) if state.open else None
    return found.gate if found else None
