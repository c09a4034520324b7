"""Stories about the core: `given(workflow).start().when(command)…`, with events and refusals to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity, Item, Workflow
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.guard.audit import Audit, learned
from interlock.core.run.commands import (
    AcknowledgeStep,
    Command,
    StartRun,
    Terms,
)
from interlock.core.run.events import Event
from interlock.core.run.outcomes import (
    Awaited,
    Code,
    Decided,
    NeedAnswer,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
)
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, SurfacePolicy


class Story:
    """A run in memory, and everything that happened in it."""

    def __init__(self, workflow: Workflow, policy: SurfacePolicy = EXECUTION, mode: Mode = "guided") -> None:
        self.plan = Plan(workflow)
        self.policy = policy
        self.mode = mode
        self.state = RunState()
        self.audit = Audit()
        self.events: list[Event] = []
        self.outcome: Decided | Refusal | None = None
        self.now = 1_000_000

    def start(self, **variables: Any) -> Story:
        loosest = Terms("agent", "advisory")  # a command is decided under these or tighter ones
        preferences = PRESETS[self.mode]
        return self.when(StartRun(self.policy, self.now, "sha256:0", "test", preferences, variables, loosest))

    def when(self, command: Command) -> Story:
        outcome = decide(self.plan, self.state, command, self.audit)
        self.outcome = outcome
        assert not (isinstance(outcome, Refusal) and outcome.code is Code.GUARD_REFUSED), outcome.about
        if isinstance(outcome, Decided):
            assert evolved(self.state, [] if outcome.blockers else outcome.events) == outcome.state
            self.events += outcome.events
            self.audit = learned(self.audit, [] if outcome.blockers else outcome.events)
            self.state = outcome.state
            assert outcome.blockers or self.audit.variables == self.state.variables
        else:
            self.events += outcome.kept
            self.audit = learned(self.audit, outcome.kept)
            self.state = evolved(self.state, outcome.kept)
        return self

    def ack(
        self, *artifacts: Mapping[str, Any], notes: str = "done", step: str | None = None, **variables: Any
    ) -> Story:
        return self.when(
            AcknowledgeStep(
                policy=self.policy,
                now=self.now,
                terms=Terms(),
                output=Output(notes, tuple(artifacts)),
                variables=variables,
                step=step,
            )
        )

    @property
    def said(self) -> str:
        """The notices of the last outcome, a line each."""
        assert self.outcome is not None
        return self.outcome.notices.text

    @property
    def awaited(self) -> Awaited:
        assert isinstance(self.outcome, Decided)
        return self.outcome.awaited

    @property
    def pending(self) -> str:
        """The key of what is awaited."""
        match self.awaited:
            case NeedStep(key=key) | NeedAnswer(key=key):
                return key
            case NeedInput(subject=subject):
                return subject
            case NeedLoop(loop=loop):
                return f"loop:{loop.id}"
            case other:
                return type(other).__name__

    def kinds(self) -> list[str]:
        return [str(event.__struct_config__.tag) for event in self.events]

    def path(self, most: int = 100, **variables: Any) -> list[str]:
        """Acknowledge whatever comes until the end, and list what it was."""
        seen: list[str] = []
        while isinstance(self.awaited, NeedStep) and len(seen) < most:
            seen.append(self.pending)
            self.ack(**variables)
        return seen

    def stored(self) -> RunState:
        """The state as it comes back from disk."""
        return msgspec.json.decode(msgspec.json.encode(self.state), type=RunState)


def one_activity(*items: Item, **fields: Any) -> Workflow:
    return activities(Activity("main", "Main", items), **fields)


def activities(*listed: Activity, initial: str | None = None, **fields: Any) -> Workflow:
    return Workflow(
        id="test.flow",
        name="Flow",
        description="",
        version="1.0.0",
        activities=tuple(listed),
        initial=initial or listed[0].id,
        **fields,
    )


def given(workflow: Workflow, policy: SurfacePolicy = EXECUTION, mode: Mode = "guided") -> Story:
    return Story(workflow, policy, mode)


def only(events: Sequence[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
