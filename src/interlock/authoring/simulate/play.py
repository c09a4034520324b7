"""Plays a scenario through the engine, as an agent on the execution surface would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.filetypes.gate_source import milliseconds
from interlock.authoring.filetypes.scenario_file import End, OutputGiven, Scenario
from interlock.authoring.simulate.coverage import CoveragePart, touched
from interlock.core.definition.program import Plan, confirmation
from interlock.core.definition.workflow import Gate, Step
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.decisions import quorum
from interlock.core.engine.gates import question_of
from interlock.core.engine.settle import UNSET
from interlock.core.run.commands import (
    AcknowledgeStep,
    Approve,
    CheckResult,
    Decision,
    DueCheck,
    Escalate,
    StartRun,
    Terms,
)
from interlock.core.run.events import CheckRan
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
)
from interlock.core.run.output import Output
from interlock.core.run.polls import Approver
from interlock.core.run.preferences import PRESETS
from interlock.core.run.questions import DECISION
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION
from interlock.core.values import Json
from interlock.core.variables.typed_values import sample

LONGEST_RUN = 2_000
STARTER = "starter"  # who begins the run of a scenario

PlayedEnd = End | Literal["unscripted", "endless"]
T = TypeVar("T")


class PlayedItem(Struct, frozen=True):
    """One item of the run: a step that was handed out, or a gate and the option that was chosen."""

    id: str
    activity: str
    option: str | None = None
    context: Mapping[str, Json] = {}


class Played(Struct, frozen=True):
    """The result of a scenario; `reason` says why it ended early."""

    visits: tuple[PlayedItem, ...]
    end: PlayedEnd
    blockers: tuple[str, ...] = ()
    reason: str = ""
    parts: frozenset[CoveragePart] = frozenset()

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(visit.id for visit in self.visits)


class _Unscripted(Exception):
    """The scenario has no entry for this visit."""


def play(plan: Plan, digest: str, scenario: Scenario) -> Played:
    """Run a scenario to its end or to its first block."""
    run = _Run(plan, scenario)
    try:
        end, last = run.play(digest)
    except _Unscripted as error:
        return Played(tuple(run.visits), "unscripted", reason=str(error), parts=frozenset(run.parts))
    codes = tuple(blocker.code.value for blocker in last.blockers)
    reason = last.blockers[0].message if last.blockers else ""
    return Played(tuple(run.visits), end, codes, reason, frozenset(run.parts))


class _Run:
    """A run in memory: the items it visited, and the parts it touched."""

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.visits: list[PlayedItem] = []
        self.parts: set[CoveragePart] = set()
        self._plan = plan
        self._scenario = scenario
        self._now = 0

    def play(self, digest: str) -> tuple[PlayedEnd, Decided]:
        mode, context = PRESETS[self._scenario.mode], self._scenario.context
        start = StartRun(EXECUTION, 0, digest, "test", mode, context, by=STARTER)
        decided = self._decided(RunState(), start)
        while not isinstance(decided.awaited, Done) and len(self.visits) < LONGEST_RUN:
            state = self._polled(decided.state)
            decided = self._decided(state, self._acknowledgement(decided.awaited, state))
            if decided.blockers:
                return "blocked", decided
        status = decided.state.status
        assert status != "abandoned", "nobody gives up a run that is simulated"
        return ("endless" if status == "in_progress" else status), decided

    def _decided(self, state: RunState, command: StartRun | AcknowledgeStep) -> Decided:
        outcome = outcome_of(self._plan, state, command)
        while outcome.unchecked and isinstance(command, AcknowledgeStep):
            results = tuple(map(self._check, outcome.unchecked))
            command = replace(command, checked=(*command.checked, *results))
            outcome = outcome_of(self._plan, state, command)
        assert isinstance(outcome, Decided), outcome
        self.parts.update(touched(outcome.events, state.activity))
        return outcome

    def _check(self, due: DueCheck) -> CheckResult:
        """Let a check end as the scenario says; nothing is run."""
        expected = due.check.expected.exit
        status = self._scenario.checks.get(due.check.id, expected)
        ran = CheckRan(
            due.key,
            due.check.id,
            due.definition,
            (due.check.run,),
            due.check.folder,
            "exited",
            0,
            passed=status == expected,
            exit=status,
            reason=f"expected {due.check.expected.text}",
            trusted_by="cli:scenario",
        )
        return CheckResult(due, ran)

    def _polled(self, state: RunState) -> RunState:
        """Let people answer the open question as the scenario says; who may not is not heard."""
        opened = state.visit.open
        for entry in self._scenario.approvals.get(opened.gate, ()) if opened is not None else ():
            assert state.visit.open is not None, "on this surface a poll leaves the question open"
            gate, shown = state.visit.open.gate, state.visit.open.shown
            command: Approve | Escalate
            if entry.after is not None:
                self._now += milliseconds(entry.after)
                command = Escalate(EXECUTION, self._now, gate, shown)
            else:
                person = Approver(entry.by, entry.groups)
                command = Approve(EXECUTION, self._now, "console", person, gate, shown, entry.option)
            outcome = outcome_of(self._plan, state, command)
            state = outcome.state if isinstance(outcome, Decided) else state
        return state

    def _answer(self, state: RunState, gate: Gate, option: str | None) -> AcknowledgeStep:
        if gate.decide is not None and gate.id in self._scenario.approvals:
            assert state.visit.open is not None, "a gate that is awaited was put"
            decision = quorum(gate.decide, state.poll(state.visit.open))
            option = decision.option if decision is not None else None
        if option is None:
            return AcknowledgeStep(EXECUTION, self._now, Terms(), reports=False)
        return answered(self._plan, state, gate, option, self._now)

    def _acknowledgement(self, awaited: Awaited, state: RunState) -> AcknowledgeStep:
        scenario, activity = self._scenario, state.activity or ""
        match awaited:
            case NeedStep(step=step):
                output = self._entry(scenario.outputs.get(step.id), step.id) or OutputGiven()
                artifacts = output.artifacts
                gate = confirmation(step)
                # A step is confirmed in the same call; without an answer the call means proceed (rule 25).
                if step.may_confirm and gate.id in scenario.answers:
                    answer = self._entry(scenario.answers[gate.id], step.id)
                    assert answer is not None
                    artifacts = (*artifacts, decision_artifact(gate.id, answer))
                self.visits.append(PlayedItem(step.id, activity, context=output.context))
                notes = output.notes or ", ".join(step.hands_in) or ("done" if step.wants_notes else "")
                variables = {**self._stand_ins(step, state), **output.context}
                return AcknowledgeStep(EXECUTION, 0, Terms(), Output(notes, artifacts), variables)
            case NeedAnswer(gate=gate):
                option = self._entry(scenario.answers.get(gate.id), gate.id)
                command = self._answer(state, gate, option)
                polled = next((answer.option for answer in command.decisions.values()), option)
                self.visits.append(PlayedItem(gate.id, activity, polled))
                return command
            case NeedInput(variables=names, gate=gate, example=example):
                # What a question shows is not what a scenario is about: a sample will do.
                stand_ins: dict[str, Json] = {
                    name: sample(self._plan, name, example) for name in names if gate is not None
                }
                if awaited.subject.startswith(UNSET):
                    stand_ins = dict.fromkeys(names)
                inputs = {name: scenario.inputs[name] for name in names if name in scenario.inputs}
                return AcknowledgeStep(EXECUTION, 0, Terms(), variables={**stand_ins, **inputs})
            case Done() | NeedLoop() | NeedExit() | NeedEntry():
                raise AssertionError(awaited)
            case _:
                assert_never(awaited)

    def _stand_ins(self, step: Step, state: RunState) -> dict[str, Json]:
        """Return samples of what a step sets for texts to show: a scenario is not about them."""
        must_set = self._plan.produced(step, self._plan.scope(state.variables))
        known = {*state.variables, *self._plan.decisive, *(need.key for need in step.user_input)}
        shown = (name for name in must_set if name not in known)
        return {name: self._scenario.inputs.get(name, sample(self._plan, name)) for name in shown}

    def _entry(self, entry: T | tuple[T, ...] | None, item_id: str) -> T | None:
        """Return the entry for this visit: a list has one per visit, anything else is for all of them."""
        if not isinstance(entry, tuple):
            return entry
        number = sum(visit.id == item_id for visit in self.visits)
        if number >= len(entry):
            raise _Unscripted(f"'{item_id}' is visited {number + 1} times, but the list has {len(entry)}")
        chosen: T = entry[number]
        return chosen


def answered(plan: Plan, state: RunState, gate: Gate, option: str, now: int = 0) -> AcknowledgeStep:
    """Return the command that answers a gate: the agent reports it, or its approvers have agreed on it."""
    if gate.decide is None:
        output = Output(artifacts=(decision_artifact(gate.id, option),))
        return AcknowledgeStep(EXECUTION, now, Terms(), output, reports=False)
    agreed = {question_of(plan, state, gate).digest: Decision(option, "approvers")}
    return AcknowledgeStep(EXECUTION, now, Terms(), decisions=agreed, reports=False)


def decision_artifact(gate_id: str, option: str) -> dict[str, Json]:
    """Return the artifact that answers a gate."""
    return {"kind": DECISION, "checkpointId": gate_id, "optionId": option}
