"""The events of a command while it is being decided, and the state they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Step
from interlock.core.engine.decisions import admitted
from interlock.core.engine.evolve import evolve
from interlock.core.engine.settle import settle
from interlock.core.run import events as e
from interlock.core.run.outcomes import Awaited, Decided, Notice
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Variables

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

    def take(self, variables: Variables, completing: Iterable[Step] = ()) -> None:
        """Record the variables of the call, but for those that are the user's (rule 19)."""
        taken, notices = admitted(self.plan, self.state, variables, completing)
        self.notices += notices
        if taken:
            self.record(e.ContextSet(taken))

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
    """Name what was passed over only because of unset variables: steps, gates, loops, effects (rule 20)."""
    for event in events:
        match event:
            case e.StepSkipped(unset=unset) if unset:
                item, condition = f"Step '{event.step}'", f" ({event.condition})"
            case e.GatePassed(unset=unset) if unset:
                item, condition = f"Checkpoint '{event.gate}'", f" ({event.condition})"
            case e.LoopLeft(unset=unset) if unset:
                item, condition = f"Loop '{event.loop}'", ""
            case e.GateResolved(unset=unset) if unset:
                item, condition = f"An effect of checkpoint '{event.gate}'", ""
            case _:
                continue
        names = ", ".join(f"'{name}'" for name in unset)
        yield Notice(PASSED_OVER, f"{item} was passed over: nobody has set {names}{condition}.")
