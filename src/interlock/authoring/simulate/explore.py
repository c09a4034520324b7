"""Explores a workflow without an agent: every option, branch and loop exit, by the engine itself.

Contracts and criteria are left out, since an agent is trusted to meet them; loops run at most three times.
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
from interlock.core.definition.program import LOOP_CONTROL, Plan
from interlock.core.definition.prompts import gate_prompt, step_prompt
from interlock.core.definition.workflow import Activity, Gate, Item, Loop, Step, Workflow
from interlock.core.engine.decide import decide
from interlock.core.engine.decisions import DECISION
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

MOST_STATES = 10_000
MOST_ROUNDS = 3
MOST_COUNTED = 12


class ExploredState(Struct, frozen=True):
    """A state of the run that waits for someone: where, for what, and how much text it hands out."""

    activity: str
    id: str
    awaited: Awaited
    size: int = 0


class Explored(Struct):
    """The graph of states, each with its successors; `cut` says that the bound was reached.

    `entering` are the edges on which another activity was entered.
    """

    locations: list[ExploredState] = field(default_factory=list)
    edges: list[list[int]] = field(default_factory=list)
    entering: set[tuple[int, int]] = field(default_factory=set)
    parts: set[CoveragePart] = field(default_factory=set)
    exits: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    cut: bool = False


def explore(workflow: Workflow, most: int = MOST_STATES) -> Explored:
    """Walk breadth first until nothing new comes up or the bound is reached."""
    return _Explorer(bare(workflow), most).explore()


def bare(workflow: Workflow) -> Workflow:
    """The workflow without what only an agent's work can satisfy, and with short loops."""
    return replace(workflow, activities=tuple(map(_bare_activity, workflow.activities)))


def _bare_activity(activity: Activity) -> Activity:
    return replace(activity, items=tuple(map(_bare, activity.items)))


def _bare(item: Item) -> Item:
    match item:
        case Step():
            steering = tuple(one for one in item.contracts if one.artifact == LOOP_CONTROL)
            return replace(item, contracts=steering, criteria=None, user_input=(), confirm=False)
        case Gate():
            return item
        case Loop():
            body, count = tuple(map(_bare, item.body)), item.count
            count = min(count, MOST_COUNTED) if isinstance(count, int) else count
            return replace(item, body=body, max_iterations=_rounds(item), count=count)


def _rounds(loop: Loop) -> int:
    """Rounds that look alike are tried a few times; where a variable counts them, more of them matter."""
    if loop.kind in ("for", "forEach"):
        return loop.max_iterations
    return min(loop.max_iterations, MOST_COUNTED if loop.iteration_var or loop.index_var else MOST_ROUNDS)


