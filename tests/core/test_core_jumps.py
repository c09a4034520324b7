"""Jumps (rule 22): an open exit, or back; another target only if no path to it passes what is unanswered."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.definition.conditions import AllOf, Compare
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import (
    Activity,
    Contract,
    Effect,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Transition,
    UserInput,
    Variable,
    Workflow,
)
from interlock.core.engine import settle
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolve
from interlock.core.engine.paths import transitions
from interlock.core.engine.paths.exits import exits
from interlock.core.run import events as e
from interlock.core.run.commands import EnterActivity, OpenCheckpoint, ResolveCheckpoint, Terms
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.state import RunState, Visit
from interlock.core.run.surface_policy import GATED, SESSION, SurfacePolicy
from support.story import Story, activities, given, only

STRICT = Terms(min_response_ms=0)
ADVISORY = Terms(min_response_ms=0, enforcement="advisory")
EITHER = pytest.mark.parametrize("policy", [SESSION, GATED], ids=lambda policy: policy.name)


def activity(name: str, *items: Item, to: Any = (), **fields: Any) -> Activity:
    """Return an activity; `to` is its default target, or its transitions."""
    transitions = (Transition(to, default=True),) if isinstance(to, str) else tuple(to)
    return Activity(
        name,
        name,
        items or (Step(f"do-{name}", name, notes_optional=True),),
        transitions=transitions,
        **fields,
    )


def gate(name: str, /, *, condition: Any = None, required: bool = True, **effects: Effect) -> Gate:
    """Return a gate with an option of each name, `yes` if there are none."""
    options = effects or {"yes": Effect()}
    listed = tuple(Option(option, option, effect=effect) for option, effect in options.items())
    return Gate(name, name, f"{name}?", listed, condition=condition, required=required)


def each(*body: Item, name: str = "each") -> Loop:
    return Loop(name, name, "forEach", body, items="parts")


def begun(workflow: Workflow, policy: SurfacePolicy, **variables: Any) -> Story:
    assert workflow.initial is not None
    return go(given(workflow, policy).start(**variables), workflow.initial)


def go(story: Story, target: str, terms: Terms = STRICT) -> Story:
    return story.when(EnterActivity(story.policy, story.now, terms, target))


def answered(story: Story, name: str, option: str) -> Story:
    """Answer a gate, which the worker has yielded if the surface has that."""
    attempt(story, name, option)
    assert isinstance(story.outcome, Decided), story.outcome
    return story


def attempt(story: Story, name: str, option: str) -> None:
    """Try to answer a gate, whether or not the run has come to it."""
    if story.policy is SESSION:
        story.when(OpenCheckpoint(SESSION, story.now, STRICT, name))
    story.when(ResolveCheckpoint(story.policy, story.now, STRICT, "cli", name, option))


def is_at(story: Story, name: str) -> bool:
    return isinstance(story.outcome, Decided) and story.state.activity == name


def is_held(story: Story, name: str) -> bool:
    """Say whether the last jump was refused because of a gate or a step, and the guard alone refuses it."""
    refusal = story.outcome
    return (
        isinstance(refusal, Refusal)
        and refusal.code is Code.GATE_UNANSWERED
        and refusal.about.get("left_out") == name
        and is_held_by_guard(story, str(refusal.about["target"]))
    )


def is_held_by_guard(story: Story, target: str, **wrong: Any) -> bool:
    """Jump with an engine that finds nothing left out, or in which functions return something wrong."""
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(transitions, "left_out", lambda plan, state, target: None)
        for name, value in wrong.items():
            planted.setattr(settle, name, lambda *_, value=value: value)
        jump = EnterActivity(story.policy, story.now, STRICT, target)
        outcome = decide(story.plan, story.state, jump, story.audit)
    return isinstance(outcome, Refusal) and outcome.about.get("invariant") == "I1"


@EITHER
@pytest.mark.parametrize("terms", [STRICT, ADVISORY], ids=["strict", "advisory"])
def test_entering_the_current_activity_again_is_a_jump_unless_it_leads_to_itself(
    policy: SurfacePolicy, terms: Terms
) -> None:
    workflow = activities(activity("first", to="second"), activity("second", to=[Transition("second")]))
    story = go(begun(workflow, policy), "first", terms)
    assert is_at(story, "first")
    assert story.said == (
        "Warning: Activity 'first' is not a direct transition from 'first'. Valid transitions: [second]. "
        "It was entered again: all of it is due anew."
    )
    assert len(only(story.events, e.DivergenceRecorded)) == 1
    story = go(go(story, "second"), "second")
    assert is_at(story, "second")
    assert story.said == ""
    assert len(only(story.events, e.DivergenceRecorded)) == 1


@EITHER
def test_entering_the_current_activity_again_passes_none_of_its_gates(policy: SurfacePolicy) -> None:
    workflow = activities(activity("first", gate("ask"), to="second"), activity("second"))
    story = go(begun(workflow, policy), "first")
    assert isinstance(story.outcome, Refusal)
    assert is_at(go(answered(story, "ask", "yes"), "first"), "first")
    assert isinstance(go(story, "second").outcome, Refusal)


CONTRACT = Contract("test.report", "test.report")
INPUT = UserInput("needs_user_choice", "Which one?", key="which")
REQUIREMENTS: dict[str, tuple[Item, str]] = {
    "a gate": (gate("good"), "good"),
    "a gate in a loop": (each(Step("part", "Part"), gate("good")), "good"),
    "a gate in a nested loop": (each(each(gate("good"), name="inner"), name="outer"), "good"),
    "a confirmation": (Step("check", "Check", confirm=True), "confirm-check"),
    "a confirmation in a loop": (each(Step("check", "Check", confirm=True)), "confirm-check"),
    "an input": (Step("check", "Check", user_input=(INPUT,)), "check"),
    "a contract": (Step("check", "Check", contracts=(CONTRACT,)), "check"),
    "a contract in a loop": (each(Step("check", "Check", contracts=(CONTRACT,))), "check"),
    "notes": (Step("check", "Check", hands_in=("notes",)), "check"),
    "a gate whose condition nobody has decided": (
        gate("good", condition=Compare("risky", "==", True)),
        "good",
    ),
}
OVER = pytest.mark.parametrize(("item", "held_by"), REQUIREMENTS.values(), ids=REQUIREMENTS)


@EITHER
@OVER
def test_what_is_required_on_the_way_holds_a_jump(policy: SurfacePolicy, item: Item, held_by: str) -> None:
    flow = activities(activity("plan", to="check"), activity("check", item, to="ship"), activity("ship"))
    story = go(begun(flow, policy), "ship")
    assert is_held(story, held_by)
    assert is_held(go(story, "__terminal__"), held_by)
    assert is_held(go(given(flow, policy).start(), "ship"), held_by)


@EITHER
@OVER
def test_in_never_stop_mode_it_is_a_gap(policy: SurfacePolicy, item: Item, held_by: str) -> None:
    flow = activities(activity("plan", to="check"), activity("check", item, to="ship"), activity("ship"))
    story = go(given(flow, policy, "never-stop").start(), "plan")
    go(story, "ship")
    left_out = "ship" if "confirm" in held_by else held_by  # a confirmation is assumed, its activity left out
    assert only(story.events, e.GapRecorded)[0].key == left_out


@EITHER
def test_one_declared_path_with_a_gate_is_enough(policy: SurfacePolicy) -> None:
    both = (Transition("check", default=True), Transition("look", Compare("quick", "==", True)))
    flow = activities(
        activity("plan", to=both),
        activity("look", to="ship"),
        activity("check", gate("good"), to="ship"),
        activity("ship"),
    )
    assert is_held(go(begun(flow, policy), "ship"), "good")
    assert is_held(go(begun(flow, policy, quick=True), "ship"), "good")


@EITHER
@pytest.mark.parametrize("free", ["plain", "optional", "false", "skipped"])
def test_a_jump_over_nothing_that_requires_an_answer_is_a_warning_and_a_gap(
    policy: SurfacePolicy, free: str
) -> None:
    check = {
        "plain": activity("check", to="ship"),
        "optional": activity(
            "check",
            gate("good", required=False),
            Step("s", "S", required=False, contracts=(CONTRACT,)),
            to="ship",
        ),
        "false": activity("check", gate("good", condition=Compare("risky", "==", True)), to="ship"),
        "skipped": activity("check", gate("good"), to="ship", required=False),
    }[free]
    flow = activities(activity("plan", to="check"), check, activity("ship"))
    story = go(begun(flow, policy, risky=False), "ship")
    assert is_at(story, "ship")
    assert only(story.events, e.DivergenceRecorded)
    assert bool(only(story.events, e.GapRecorded)) is check.required


@EITHER
def test_what_an_earlier_activity_was_asked_is_answered(policy: SurfacePolicy) -> None:
    flow = activities(
        activity("plan", gate("sure"), to=(Transition("look", default=True), Transition("ship"))),
        activity("look"),
        activity("ship"),
    )
    story = answered(begun(flow, policy), "sure", "yes")
    assert is_at(go(story, "look"), "look")
    assert is_at(go(story, "ship"), "ship")  # nothing leads there from here: the path from the first counts


@EITHER
def test_what_an_answer_has_waived_is_not_answered(policy: SurfacePolicy) -> None:
    away = gate("way", away=Effect(transition_to="look"), on=Effect())
    flow = activities(
        activity("plan", away, gate("sure"), to=(Transition("ship", default=True),)),
        activity("look"),
        activity("ship"),
    )
    story = answered(begun(flow, policy), "way", "away")
    assert is_held_by_guard(story, "look", left_unanswered=())
    assert is_at(go(story, "look"), "look")
    assert is_held(go(story, "ship"), "sure")


@EITHER
def test_an_option_that_nobody_chose_leads_nowhere(policy: SurfacePolicy) -> None:
    way = gate("way", full=Effect(), short=Effect(transition_to="express"))
    flow = activities(
        activity("plan", way, to="check"),
        activity("check", gate("good"), to="ship"),
        activity("express", to="ship"),
        activity("ship"),
    )
    story = answered(begun(flow, policy), "way", "full")
    assert is_held(go(story, "express"), "way")
    chosen = answered(begun(flow, policy), "way", "short")
    assert is_at(go(chosen, "express"), "express")
    assert is_at(go(chosen, "ship"), "ship")


@EITHER
@pytest.mark.parametrize("no", [{"approved": False}, {}], ids=["set", "unset"])
@pytest.mark.parametrize("by", ["its condition", "the default"])
def test_an_exit_that_an_answer_has_closed_is_not_taken(policy: SurfacePolicy, no: Any, by: str) -> None:
    yes = Transition("ship", Compare("approved", "==", True))
    exits_ = (yes, Transition("fix", default=True))
    if by == "the default":
        no = {"approved": False}
        exits_ = (Transition("fix", Compare("approved", "==", False)), Transition("ship", default=True))
    approve = gate("approve", yes=Effect({"approved": True}), no=Effect(no))
    flow = activities(activity("plan", approve, to=exits_), activity("fix"), activity("ship"))
    story = answered(begun(flow, policy), "approve", "no")
    assert is_held(go(story, "ship"), "approve")
    assert is_at(go(story, "fix"), "fix")
    assert is_held(go(story, "ship"), "approve")


@EITHER
def test_the_way_back_before_the_beginning_leads_nowhere_again(policy: SurfacePolicy) -> None:
    flow = activities(
        activity("plan", to="build"),
        activity("build", to=(Transition("review", default=True),)),
        activity("review", gate("good"), to="ship"),
        activity("ship"),
    )
    story = given(flow, policy).start()
    go(story, "build")  # begins behind the first, which requires nothing
    go(story, "review")
    answered(story, "good", "yes")
    assert is_at(go(story, "ship"), "ship")
    assert is_held_by_guard(story, "plan", gone_back_before="")
    assert is_at(go(story, "plan"), "plan")
    assert story.state.route.path == ()
    assert is_held(go(story, "ship"), "good")


@EITHER
def test_an_activity_that_nothing_leads_to_is_an_entrance(policy: SurfacePolicy) -> None:
    flow = activities(
        activity("plan", gate("sure"), to="ship"), activity("repair", to="ship"), activity("ship")
    )
    story = go(given(flow, policy).start(), "repair")
    assert is_at(story, "repair")
    assert only(story.events, e.DivergenceRecorded)
    assert is_at(go(story, "ship"), "ship")


@EITHER
def test_under_advisory_enforcement_every_jump_and_every_gate_passed_is_a_gap(policy: SurfacePolicy) -> None:
    flow = activities(
        activity("plan", gate("sure"), to="look"),
        activity("look", to="check"),
        activity("check", gate("good"), to="ship"),
        activity("ship"),
    )
    story = begun(flow, policy)
    go(story, "look", ADVISORY)
    (passed,) = only(story.events, e.GapRecorded)
    assert (passed.severity, passed.key) == ("critical", "sure")
    go(story, "ship", ADVISORY)
    assert [gap.key for gap in only(story.events, e.GapRecorded)] == ["sure", "good"]
    go(story, "check", ADVISORY)
    assert only(story.events, e.GapRecorded)[-1].key == "sure"
    go(story, "__terminal__", ADVISORY)
    go(story, "__terminal__", ADVISORY)
    assert story.state.status == "complete_with_gaps"


@EITHER
def test_under_advisory_enforcement_a_declined_question_holds(policy: SurfacePolicy) -> None:
    flow = activities(activity("plan", gate("sure"), to="ship"), activity("ship"))
    story = begun(flow, policy)
    story.state = evolve(story.state, e.QuestionDeclined("sure", "sure", "sha256:0", 1, "elicitation"))
    refused = go(story, "ship", ADVISORY).outcome
    assert isinstance(refused, Refusal)


@pytest.mark.parametrize("known", ["unset", "default"])
@pytest.mark.parametrize("decided", [True, False])
def test_an_exit_over_what_nobody_set_is_open_unless_a_gate_decides_it(known: str, decided: bool) -> None:
    ask = gate("ask", yes=Effect({"quick": True}), no=Effect())
    first = activity(
        "plan", *((ask,) if decided else ()), to=(Transition("ship", Compare("quick", "==", True)),)
    )
    declared = (Variable("quick", "boolean", default=False, has_default=True),) if known == "default" else ()
    flow = activities(first, activity("ship"), variables=declared)
    (exit_,) = exits(Plan(flow), RunState(Visit("plan")))
    assert exit_.open is not decided
    optional = activity(
        "plan", gate("ask", required=False, yes=Effect({"quick": True})), to=first.transitions
    )
    (exit_,) = exits(Plan(activities(optional, activity("ship"))), RunState(Visit("plan")))
    assert exit_.open


def test_an_exit_that_values_of_the_run_close_is_no_claim() -> None:
    both = AllOf((Compare("x", "==", True), Compare("y", "==", True)))
    flow = activities(activity("plan", to=(Transition("ship", both),)), activity("ship"))
    listed = exits(Plan(flow), RunState(Visit("plan"), variables={"x": False}))
    assert [exit_.to for exit_ in listed if exit_.open] != ["ship"]


@EITHER
def test_an_options_exit_waives_only_what_stands_after_its_gate(policy: SurfacePolicy) -> None:
    away = gate("way", away=Effect(transition_to="look"))
    report = Step("report", "Report", contracts=(CONTRACT,))
    flow = activities(
        activity("plan", gate("sure"), away, gate("after"), to="ship"),
        activity("look", report, away, to="ship"),
        activity("ship"),
    )
    story = begun(flow, policy)
    attempt(story, "way", "away")
    assert isinstance(go(story, "look").outcome, Refusal)
    story = answered(begun(flow, policy), "sure", "yes")
    attempt(story, "way", "away")
    assert is_at(go(story, "look"), "look")
    attempt(story, "way", "away")
    assert isinstance(go(story, "look").outcome, Refusal)
    assert story.state.visit.number == 2


@EITHER
def test_a_gate_that_the_answer_brings_back_is_asked_before_its_exit(policy: SurfacePolicy) -> None:
    risk = gate("risk", condition=Compare("risky", "==", True))
    way = gate("way", away=Effect({"risky": True}, transition_to="look"))
    flow = activities(activity("plan", risk, each(Step("part", "Part"), way)), activity("look"))
    story = answered(begun(flow, policy, parts=["one"]), "way", "away")
    assert isinstance(go(story, "look").outcome, Refusal)
    answered(story, "risk", "yes")
    assert is_at(go(story, "look"), "look")


def test_an_exit_that_never_stop_decides_on_the_way_waives_nothing_of_another() -> None:
    """The walk to another target passes what stands after the gate whose default leads elsewhere."""
    leave = Gate("leave", "Leave", "Leave?", (Option("look", "Look", effect=Effect(transition_to="look")),))
    flow = activities(Activity("plan", "Plan", (leave, Step("build", "Build"))), activity("look"))
    story = given(flow, SESSION, "never-stop").start()
    go(story, "plan")
    go(story, "__terminal__")
    assert [event.step for event in only(story.events, e.StepCompleted)] == ["build"]
