"""A session as people read it: its runs, nodes and log, each loaded once, when it is first asked for.

The inbox, the brief and a page of events do not use it: they read one node of each run or a window of the
log, and so take no longer in a long session.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from interlock.core.definition.program import Plan
from interlock.core.engine.settle import awaited
from interlock.core.run.outcomes import Awaited
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import POLICIES
from interlock.ledger.decisions.recorded import imported_up_to
from interlock.ledger.log.chain import Logged, logged
from interlock.ledger.runs.positions import Positions
from interlock.store.protocol import NodeRow, RunRow, SessionRow


class WholeSession:
    """What status, tree, story and log lines are told from. Of a damaged log, the first `sound` events."""

    def __init__(self, positions: Positions, session: SessionRow, sound: int | None = None) -> None:
        self.positions = positions
        self.session = session
        self._sound = sound
        self._nodes: dict[int, list[NodeRow]] = {}

    @cached_property
    def runs(self) -> list[RunRow]:
        with self.positions.store.reading() as reader:
            return reader.runs(self.session.session_id)

    @cached_property
    def log(self) -> list[Logged]:
        """The events, in order."""
        with self.positions.store.reading() as reader:
            events = list(logged(reader.commits(self.session.session_id), end=self._sound))
        return [row for row in events if self._sound is None or row.index < self._sound]

    @cached_property
    def imported(self) -> int:
        """The last event that came with a bundle."""
        with self.positions.store.reading() as reader:
            return imported_up_to(reader, self.session.session_id)

    def nodes(self, run: RunRow) -> Sequence[NodeRow]:
        """Return the nodes of a run in order, without their responses."""
        if run.run not in self._nodes:
            with self.positions.store.reading() as reader:
                nodes = reader.nodes(self.session.session_id, run.run)
                self._nodes[run.run] = [
                    row for row in nodes if self._sound is None or row.event_index < self._sound
                ]
        return self._nodes[run.run]

    def plan(self, run: RunRow) -> Plan:
        """Return what a run is pinned to."""
        return self.positions.pins.plan(self.positions.content, run.workflow_hash)

    def awaited(self, run: RunRow, state: RunState) -> Awaited:
        """Return what a run waits for on its own surface."""
        return awaited(self.plan(run), state, POLICIES[run.surface])
