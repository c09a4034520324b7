"""Which texts an agent has read: what it holds is not sent a second time (rule 17a).

Kept in memory, and by process: whoever comes back after a restart is sent everything again, which costs
bytes and never an answer.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import OrderedDict

from msgspec import Struct

from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import logged
from interlock.ledger.log.records import CallTraced
from interlock.ledger.runs.position import Position

MOST_AGENTS = 1000
MOST_TEXTS = 1000


class Held(Struct):
    """The digests of the texts that an agent was sent, and the head of the log up to which that is known."""

    head: int
    marks: set[str]


class Deliveries:
    """The texts that each agent was sent since it joined its session, which it does by one tool."""

    def __init__(self, ledger: Ledger, joining: str) -> None:
        self._ledger = ledger
        self._joining = joining
        self._agents: OrderedDict[bytes, Held] = OrderedDict()
        self._turn = allocate_lock()

    def holds(self, position: Position, mark: str) -> bool:
        """Say whether the agent was sent the text, and has not joined again since, through any process."""
        held = self._agents.get(position.handle)
        if held is None or mark not in held.marks:
            return False
        if held.head != position.session.head_index and self._has_joined(position, held.head + 1):
            self.forget(position)
            return False
        held.head = position.session.head_index
        return True

    def sent(self, position: Position, mark: str) -> None:
        """Remember that the agent is sent a text."""
        with self._turn:
            held = self._agents.setdefault(position.handle, Held(position.session.head_index, set()))
            if len(held.marks) < MOST_TEXTS:
                held.marks.add(mark)
            self._agents.move_to_end(position.handle)
            if len(self._agents) > MOST_AGENTS:
                self._agents.popitem(last=False)

    def forget(self, position: Position) -> None:
        """Forget what the agent was sent: it says that it begins anew."""
        with self._turn:
            self._agents.pop(position.handle, None)

    def _has_joined(self, position: Position, start: int) -> bool:
        with self._ledger.store.reading() as reader:
            commits = reader.commits(position.session_id, start=start)
            calls = (row.event for row in logged(commits))
            return any(
                isinstance(call, CallTraced) and call.tool == self._joining and call.agent == position.agent
                for call in calls
            )
