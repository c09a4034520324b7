"""Laws of the decider, held against workflows and agents that nobody thought of.

A run is played by random commands on any surface; what must hold for every run is stated once here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from interlock.core.definition.conditions import holds
from interlock.core.definition.program import AskGate, ConfirmStep, DoStep, EnterLoop, Plan, RepeatLoop
from interlock.core.definition.workflow import TERMINAL, Workflow, walk
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolve, evolved
from interlock.core.engine.settle import UNSET
from interlock.core.guard.audit import Audit, learned
from interlock.core.run import events as e
from interlock.core.run.commands import (
    AcknowledgeStep,
    AdvanceLoop,
    Claim,
    Command,
    Decision,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    ResumeWorker,
    ReturnChild,
    StartChild,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import Code, Decided, Done, NeedAnswer, NeedInput, NeedStep, Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.state import RunState, instance
from interlock.core.run.surface_policy import EXECUTION, GATED, NAVIGATION, SESSION, SurfacePolicy
from interlock.core.values import merged
from interlock.core.variables.writes import owners
from interlock.surfaces.execution import errors as execution
from interlock.surfaces.gated import errors as gated
from interlock.surfaces.navigation import errors as navigation
from interlock.surfaces.session import errors as session
from support.generated import DELTAS, ROUND, VALUES, decision, workflows

pytestmark = pytest.mark.slow

LAWS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
DOORS: list[SurfacePolicy] = [EXECUTION, SESSION, GATED, NAVIGATION]
YIELDING: list[SurfacePolicy] = [SESSION, GATED]  # where checkpoints are opened and resumed from by hand
MODES: list[Mode] = ["guided", "stop", "never-stop"]
ENOUGH = 2000
Draw = st.DataObject
TABLES = [execution.words, session.words, gated.words, navigation.words]


class Run:
    """A run in memory that checks, at every command, what must always hold."""

    def __init__(self, workflow: Workflow, mode: Mode = "guided") -> None:
        self.plan = Plan(workflow)
        self.state = RunState()
        self.audit = Audit()
        self.events: list[e.Event] = []
        self.now = 1_000_000
        self.outcome: Decided | Refusal | None = None
        self.mode = mode

    def start(self, variables: dict[str, Any], policy: SurfacePolicy = EXECUTION) -> Run:
        self.audit = Audit()
        loosest = Terms("agent", "advisory")  # a command is decided under these or tighter ones
        preferences = PRESETS[self.mode]
        return self.do(StartRun(policy, self.now, "sha256:0", "test", preferences, variables, loosest))

    def do(self, command: Command) -> Run:
        self.now += 500
        outcome = decide(self.plan, self.state, command, self.audit)
        self.outcome = outcome
        if isinstance(outcome, Refusal):
            assert outcome.code is not Code.GUARD_REFUSED, outcome.about
            assert all(words(outcome).message and words(outcome).next_action for words in TABLES)
            self._keep(outcome.kept, evolved(self.state, outcome.kept))
            return self
        if outcome.blockers:
            told = {type(event) for event in outcome.events} - {e.TermsApplied}
            asked = {e.QuestionShown, e.ContextSet} if e.QuestionShown in told else set()
            assert told - asked == {e.ValidationPerformed}
            return self
        assert evolved(self.state, outcome.events) == outcome.state
        self._keep(outcome.events, outcome.state)
        return self

    def _keep(self, events: Sequence[e.Event], state: RunState) -> None:
        assert stored(state, RunState) == state
        assert [stored(event, e.Event) for event in events] == list(events)
        self.events += events
        self.state = state
        self.audit = stored(learned(self.audit, events), Audit)
        assert self.audit.variables == self.state.variables

    def change_mode(self, mode: Mode) -> None:
        """What a person does to a tip, at any moment (rule 29)."""
        event = e.PreferencesChanged.to(
            msgspec.structs.replace(self.state.terms, preferences=PRESETS[mode]), "cli"
        )
        self._keep([event], evolve(self.state, event))

    def ack(self, output: Output, variables: dict[str, Any]) -> Run:
        return self.do(AcknowledgeStep(EXECUTION, self.now, Terms(), output, variables))


def stored(value: Any, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


@st.composite
def outputs(draw: Any, plan: Plan, state: RunState) -> Output:
    """What an agent may hand in: the right thing, the wrong thing, or nonsense."""
    pending = decide_awaited(plan, state)
    gate = pending.gate.id if isinstance(pending, NeedAnswer) else "gate1"
    options = st.sampled_from(["option0", "option1", "option2", "proceed", "revise", "bogus"])
    artifact = st.one_of(
        options.map(lambda option: decision(gate, option)),
        st.sampled_from([ROUND.example, {"kind": ROUND.ref, "size": "no"}, {"kind": 7}]),
        st.sampled_from(["continue", "stop", "maybe"]).map(
            lambda word: {"kind": "wr.loop_control", "decision": word}
        ),
        st.builds(lambda value: {"kind": "wr.workflow_divergence", "reason": value}, VALUES),
        st.builds(lambda value: {"kind": "wr.capability_observation", "status": value}, VALUES),
    )
    notes = draw(st.sampled_from(["", "a word", "nothing"]))
    return Output(notes, tuple(draw(st.lists(artifact, max_size=2))))


def decide_awaited(plan: Plan, state: RunState) -> object:
    from interlock.core.engine.settle import awaited

    return awaited(plan, state, EXECUTION)


@st.composite
def commands(draw: Any, plan: Plan, state: RunState, now: int) -> Command:
    """Any command at any surface."""
    policy, delta = draw(st.sampled_from(DOORS)), draw(DELTAS)
    workflow = plan.workflow
    items = [item for activity in workflow.activities for item in walk(activity.items)]
    ids = st.sampled_from([*(item.id for item in items), "nothing", "choose-activity"])
    targets = st.sampled_from([*(activity.id for activity in workflow.activities), TERMINAL, "nowhere"])
    terms = draw(
        st.builds(
            Terms,
            st.sampled_from(["auto", "user", "agent"]),
            st.sampled_from(["strict", "advisory"]),
            st.sampled_from([0, 3000]),
        )
    )
    output = draw(outputs(plan, state))
    decisions = draw(
        st.dictionaries(ids, st.builds(Decision, st.just("option0"), st.just("cli")), max_size=1)
    )
    claims = tuple(draw(st.lists(st.builds(Claim, ids, st.just(output)), max_size=2)))
    kinds: list[st.SearchStrategy[Command]] = [
        st.builds(
            AcknowledgeStep,
            st.just(policy),
            st.just(now),
            st.just(terms),
            st.just(output),
            st.just(delta),
            st.none() | ids,
            st.just(decisions),
        ),
        st.builds(
            EnterActivity,
            st.sampled_from([door for door in DOORS if door.exits != "taken"]),
            st.just(now),
            st.just(terms),
            targets,
            st.just(claims),
            st.none() | st.sampled_from(["", "default", "a == 1"]),
            st.just(delta),
        ),
        st.builds(
            OpenCheckpoint,
            st.sampled_from(YIELDING),
            st.just(now),
            st.just(terms),
            ids,
            st.sampled_from(["", "worker"]),
            st.none() | st.integers(0, 3),
            st.just(claims),
            st.just(delta),
        ),
        st.builds(
            ResolveCheckpoint,
            st.just(policy),
            st.just(now),
            st.just(terms),
            st.sampled_from(["agent", "cli"]),
            st.none() | ids,
            st.none() | st.sampled_from(["option0", "option1", "proceed", "revise", "act0", "bogus"]),
            st.booleans(),
            st.booleans(),
            decisions=st.just(decisions),
            variables=st.just(delta),
        ),
        st.builds(ResumeWorker, st.sampled_from(YIELDING), st.just(now), st.just("worker"), st.just(delta)),
        st.builds(
            AdvanceLoop,
            st.just(policy),
            st.just(now),
            st.just(terms),
            ids,
            st.none() | st.lists(VALUES, max_size=4).map(tuple),
            st.just(delta),
        ),
        st.builds(StartChild, st.just("test.child"), st.just("sess_child")),
        st.builds(ReturnChild, st.just("test.child"), st.just("sess_child"), st.booleans(), st.just(delta)),
    ]
    return draw(st.one_of(kinds))


@LAWS
@given(st.data(), workflows(circles=True), st.sampled_from(MODES), st.sampled_from(DOORS), DELTAS)
def test_no_command_raises_and_every_fact_can_be_replayed(
    data: Draw, workflow: Workflow, mode: Mode, policy: SurfacePolicy, context: dict[str, Any]
) -> None:
    """Any command at any surface gives a value; its events lead to the decided state; both survive disk."""
    run = Run(workflow, mode).start(context, policy)
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.integers(0, 5)) == 0:
            run.change_mode(data.draw(st.sampled_from(MODES)))
        run.do(data.draw(commands(run.plan, run.state, run.now)))
    assert evolved(RunState(), run.events) == run.state


@LAWS
@given(st.data(), workflows(circles=True), DELTAS)
def test_no_required_gate_is_passed_without_an_answer(
    data: Draw, workflow: Workflow, context: dict[str, Any]
) -> None:
    """Rule 23: in guided mode a run moves only along its program, and past a gate only by right."""
    run = Run(workflow).start(context)
    for _ in range(25):
        if run.state.finished:
            break
        if data.draw(st.integers(0, 4)) and serves(run):
            obey(data, run)
        else:
            run.ack(data.draw(outputs(run.plan, run.state)), data.draw(DELTAS))
    state = RunState()
    for event in run.events:
        after = evolve(state, event)
        check_move(run.plan, state, event, after)
        state = after


def serves(run: Run) -> bool:
    """Say whether an obedient agent knows what to do here."""
    if not isinstance(run.outcome, Decided):
        return False
    awaited = run.outcome.awaited
    return not isinstance(awaited, NeedInput) or awaited.loop is not None


def check_move(plan: Plan, before: RunState, event: e.Event, after: RunState) -> None:
    """Say whether the event moves the run only where its program leads."""
    if isinstance(event, e.GateResolved) and event.how == "given":
        assert (event.channel, event.options) == ("agent", ())
        assert event.sets == {event.gate: event.option}
    elif isinstance(event, e.GateResolved):
        assert (event.how, event.channel) in {("chosen", "agent"), ("auto_advanced", "server")}
        assert event.option in event.options
    if isinstance(event, e.StepCompleted):
        assert before.visit.open is None
        assert before.visit.next_key == f"step:{event.step}"
    if before.activity is None or (before.visit.next_key, before.activity) == (
        after.visit.next_key,
        after.activity,
    ):
        return
    if isinstance(event, e.ActivityLeft):
        assert before.visit.next_key == "end" or event.via == "option"
        assert before.visit.open is None
        return
    if before.visit.left_to is not None:
        assert isinstance(event, (e.ActivityEntered, e.RunCompleted))
        return
    check_step(plan, before, event, after)


def check_step(plan: Plan, before: RunState, event: e.Event, after: RunState) -> None:
    assert before.activity is not None
    program = plan.program(before.activity)
    op = program.ops[before.visit.next_key]
    following = program.after(op.key)
    match op:
        case DoStep():
            skipped = isinstance(event, e.StepSkipped) and not holds(
                op.step.condition, plan.scope(before.variables)
            )
            assert skipped or isinstance(event, e.StepCompleted)
            assert after.visit.next_key in (following, program.following.get(f"confirm:{op.step.id}"))
        case AskGate():
            assert isinstance(event, e.GatePassed)
            assert after.visit.next_key == following
            assert may_pass(plan, before, op, event)
        case ConfirmStep():
            revised = isinstance(event, e.GateResolved) and event.option == "revise"
            assert revised or (isinstance(event, e.GatePassed) and after.visit.next_key == following)
        case EnterLoop():
            assert after.visit.next_key in (following, op.after)
        case RepeatLoop():
            assert after.visit.next_key in (op.first, op.after)


def may_pass(plan: Plan, state: RunState, op: AskGate, event: e.GatePassed) -> bool:
    answered = instance(state, op.gate.id) in state.visit.answers
    applies = holds(op.gate.condition, plan.scope(state.variables))
    return answered or not applies or (not op.gate.required and event.because == "optional")


@LAWS
@given(st.data(), workflows(), DELTAS)
def test_never_stop_never_blocks_and_reaches_the_end(
    data: Draw, workflow: Workflow, context: dict[str, Any]
) -> None:
    """Rule 27: whatever the agent hands in, a never-stop run goes on; idle acknowledgements end it."""
    run = Run(workflow, "never-stop").start(context)
    for turn in range(ENOUGH):
        assert isinstance(run.outcome, Decided)
        assert not run.outcome.blockers
        if isinstance(run.outcome.awaited, Done):
            break
        output = data.draw(outputs(run.plan, run.state)) if turn < 8 else Output()
        run.ack(output, data.draw(DELTAS) if turn < 8 else {})
    assert run.state.finished
    assert (run.state.status == "complete_with_gaps") == bool(run.state.gaps.open)


@LAWS
@given(st.data(), workflows(defaults=True), DELTAS)
def test_an_obedient_agent_reaches_the_end(data: Draw, workflow: Workflow, context: dict[str, Any]) -> None:
    """Guided mode: whoever answers the gates, sends the examples and gives the lists is never blocked."""
    run = Run(workflow).start(context)
    for _ in range(ENOUGH):
        assert isinstance(run.outcome, Decided)
        assert not run.outcome.blockers, run.outcome.blockers
        if isinstance(run.outcome.awaited, Done):
            break
        obey(data, run)
    assert run.state.finished


def obey(data: Draw, run: Run) -> None:
    assert isinstance(run.outcome, Decided)
    match run.outcome.awaited:
        case NeedStep(step=step):
            examples = [contract.example for contract in step.contracts]
            wanted = {item.key: "here" for item in step.user_input if item.key}
            required = run.plan.produced(step, run.plan.scope(run.state.variables))
            unset = [name for name in required if name not in run.state.variables]
            wanted |= {name: next(iter(run.plan.choices(name).values), "here") for name in unset}
            run.ack(Output("a word", tuple(examples)), wanted)  # type: ignore[arg-type]
        case NeedAnswer(gate=gate, confirms=None):
            option = data.draw(st.sampled_from([option.id for option in gate.options]))
            run.ack(Output(artifacts=(decision(gate.id, option),)), {})
        case NeedAnswer(gate=gate):
            run.ack(Output(artifacts=(decision(gate.id, "proceed"),)), {})
        case NeedInput(loop=loop, variables=(name,)) if loop is not None:
            assume(name not in owners(run.state))  # what the user was shown is not the agent's to give
            run.ack(Output(), {name: ["x", "y"] if loop.kind == "forEach" else 2})
        case NeedInput(loop=None, gate=None, subject=subject, variables=names) if subject.startswith(UNSET):
            sent = {name: data.draw(st.none() | VALUES) for name in names}  # null leaves it unset
            run.ack(Output(), sent)
            assert getattr(run.outcome.awaited, "variables", ()) != names
        case other:
            raise AssertionError(f"an obedient agent cannot serve {other}")


@LAWS
@given(st.data(), workflows(), DELTAS)
def test_variables_are_kept_and_null_too(data: Draw, workflow: Workflow, context: dict[str, Any]) -> None:
    """Rule 19: variables are the shallow merge of everything recorded, and of nothing else."""
    run = Run(workflow).start(context)
    for _ in range(data.draw(st.integers(1, 10))):
        if not run.state.finished:
            run.ack(data.draw(outputs(run.plan, run.state)), data.draw(DELTAS))
    told: dict[str, Any] = {}
    for event in run.events:
        told = {**merged(told, getattr(event, "sets", {})), **getattr(event, "delta", {})}
    assert told == run.state.variables


@settings(LAWS, max_examples=20)
@given(workflows(defaults=True), st.integers(2, 5))
def test_the_state_does_not_grow_with_the_run(workflow: Workflow, laps: int) -> None:
    """Rule 30: after any number of laps through the same activities the state is as small as after two."""
    first = workflow.activities[0].id
    run = Run(workflow, "never-stop").start({})
    sizes = []
    for _ in range(2 + laps):
        for _ in range(ENOUGH):
            if run.state.finished:
                break
            run.ack(Output(), {})
        sizes.append(len(run.state.visit.done) + len(run.state.visit.answers) + len(run.state.visit.frames))
        run.state = msgspec.structs.replace(run.state, status="in_progress").within(left_to=first)
        run.audit = msgspec.structs.replace(run.audit, status="in_progress").within(left_to=first)
    assert len(set(sizes[1:])) == 1
    assert len(run.state.route.completed) <= len(workflow.activities)


def test_a_thousand_rounds_leave_no_trace_in_the_state() -> None:
    """Rule 30: answers and outputs of an iteration do not pile up; of gaps the first fifty are listed."""
    from interlock.core.definition.workflow import Gate, Loop, Option, Step
    from support.story import one_activity

    gate = Gate("ok", "OK?", "OK?", (Option("yes", "Yes"),))
    inner = Loop("inner", "Inner", "for", (Step("work", "Work"), gate), count=10)
    run = Run(one_activity(Loop("outer", "Outer", "for", (inner,), count=100)), "never-stop").start({})
    sizes: list[int] = []
    while not run.state.finished:
        run.ack(Output(), {})
        sizes.append(len(msgspec.json.encode(run.state)))
    settled = sizes[len(sizes) // 10 :]
    assert max(settled) - min(settled) < 350  # an open question has its digest and its surface
    assert max(sizes) < 8_000
