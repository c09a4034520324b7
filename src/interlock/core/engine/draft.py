"""The events of a command while it is being decided, and the state they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.core.definition.program import Plan
from interlock.core.engine.evolve import evolve
from interlock.core.engine.settle import settle
from interlock.core.run import events as e
from interlock.core.run.outcomes import Awaited, Decided, Notice
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import SurfacePolicy

PASSED_OVER = "PASSED_OVER"


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
        """Apply the automatic events, and return what is awaited then."""
        events, self.state, pending = settle(self.plan, self.state, self.policy, self.now)
        self.events.extend(events)
        return pending

    def decided(self) -> Decided:
        """Settle, and return everything that the command has brought about."""
        pending = self.settle()
        notices = (*self.notices, *_passed_over(self.events))
        return Decided(tuple(self.events), self.state, pending, notices=notices)


def _passed_over(events: Iterable[e.Event]) -> Iterator[Notice]:
    """Name each step, gate or loop that was passed over only because of unset variables (rule 20)."""
    for event in events:
        match event:
            case e.StepSkipped(unset=unset) if unset:
                item, condition = f"Step '{event.step}'", f" ({event.condition})"
            case e.GatePassed(unset=unset) if unset:
                item, condition = f"Checkpoint '{event.gate}'", f" ({event.condition})"
            case e.LoopLeft(unset=unset) if unset:
                item, condition = f"Loop '{event.loop}'", ""
            case _:
                continue
        names = ", ".join(f"'{name}'" for name in unset)
        yield Notice(PASSED_OVER, f"{item} was passed over: nobody has set {names}{condition}.")
