"""Explores a workflow without an agent: every option, branch and loop exit, with the real engine.

Contracts and criteria are removed, since an agent is trusted to meet them; loops run at most three times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from interlock.authoring.simulate.candidates import ITEM, Trials
from interlock.authoring.simulate.coverage import CoveragePart, touched
from interlock.authoring.simulate.liveness import Liveness
from interlock.authoring.simulate.play import answered
from interlock.core.definition.program import LOOP_CONTROL, Plan
from interlock.core.definition.prompts import gate_prompt
from interlock.core.definition.workflow import Gate, Item, Loop, Step, Workflow, rewritten
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.settle import UNSET
from interlock.core.run import events as e
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
from interlock.core.variables.sending import Parameters, instruction
from interlock.core.variables.typed_values import sample

MOST_STATES = 10_000
MOST_ROUNDS = 3
MOST_COUNTED = 12


class ExploredState(Struct, frozen=True):
    """A state of the run that awaits something: its item, what is awaited, and the size of its prompt."""

    run: RunState
    id: str
    awaited: Awaited
    size: int = 0

    @property
    def activity(self) -> str:
        return self.run.activity or ""


class Explored(Struct):
    """The graph of states, each with its successors; `cut` says that the bound was reached.

    `entering` are the edges on which another activity was entered; `loop_exits` are the reasons for which
    each loop was left.
    """

    states: list[ExploredState] = field(default_factory=list)
    edges: list[list[int]] = field(default_factory=list)
    entering: set[tuple[int, int]] = field(default_factory=set)
    parts: set[CoveragePart] = field(default_factory=set)
    loop_exits: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    cut: bool = False


def explore(workflow: Workflow, most: int = MOST_STATES) -> Explored:
    """Walk breadth first until there is nothing new or the bound is reached."""
    return _Explorer(simplified(workflow), most).explore()


def simplified(workflow: Workflow) -> Workflow:
    """Remove what only an agent's work can satisfy, and shorten loops."""
    activities = (
        replace(activity, items=rewritten(activity.items, _simplified)) for activity in workflow.activities
    )
    return replace(workflow, activities=tuple(activities), declares_sets=False)


def _simplified(item: Item) -> tuple[Item]:
    match item:
        case Step():
            return (replace(trusted_step(item), confirm=False),)
        case Gate():
            return (item,)
        case Loop():
            # Rounds that look alike are tried a few times; more of them matter where a variable counts them.
            most = MOST_COUNTED if item.iteration_var or item.index_var else MOST_ROUNDS
            rounds = (
                item.max_iterations if item.kind in ("for", "forEach") else min(item.max_iterations, most)
            )
            count = min(item.count, MOST_COUNTED) if isinstance(item.count, int) else item.count
            return (replace(item, max_iterations=rounds, count=count),)


def trusted_step(step: Step) -> Step:
    """Remove what only the work of an agent or its user can satisfy."""
    contracts = tuple(
        contract
        if contract.artifact == LOOP_CONTROL
        else replace(contract, schema={}, required=False, followups=())
        for contract in step.contracts
    )
    checks = tuple(replace(check, run="") for check in step.checks)
    step = replace(step, contracts=contracts, criteria=None, user_input=(), hands_in=(), checks=checks)
    return replace(step, notes_optional=True)