class _Explorer:
    def __init__(self, workflow: Workflow, most: int) -> None:
        self._plan = Plan(workflow)
        self._most = most
        self._trials = Trials(workflow)
        self._live = Liveness(self._plan, self._trials.setters)
        self._known: dict[bytes, int] = {}
        self._todo: deque[tuple[int, RunState]] = deque()
        self.found = Explored()

    def explore(self) -> Explored:
        self._start(self._plan)
        self._go_on()
        for activity in self._plan.workflow.activities:
            if activity.recognition and not self._entered(activity.id):
                self._start(Plan(replace(self._plan.workflow, initial=activity.id)))
                self._go_on()
        return self.found

    def _entered(self, activity_id: str) -> bool:
        return any(location.activity == activity_id for location in self.found.locations)

    def _start(self, plan: Plan) -> None:
        for given in self._trials.assignments(self._trials.given):
            start = StartRun(EXECUTION, 0, "sha256:0", "simulation", PRESETS["guided"], given)
            self._arrive(decide(plan, RunState(), start), None)

    def _go_on(self) -> None:
        while self._todo:
            number, state = self._todo.popleft()
            location = self.found.locations[number]
            for command in self._commands(location, state):
                outcome = decide(self._plan, state, command)
                after = self._arrive(outcome, state.activity)
                if after is not None and after not in self.found.edges[number]:
                    self.found.edges[number].append(after)
                    if _enters(outcome):
                        self.found.entering.add((number, after))

    def _arrive(self, outcome: Decided | Refusal, activity: str | None) -> int | None:
        """Record what happened, and give the number of the state it led to."""
        if isinstance(outcome, Refusal) or outcome.blockers:
            return None
        self.found.parts.update(touched(outcome.events, activity))
        self._note_exits(outcome, activity)
        key = self._key(outcome)
        if key not in self._known:
            if len(self._known) >= self._most:
                self.found.cut = True
                return None
            self._known[key] = len(self.found.locations)
            self.found.locations.append(self._place(outcome))
            self.found.edges.append([])
            self._todo.append((self._known[key], outcome.state))
        return self._known[key]

    def _note_exits(self, outcome: Decided, activity: str | None) -> None:
        here = activity or ""
        for event in outcome.events:
            if isinstance(event, e.ActivityEntered):
                here = event.activity
            elif isinstance(event, e.LoopLeft):
                self.found.exits.setdefault((here, event.loop), set()).add(event.because)

    def _key(self, outcome: Decided) -> bytes:
        state = outcome.state
        if isinstance(outcome.awaited, Done):
            return b"end"
        live = self._live.at(state.activity, state.next_key)
        values = sorted((name, value) for name, value in state.variables.items() if name in live)
        frames = [
            (frame.loop, frame.iteration, frame.total, frame.items, frame.limited) for frame in state.frames
        ]
        opened = state.open.key if state.open else None
        location = (
            state.activity,
            state.next_key,
            opened,
            state.exit_to,
            state.left_to,
            state.steer,
            state.skipped,
        )
        return msgspec.msgpack.encode((location, frames, values))

    def _place(self, outcome: Decided) -> ExploredState:
        awaited, state = outcome.awaited, outcome.state
        scope, here = self._plan.scope(state.variables), state.activity or ""
        match awaited:
            case NeedStep(step=step):
                needs = self._plan.workflow.capabilities
                text = step_prompt(step, scope, state.preferences, needs)
                return ExploredState(here, step.id, awaited, len(text.encode()))
            case NeedAnswer(gate=gate):
                return ExploredState(here, gate.id, awaited, len(gate_prompt(gate, scope).encode()))
            case NeedInput():
                return ExploredState(here, awaited.subject, awaited, len(awaited.message.encode()))
            case _:
                return ExploredState(here, "end", awaited)

    def _commands(self, location: ExploredState, state: RunState) -> Iterator[AcknowledgeStep]:
        match location.awaited:
            case NeedStep(step=step):
                yield from self._step(step, self._live.after(state.activity or "", state.next_key))
            case NeedAnswer(gate=gate):
                for option in gate.options:
                    yield _acknowledged(_decision(gate, option.id))
                if not gate.required:
                    yield _acknowledged()
            case NeedInput():
                for given in self._inputs(location.awaited):
                    yield AcknowledgeStep(EXECUTION, 0, Terms(), variables=given)
            case Done() | NeedLoop() | NeedExit() | NeedEntry():
                return
            case _:
                assert_never(location.awaited)

    def _step(self, step: Step, live: frozenset[str]) -> Iterator[AcknowledgeStep]:
        names = [name for name in self._trials.setters[step.id] if name in live]
        steering = any(one.artifact == LOOP_CONTROL for one in step.contracts)
        outputs = [_steer("stop"), _steer("continue")] if steering else [Output()]
        for given in self._trials.assignments(names):
            for output in outputs:
                yield AcknowledgeStep(EXECUTION, 0, Terms(), output, given)

    def _inputs(self, need: NeedInput) -> list[dict[str, Json]]:
        """What the agent may send where the run cannot go on without it."""
        names = [name.partition(".")[0] for name in need.variables]
        if all(name in self._trials.values for name in names):
            return self._trials.assignments(dict.fromkeys(names))
        tried: tuple[Json, ...] = ([ITEM], []) if need.loop and need.loop.kind == "forEach" else (1, 0)
        return [dict.fromkeys(names, value) for value in tried]


def _enters(outcome: Decided | Refusal) -> bool:
    return isinstance(outcome, Decided) and any(isinstance(one, e.ActivityEntered) for one in outcome.events)


def _acknowledged(output: Output | None = None) -> AcknowledgeStep:
    return AcknowledgeStep(EXECUTION, 0, Terms(), output or Output(), reports=False)


def _decision(gate: Gate, option: str) -> Output:
    return Output(artifacts=({"kind": DECISION, "checkpointId": gate.id, "optionId": option},))


def _steer(decision: str) -> Output:
    return Output(artifacts=({"kind": LOOP_CONTROL, "decision": decision},))
