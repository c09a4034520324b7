"""Where a call finds its session: the head as it stands, the caller's token, the texts it may ask for."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from interlock.core.definition.workflow import Activity, Workflow
from interlock.core.run.state import RunState
from interlock.ledger.ledger import Ledger
from interlock.ledger.runs.position import Position, Target
from interlock.surfaces.shared import validation
from interlock.surfaces.shared.documents import Documents


class SessionPosition(Struct, frozen=True):
    """One call of one agent, on the head of its session."""

    ledger: Ledger
    target: Target
    at: Position

    @property
    def state(self) -> RunState:
        return self.at.state

    @property
    def workflow(self) -> Workflow:
        return self.at.plan.workflow

    @property
    def activity(self) -> Activity | None:
        return self.workflow.activity(self.state.activity)

    @property
    def token(self) -> str:
        """The caller's token for the current visit."""
        return self.ledger.mint("ses", self.target.handle, self.state.visit)

    @property
    def documents(self) -> Documents:
        """The texts that the run is pinned to."""
        return Documents(self.workflow, self.ledger.text, self.ledger.library)

    def warnings(self) -> tuple[str, ...]:
        """What is worth saying whatever was asked: a token of an earlier visit, a changed definition."""
        return (*self._moved_on(), *validation.drift(self.ledger.library, self.at))

    def _moved_on(self) -> Iterator[str]:
        if self.target.node != self.state.visit:
            where = f"'{self.state.activity}'" if self.state.activity else "its beginning"
            yield f"The session has moved on to {where}; use the session_token of this response."