class _Explorer:
    def __init__(self, workflow: Workflow, most: int) -> None:
        self._plan = Plan(workflow)
        self._most = most
        self._trials = Trials(workflow)
        self._live = Liveness(self._plan, self._trials.setters)
        self._possible = PossibleCommands(self._plan, self._trials, self._live)
        self._numbers: dict[bytes, int] = {}
        self._pending: deque[tuple[int, RunState]] = deque()
        self._explored = Explored()

    def explore(self) -> Explored:
        self._explore_from_start(self._plan)
        for activity in self._plan.workflow.activities:
            is_entered = any(state.activity == activity.id for state in self._explored.states)
            if activity.recognition and not is_entered:
                self._explore_from_start(Plan(replace(self._plan.workflow, initial=activity.id)))
        return self._explored

    def _explore_from_start(self, plan: Plan) -> None:
        for variables in self._trials.assignments(self._trials.given):
            start = StartRun(EXECUTION, 0, "sha256:0", "simulation", PRESETS["guided"], variables)
            self._arrive(outcome_of(plan, RunState(), start), None)
        while self._pending:
            number, state = self._pending.popleft()
            for command in self._possible.at(state, self._explored.states[number].awaited):
                outcome = outcome_of(self._plan, state, command)
                after = self._arrive(outcome, state.activity)
                if after is None or after in self._explored.edges[number]:
                    continue
                self._explored.edges[number].append(after)
                if isinstance(outcome, Decided) and any(
                    isinstance(event, e.ActivityEntered) for event in outcome.events
                ):
                    self._explored.entering.add((number, after))

    def _arrive(self, outcome: Decided | Refusal, activity: str | None) -> int | None:
        """Record what happened, and return the number of the state it led to."""
        if isinstance(outcome, Refusal) or outcome.blockers:
            return None
        self._explored.parts.update(touched(outcome.events, activity))
        current = activity or ""
        for event in outcome.events:
            if isinstance(event, e.ActivityEntered):
                current = event.activity
            elif isinstance(event, e.LoopLeft):
                self._explored.loop_exits.setdefault((current, event.loop), set()).add(event.because)
        key = self._key(outcome)
        if key not in self._numbers:
            if len(self._numbers) >= self._most:
                self._explored.cut = True
                return None
            self._numbers[key] = len(self._explored.states)
            self._explored.states.append(self._explored_state(outcome))
            self._explored.edges.append([])
            self._pending.append((self._numbers[key], outcome.state))
        return self._numbers[key]

    def _key(self, outcome: Decided) -> bytes:
        state = outcome.state
        if isinstance(outcome.awaited, Done):
            return b"end"
        live = self._live.at(state.activity, state.visit.next_key)
        values = sorted((name, value) for name, value in state.variables.items() if name in live)
        frames = [
            (frame.loop, frame.iteration, frame.total, frame.items, frame.limited)
            for frame in state.visit.frames
        ]
        position = (
            state.activity,
            state.visit.next_key,
            state.visit.open.key if state.visit.open else None,
            state.visit.exit_to,
            state.visit.left_to,
            state.visit.steer,
            state.route.skipped,
        )
        return msgspec.msgpack.encode((position, frames, values))

    def _explored_state(self, outcome: Decided) -> ExploredState:
        awaited, state = outcome.awaited, outcome.state
        scope = self._plan.scope(state.variables)
        match awaited:
            case NeedStep(step=step):
                text = instruction(self._plan, state, step, Parameters()).text
                return ExploredState(state, step.id, awaited, len(text.encode()))
            case NeedAnswer(gate=gate):
                return ExploredState(state, gate.id, awaited, len(gate_prompt(gate, scope).encode()))
            case NeedInput():
                return ExploredState(state, awaited.subject, awaited, len(awaited.message.encode()))
            case _:
                return ExploredState(state, "end", awaited)


class PossibleCommands:
    """Everything that an agent may send in a state of a run."""

    def __init__(self, plan: Plan, trials: Trials, live: Liveness) -> None:
        self._plan = plan
        self._trials = trials
        self._live = live

    def at(self, state: RunState, awaited: Awaited) -> Iterator[AcknowledgeStep]:
        """Yield the commands that answer what is awaited."""
        match awaited:
            case NeedStep(step=step):
                live = self._live.after(state.activity or "", state.visit.next_key)
                required = self._plan.produced(step, self._plan.scope(state.variables))
                names = [name for name in self._trials.setters[step.id] if name in live or name in required]
                outputs = [Output(artifacts=artifacts) for artifacts in self._trials.handed_in(step)]
                shown = {name: sample(self._plan, name) for name in self._sets_to_show(step, state)}
                for variables in self._trials.assignments(names):
                    for output in outputs:
                        yield AcknowledgeStep(EXECUTION, 0, Terms(), output, {**shown, **variables})
            case NeedAnswer(gate=gate):
                for option in gate.options:
                    yield answered(self._plan, state, gate, option.id)
                if not gate.required:
                    yield AcknowledgeStep(EXECUTION, 0, Terms(), Output(), reports=False)
            case NeedInput(gate=Gate(), variables=names, example=example):
                given = {name: sample(self._plan, name, example) for name in names}
                yield AcknowledgeStep(EXECUTION, 0, Terms(), variables=given)
            case NeedInput(variables=paths, loop=loop):
                names = [path.partition(".")[0] for path in paths]
                samples: tuple[Json, ...] = ([ITEM], []) if loop and loop.kind == "forEach" else (1, 0)
                inputs: list[dict[str, Json]] = [dict.fromkeys(names, sample) for sample in samples]
                if any("." in path for path in paths):  # a member of a variable, as the example shows it
                    inputs = [{name: sample(self._plan, name, awaited.example) for name in names}]
                if awaited.subject.startswith(UNSET):
                    yield AcknowledgeStep(EXECUTION, 0, Terms(), variables=dict.fromkeys(names))
                if all(name in self._trials.values for name in names):
                    inputs = self._trials.assignments(dict.fromkeys(names))
                for variables in inputs:
                    yield AcknowledgeStep(EXECUTION, 0, Terms(), variables=variables)
            case Done() | NeedLoop() | NeedExit() | NeedEntry():
                return
            case _:
                assert_never(awaited)

    def _sets_to_show(self, step: Step, state: RunState) -> Iterator[str]:
        """Yield what a step sets that decides nothing: a question may show it, and any value does."""
        names = (*(action.produces for action in step.actions if action.produces), *step.inferred)
        return (
            name
            for name in names
            if name not in self._trials.values and name not in state.variables and "." not in name
        )
