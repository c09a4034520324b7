"""Events in the making: what a command has brought about so far, and the state that leads to."""

from __future__ import annotations

from interlock.core.definition.program import Plan
from interlock.core.engine.evolve import evolve
from interlock.core.engine.overlooked import overlooked
from interlock.core.engine.settle import settle
from interlock.core.run import events as e
from interlock.core.run.outcomes import Awaited, Decided, Notice
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import SurfacePolicy


class Draft:
    """Collects the events of one command. It never leaves `decide`."""

    def __init__(self, plan: Plan, state: RunState, policy: SurfacePolicy, now: int) -> None:
        self.plan = plan
        self.state = state
        self.policy = policy
        self.now = now
        self.events: list[e.Event] = []
        self.notices: list[Notice] = []

    def record(self, *events: e.Event) -> None:
        for event in events:
            self.events.append(event)
            self.state = evolve(self.state, event)

    def notice(self, code: str, message: str) -> None:
        self.notices.append(Notice(code, message))

    def settle(self) -> Awaited:
        """Let happen what happens by itself, and say what is awaited then."""
        events, self.state, pending = settle(self.plan, self.state, self.policy, self.now)
        self.events.extend(events)
        return pending

    def decided(self, blockers: tuple[Blocker, ...] = ()) -> Decided:
        pending = self.settle()
        passed_over = () if self.policy.exits == "claimed" else tuple(overlooked(self.events))
        notices = (*self.notices, *passed_over)
        return Decided(tuple(self.events), self.state, pending, blockers, notices)
