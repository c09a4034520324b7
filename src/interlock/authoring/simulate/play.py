"""Plays a scenario through the engine itself, as an agent at the execution surface would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar, assert_never

from msgspec import Struct

from interlock.authoring.filetypes.scenario_file import End, OutputGiven, Scenario
from interlock.authoring.simulate.coverage import CoveragePart, touched
from interlock.core.definition.program import Plan, confirmation
from interlock.core.definition.workflow import Step
from interlock.core.engine.decide import decide
from interlock.core.engine.decisions import DECISION
from interlock.core.run.commands import AcknowledgeStep, StartRun, Terms
from interlock.core.run.outcomes import (
    Awaited,
    Decided,
    Done,
    NeedAnswer,
    NeedEntry,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
)
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json

LONGEST_RUN = 2_000

PlayedEnd = End | Literal["unscripted", "endless"]
T = TypeVar("T")


class Visit(Struct, frozen=True):
    """One item on the way: a step that was handed out, or a gate and the option taken there."""

    id: str
    activity: str
    option: str | None = None
    context: Mapping[str, Json] = {}


class Played(Struct, frozen=True):
    """What came of a scenario. `reason` says why it went no further."""

    visits: tuple[Visit, ...]
    end: PlayedEnd
    blockers: tuple[str, ...] = ()
    reason: str = ""
    parts: frozenset[CoveragePart] = frozenset()

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(visit.id for visit in self.visits)


class _Unscripted(Exception):
    """The script has no entry for this visit."""


def play(plan: Plan, digest: str, scenario: Scenario) -> Played:
    """Run a scenario to its end or to its first block."""
    run = _Run(plan, scenario)
    try:
        end, last = run.play(digest)
    except _Unscripted as missing:
        return Played(tuple(run.visits), "unscripted", reason=str(missing), parts=frozenset(run.parts))
    codes = tuple(one.code.value for one in last.blockers)
    reason = last.blockers[0].message if last.blockers else ""
    return Played(tuple(run.visits), end, codes, reason, frozenset(run.parts))


class _Run:
    """A run in memory: where it went, and what it touched."""

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.plan = plan
        self.scenario = scenario
        self.visits: list[Visit] = []
        self.parts: set[CoveragePart] = set()

    def play(self, digest: str) -> tuple[PlayedEnd, Decided]:
        start = StartRun(EXECUTION, 0, digest, "test", PRESETS[self.scenario.mode], self.scenario.context)
        now = self._decided(decide(self.plan, RunState(), start), None)
        while not isinstance(now.awaited, Done) and len(self.visits) < LONGEST_RUN:
            here = now.state.activity
            now = self._decided(decide(self.plan, now.state, self._acknowledged(now.awaited, here)), here)
            if now.blockers:
                return "blocked", now
        return ("endless" if now.state.status == "in_progress" else now.state.status), now

    def _decided(self, outcome: Decided | Refusal, activity: str | None) -> Decided:
        assert isinstance(outcome, Decided), outcome
        self.parts.update(touched(outcome.events, activity))
        return outcome

    def _acknowledged(self, awaited: Awaited, activity: str | None) -> AcknowledgeStep:
        match awaited:
            case NeedStep(step=step):
                return self._step(step, activity or "")
            case NeedAnswer(gate=gate):
                option = self._answer(gate.id)
                self.visits.append(Visit(gate.id, activity or "", option))
                artifacts = (_decision(gate.id, option),) if option else ()
                return AcknowledgeStep(EXECUTION, 0, Terms(), Output(artifacts=artifacts), reports=False)
            case NeedInput(variables=names):
                given = {name: self.scenario.inputs[name] for name in names if name in self.scenario.inputs}
                return AcknowledgeStep(EXECUTION, 0, Terms(), variables=given)
            case Done() | NeedLoop() | NeedExit() | NeedEntry():
                raise AssertionError(awaited)
            case _:
                assert_never(awaited)

    def _step(self, step: Step, activity: str) -> AcknowledgeStep:
        given = self._given(self.scenario.outputs.get(step.id), step.id) or OutputGiven()
        artifacts = (*given.artifacts, *self._confirmation(step))
        self.visits.append(Visit(step.id, activity, context=given.context))
        return AcknowledgeStep(EXECUTION, 0, Terms(), Output(given.notes, artifacts), given.context)

    def _confirmation(self, step: Step) -> Iterator[Mapping[str, Json]]:
        """A step is confirmed in the same call; without an answer the call itself says proceed (rule 25)."""
        gate = confirmation(step)
        if step.confirm is not False and gate.id in self.scenario.answers:
            option = self._given(self.scenario.answers[gate.id], step.id)
            assert option is not None
            yield _decision(gate.id, option)

    def _answer(self, gate_id: str) -> str | None:
        return self._given(self.scenario.answers.get(gate_id), gate_id)

    def _given(self, entry: T | tuple[T, ...] | None, item_id: str) -> T | None:
        """A list has one entry a visit; anything else serves them all."""
        if not isinstance(entry, tuple):
            return entry
        number = sum(visit.id == item_id for visit in self.visits)
        if number >= len(entry):
            raise _Unscripted(f"'{item_id}' is visited {number + 1} times, and the list has {len(entry)}")
        found: T = entry[number]
        return found


def _decision(gate_id: str, option: str) -> dict[str, Json]:
    return {"kind": DECISION, "checkpointId": gate_id, "optionId": option}
