"""`availableActions` is the truth: what is listed succeeds, and whatever is not listed is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core.definition.program import Plan, confirmation
from interlock.core.definition.workflow import TERMINAL, Activity, Gate, Loop, Option, Step, Workflow, walk
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.moves import Move, Moves, moves, settled_for_navigation
from interlock.core.run.commands import (
    AcknowledgeStep,
    AdvanceLoop,
    Command,
    Decision,
    EnterActivity,
    ResolveCheckpoint,
    StartChild,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import Decided, Done, Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS
from interlock.core.run.reasons import ContextKey
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import NAVIGATION
from interlock.core.values import Variables
from support.generated import DELTAS, workflows
from support.harness import filled

MOST_MOVES = 40
MODES = st.sampled_from(list(PRESETS.values()))
TERMS = st.sampled_from(["auto", "agent", "user"]).map(lambda policy: Terms(decisions=policy))


def ways_to_try(move: Move) -> Iterator[Command]:
    """The commands that the move stands for, with exactly the parameters that it lists."""
    for command in commands_of(move):
        yield replace(command, abandons=move.abandons)


def commands_of(move: Move) -> Iterator[AcknowledgeStep | ResolveCheckpoint | EnterActivity | AdvanceLoop]:
    terms = Terms()
    match move.action:
        case "complete_step":
            yield acknowledged(move, terms)
        case "respond_to_checkpoint":
            for option in move.options:
                yield ResolveCheckpoint(NAVIGATION, 1, terms, "agent", move.target, option)
        case "transition":
            unknown: Variables = dict.fromkeys(move.example)  # null leaves unset what nobody has set
            yield EnterActivity(NAVIGATION, 1, terms, move.target, variables=unknown)
        case "advance_loop":
            sent: Variables = dict.fromkeys(move.variables, 2)
            items = ("one", "two") if move.items is not None else None
            yield AdvanceLoop(NAVIGATION, 1, terms, move.target, items, sent)


def acknowledged(move: Move, terms: Terms) -> AcknowledgeStep:
    given: dict[str, object] = {}
    artifacts = []
    for need in move.needs:
        assert need.message
        if isinstance(need.pointer, ContextKey):
            given.update(filled(need.example))
        elif need.example is not None:
            artifacts.append(filled(need.example))
    output = Output("the word", tuple(artifacts))  # type: ignore[arg-type]
    return AcknowledgeStep(
        NAVIGATION,
        1,
        terms,
        output,
        given,
        move.target,
        reports=False,  # type: ignore[arg-type]
    )


def under(command: Command, terms: Terms, now: int) -> Command:
    return replace(command, terms=terms, now=now)


def listed(found: Moves) -> Iterator[Move]:
    yield from found.required
    yield from found.optional


def everything(workflow: Workflow, state: RunState) -> Iterator[Move]:
    """Every action that anybody could think of here."""
    for activity in workflow.activities:
        yield Move("transition", activity.id)
        for item in walk(activity.items):
            match item:
                case Step():
                    yield Move("complete_step", item.id)
                    if item.confirm is not False:
                        yield asked(confirmation(item))
                case Gate():
                    yield asked(item)
                case Loop():
                    yield Move("advance_loop", item.id)
    yield Move("transition", TERMINAL)
    yield Move("transition", "nowhere")
    yield Move("complete_step", "nothing")
    yield Move("advance_loop", "nothing")
    yield Move("respond_to_checkpoint", "nothing", ("proceed",))


def asked(gate: Gate) -> Move:
    return Move("respond_to_checkpoint", gate.id, (*(option.id for option in gate.options), "no-option"))


def signature(command: Command) -> tuple[object, ...]:
    match command:
        case AcknowledgeStep():
            return "complete_step", command.step
        case ResolveCheckpoint():
            return "respond_to_checkpoint", command.gate, command.option
        case EnterActivity():
            return "transition", command.target
        case AdvanceLoop():
            return "advance_loop", command.loop
        case _:
            raise AssertionError(command)


def check(plan: Plan, state: RunState, terms: Terms, now: int = 1) -> list[Decided]:
    """Try everything; return what the listed moves lead to."""
    found = moves(plan, state, terms, {}, now)
    outcomes, offered = [], set()
    for move in listed(found):
        assert not move.reason
        for command in ways_to_try(move):
            outcome = outcome_of(plan, state, under(command, terms, now))
            assert isinstance(outcome, Decided), (move, outcome)
            assert not outcome.blockers
            outcomes.append(outcome)
            offered.add(signature(command))
    for move in found.blocked:
        assert move.reason
        for command in ways_to_try(move):
            assert isinstance(outcome_of(plan, state, under(command, terms, now)), Refusal), move
    for move in everything(plan.workflow, state):
        for command in ways_to_try(move):
            if signature(command) not in offered:
                assert isinstance(outcome_of(plan, state, under(command, terms, now)), Refusal), move
    return outcomes


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_listed_succeeds_and_nothing_else_does(data: st.DataObject) -> None:
    plan = Plan(data.draw(workflows()))
    terms, mode = data.draw(TERMS), data.draw(MODES)
    start = StartRun(NAVIGATION, 0, "hash", "bundled", mode, data.draw(DELTAS))
    here = outcome_of(plan, RunState(), start)
    assert isinstance(here, Decided)
    now = 0
    for _ in range(MOST_MOVES):
        now += data.draw(st.sampled_from([1, 2000]))  # a gate that does not block waits 1000
        if data.draw(st.integers(0, 4)) == 0 and not here.state.finished:
            child = outcome_of(plan, here.state, StartChild("child", "sess_child"))
            assert isinstance(child, Decided)
            check(plan, child.state, terms, now)
        outcomes = check(plan, here.state, terms, now)
        if not outcomes:
            found = moves(plan, here.state, terms, {}, now)
            assert isinstance(here.awaited, Done) or found.blocked
            return
        here = data.draw(st.sampled_from(outcomes))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_a_move_asks_for_is_needed(data: st.DataObject) -> None:
    plan, terms = Plan(data.draw(workflows())), Terms()
    start = StartRun(NAVIGATION, 0, "hash", "bundled", PRESETS["guided"], data.draw(DELTAS))
    here = outcome_of(plan, RunState(), start)
    assert isinstance(here, Decided)
    for _ in range(MOST_MOVES):
        found = moves(plan, here.state, terms, {}, 1)
        for move in found.required:
            bare = next(ways_to_try(Move(move.action, move.target, move.options)))
            if move.items is not None or move.variables:
                assert isinstance(outcome_of(plan, here.state, bare), Refusal)
            if move.needs and isinstance(bare, AcknowledgeStep):
                empty = AcknowledgeStep(NAVIGATION, 1, terms, step=move.target, reports=False)
                assert isinstance(outcome_of(plan, here.state, empty), Refusal)
        outcomes = check(plan, here.state, terms)
        if not outcomes:
            return
        here = outcomes[0]


def one_gate() -> Plan:
    gate = Gate("ship", "Ship", "Ship it?", (Option("yes", "Yes"), Option("no", "No")))
    activity = Activity("only", "Only", (gate,))
    return Plan(Workflow("test.gate", "Gate", "", "1.0.0", (activity,), initial="only"))


@pytest.mark.parametrize("policy", ["auto", "user"])
def test_where_the_user_has_decided_only_that_option_counts(policy: str) -> None:
    plan, terms = one_gate(), Terms(decisions=policy)  # type: ignore[arg-type]
    started = outcome_of(plan, RunState(), StartRun(NAVIGATION, 0, "h", "bundled", PRESETS["guided"]))
    assert isinstance(started, Decided)
    assert started.state.visit.open is not None
    decisions = {started.state.visit.open.shown: Decision("no", "cli")}
    found = moves(plan, started.state, terms, decisions, 1)
    assert [move.options for move in found.required] == [("no",)]
    told = ResolveCheckpoint(NAVIGATION, 1, terms, "agent", "ship", "no", decisions=decisions)
    assert isinstance(outcome_of(plan, started.state, told), Decided)
    contrary = ResolveCheckpoint(NAVIGATION, 1, terms, "agent", "ship", "yes", decisions=decisions)
    assert isinstance(outcome_of(plan, started.state, contrary), Refusal)


def test_only_the_users_own_answer_opens_a_gate_under_policy_user() -> None:
    plan, terms = one_gate(), Terms(decisions="user")
    started = outcome_of(plan, RunState(), StartRun(NAVIGATION, 0, "h", "bundled", PRESETS["guided"]))
    assert isinstance(started, Decided)
    found = moves(plan, started.state, terms, {}, 1)
    assert not found.required
    assert found.blocked[0].target == "ship"


def test_a_settled_run_of_another_surface_is_settled_here() -> None:
    plan = one_gate()
    state, pending = settled_for_navigation(plan, RunState(), 0)
    assert state.visit.open is not None
    assert pending == settled_for_navigation(plan, state, 1)[1]
