"""What the guard refuses: honest logs with one thing changed, each by the promise that it breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.core.definition.conditions import Compare, Scope
from interlock.core.definition.program import AskGate, Plan
from interlock.core.definition.workflow import (
    Action,
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
)
from interlock.core.engine.decide import decide
from interlock.core.engine.requirements import questions_at
from interlock.core.guard.audit import Audit, learned
from interlock.core.guard.inspection import inspect
from interlock.core.guard.rendered import gate_question, input_question
from interlock.core.run import events as e
from interlock.core.run.commands import (
    AcknowledgeStep,
    Decision,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Preferences
from interlock.core.run.surface_policy import EXECUTION, GATED, SESSION, SurfacePolicy
from support.story import Story, activities, given, one_activity, only

OPTIONS = (Option("yes", "Yes", effect=Effect({"approved": True})), Option("no", "No"))
SHIP = Gate("ship", "Ship", "Ship {{version}}?", OPTIONS)
BUILD, DEPLOY = Step("build", "Build"), Step("deploy", "Deploy")
VERDICT = {"kind": "wr.decision", "checkpointId": "ship", "optionId": "yes"}
SKIP = Effect(transition_to="ship")
SPEND = UserInput("needs_user_approval", "Spend it?", "spend")
RIGHT = Output(artifacts=(VERDICT,))
Change = Callable[[Sequence[e.Event]], Sequence[e.Event]]


def shipped() -> Story:
    """An honest run: build, ask, deploy, end."""
    story = given(one_activity(BUILD, SHIP, DEPLOY)).start(version="1.0")
    return story.ack().ack(VERDICT).ack()


def found(plan: Plan, events: Sequence[e.Event]) -> str | None:
    """Judge a log as one command, and name the promise that it breaks."""
    violation = inspect(plan, Audit(), events)
    return None if violation is None else violation.invariant


def without(kind: type) -> Change:
    return lambda events: [event for event in events if not isinstance(event, kind)]


def changed(kind: type, **fields: Any) -> Change:
    return lambda events: [replace(event, **fields) if isinstance(event, kind) else event for event in events]


def before_answer(*added: e.Event) -> Change:
    def insert(events: Sequence[e.Event]) -> Sequence[e.Event]:
        at = next(index for index, event in enumerate(events) if isinstance(event, e.GateResolved))
        return [*events[:at], *added, *events[at:]]

    return insert


def after_answer(*added: e.Event) -> Change:
    def insert(events: Sequence[e.Event]) -> Sequence[e.Event]:
        at = next(index for index, event in enumerate(events) if isinstance(event, e.GateResolved))
        return [*events[: at + 1], *added, *events[at + 1 :]]

    return insert


def test_an_honest_log_breaks_no_promise() -> None:
    story = shipped()
    assert story.state.status == "complete"
    assert found(story.plan, story.events) is None


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (without(e.GateResolved), "I1"),
        (without(e.GatePassed), "I1"),
        (without(e.QuestionShown), "I2"),
        (without(e.StepCompleted), "I1"),
        (without(e.ActivityLeft), "I1"),
        (lambda events: [*events[:-4], *events[-2:]], "I1"),
        (lambda events: [*events, events[-3]], "I7"),
        (lambda events: [events[0], *events], "I7"),
        (changed(e.GateResolved, key="another"), "I1"),
        (changed(e.GateResolved, question="Ship 2.0?"), "I2"),
        (changed(e.GateResolved, shown="sha256:0"), "I2"),
        (changed(e.QuestionShown, question="Ship nothing?"), "I2"),
        (changed(e.QuestionShown, roots=()), "I2"),
        (changed(e.GateResolved, option="perhaps"), "I2"),
        (changed(e.GateResolved, sets={"approved": True, "version": "2.0"}), "I4"),
        (changed(e.GateResolved, transition_to="__terminal__"), "I4"),
        (changed(e.GateResolved, channel="server", how="auto_advanced"), "I1"),
        (changed(e.GateResolved, how="dismissed"), "I1"),
        (changed(e.GateResolved, how="dismissed", option=None, sets={}), "I1"),
        (changed(e.GateResolved, how="assumed"), "I1"),
        (changed(e.GateResolved, how="auto_advanced"), "I1"),
        (changed(e.GateResolved, how="given"), "I1"),
        (changed(e.GateResolved, next="step:deploy"), "I1"),
        (changed(e.GatePassed, next="end"), "I1"),
        (changed(e.GatePassed, because="optional"), "I1"),
        (changed(e.GatePassed, because="condition"), "I1"),
        (changed(e.GatePassed, because="advisory"), "I1"),
        (changed(e.RunStarted, policy="user"), "I6"),
        (before_answer(e.ContextSet({"version": "2.0"})), "I4"),
        (after_answer(e.ContextSet({"approved": False})), "I4"),
        (after_answer(e.ContextSet({"approved": False}, by="build")), "I4"),
        (after_answer(e.ContextSet({"approved": False}, "initial")), "I4"),
        (after_answer(e.ContextSet({"approved": False}, "reask")), "I4"),
        (before_answer(e.QuestionDeclined("ship", "ship", "", 0, "elicitation")), "I3"),
        (before_answer(e.TermsApplied("user", "strict", "guided")), "I3"),
        (before_answer(e.TermsApplied("auto", "strict", "guided", "elicitation")), "I3"),
        (before_answer(e.TermsApplied("agent", "advisory", "full_auto_never_stop")), "I6"),
        (changed(e.RunCompleted, status="complete_with_gaps"), "I1"),
    ],
)
def test_a_changed_log_breaks_a_promise(change: Change, promise: str) -> None:
    story = shipped()
    assert found(story.plan, change(story.events)) == promise


def test_a_closed_gap_of_the_user_needs_the_user() -> None:
    story = given(one_activity(SHIP), mode="never-stop").start(version="1").ack()
    (gap,) = only(story.events, e.GapRecorded)
    assert gap.category == "user_only_dependency"
    plan, audit = story.plan, learned(Audit(), story.events)
    assert audit.status == "complete_with_gaps"
    closing = inspect(plan, audit, [e.GapResolved(1, "asked later", "agent")])
    assert closing is not None
    assert closing.invariant == "I7"
    assert inspect(plan, audit, [e.GapResolved(1, "asked later", "console")]) is None


@pytest.mark.parametrize(
    "item", [SHIP, Step("pay", "Pay", user_input=(UserInput("needs_user_approval", "Spend {{version}}?"),))]
)
def test_a_question_is_shown_whole(item: Item) -> None:
    story = given(one_activity(item)).start(version="1.0")
    story.ack(VERDICT, {**VERDICT, "checkpointId": "pay:needs_user_approval", "optionId": "approve"})
    assert found(story.plan, story.events) is None
    half = [replace(event, delta={}) if isinstance(event, e.ContextSet) else event for event in story.events]
    unset = Scope({}, {})
    asked = gate_question(story.plan, unset, AskGate("", item)) if isinstance(item, Gate) else None
    asked = asked or input_question(story.plan, unset, item, item.user_input[0], "")
    shown = {"shown": asked.digest, "question": asked.text, "roots": asked.roots}
    half = changed(e.GateResolved, **shown)(changed(e.QuestionShown, **shown)(half))
    violation = inspect(story.plan, Audit(), half)
    assert violation is not None
    assert "which nobody has set" in violation.detail


def test_what_never_stop_decides_needs_its_gap() -> None:
    story = given(one_activity(SHIP), mode="never-stop").start(version="1").ack()
    assert found(story.plan, without(e.GapRecorded)(story.events)) == "I1"


def test_what_an_agent_gives_for_a_step_in_never_stop_mode_needs_its_gap() -> None:
    approved = {"kind": "wr.decision", "checkpointId": "spend", "optionId": "approve"}
    spends = one_activity(replace(BUILD, user_input=(SPEND,)), DEPLOY)
    story = given(spends, mode="never-stop").start().ack(approved)
    assert only(story.events, e.GateResolved)[0].channel == "agent"
    assert found(story.plan, story.events) is None
    assert found(story.plan, without(e.GapRecorded)(story.events)) == "I1"


def test_a_form_in_never_stop_mode_needs_its_gap_where_only_the_user_decides() -> None:
    story, terms = given(one_activity(SHIP, DEPLOY), mode="never-stop"), Terms("user")
    never_stop, variables = PRESETS["never-stop"], {"version": "1"}
    story.when(StartRun(EXECUTION, story.now, "sha256:0", "test", never_stop, variables, terms))
    form = {only(story.events, e.QuestionShown)[0].shown: Decision("yes", "elicitation")}
    story.when(AcknowledgeStep(EXECUTION, story.now, terms, decisions=form))
    assert only(story.events, e.GateResolved)[0].channel == "elicitation"
    assert found(story.plan, story.events) is None
    assert found(story.plan, without(e.GapRecorded)(story.events)) == "I1"


def test_a_default_whose_time_ran_needs_no_gap_in_never_stop_mode_either() -> None:
    timed = Gate("go", "Go", "Go?", OPTIONS, default_option="no", auto_advance_ms=1000, blocking=False)
    story = given(one_activity(timed), SESSION, "never-stop").start()
    story.when(EnterActivity(SESSION, story.now, Terms(), "main"))
    story.when(OpenCheckpoint(SESSION, story.now, Terms(), "go"))
    story.now += 1000
    story.when(EnterActivity(SESSION, story.now, Terms(), "__terminal__"))
    assert story.state.status == "complete"
    assert found(story.plan, story.events) is None


def test_a_confirmation_that_asked_for_a_revision_was_not_put_to_the_user_again() -> None:
    advisory = Terms(enforcement="advisory", min_response_ms=0)
    pay = Step("pay", "Pay", confirm=True, notes_optional=True)
    story = given(one_activity(pay), GATED).start()
    story.when(EnterActivity(GATED, story.now, advisory, "main"))
    story.when(ResolveCheckpoint(GATED, story.now, advisory, "agent", "confirm-pay", "revise"))
    story.when(EnterActivity(GATED, story.now, advisory, "__terminal__"))
    assert [gap.detail for gap in only(story.events, e.GapRecorded)] == ["gate_passed"]
    assert found(story.plan, story.events) is None


def test_a_step_sets_what_a_question_owns_only_after_the_answer() -> None:
    story = given(one_activity(replace(BUILD, actions=(Action("set", "approved"),)), SHIP)).start(version="1")
    events = story.ack().ack(VERDICT).events
    by_step = e.ContextSet({"approved": False}, by="build")
    assert found(story.plan, after_answer(by_step)(events)) == "I4"


def test_what_is_asked_for_by_its_absence_comes_only_with_a_report() -> None:
    absent = replace(SHIP, message="Ship it?", condition=Compare("url", "notExists", None))
    story = given(one_activity(absent, DEPLOY)).start().ack(VERDICT, url="here")
    assert story.state.variables["url"] == "here"
    assert found(story.plan, story.events) is None
    assert found(story.plan, changed(e.GateResolved, channel="console")(story.events)) == "I4"


@pytest.mark.parametrize("by", ["", "build"])
@pytest.mark.parametrize("name", ["thing", "currentIndex", "currentIteration"])
def test_an_agent_writes_none_of_the_names_of_a_round(name: str, by: str) -> None:
    build = replace(BUILD, actions=(Action("set", name),))
    loop = Loop("each", "Each", "forEach", (build, DEPLOY), items="things", item_var="thing")
    story = given(one_activity(loop)).start(things=["a", "b"])
    events = story.ack(**{name: 9}).events
    assert story.state.variables[name] != 9, "rule 30"
    assert found(story.plan, events) is None
    assert found(story.plan, [*events, e.ContextSet({name: 9}, by=by)]) == "I4"


@pytest.mark.parametrize("policy", [EXECUTION, SESSION])
def test_what_a_waiting_question_shows_of_a_round_may_be_sent(policy: SurfacePolicy) -> None:
    gate = Gate("good", "Good", "Is {{thing.name}} good?", OPTIONS[1:])
    loop = Loop("each", "Each", "forEach", (gate, DEPLOY), items="things", item_var="thing")
    story = given(one_activity(loop), policy).start(things=[{}])
    if policy is SESSION:
        story.when(EnterActivity(SESSION, story.now, Terms(), "main"))
        story.when(OpenCheckpoint(SESSION, story.now, Terms(), "good", variables={"thing": {"name": "x"}}))
    else:
        story.ack(thing={"name": "x"})
    assert story.state.variables["thing"] == {"name": "x"}
    assert found(story.plan, story.events) is None


@pytest.mark.parametrize(
    "write",
    [
        e.ContextSet({"version": "2.0"}),
        e.ContextSet({"version": "2.0"}, by="build"),
        e.ContextSet({"version": "2.0"}, "reask"),
        e.ContextSet({"version": "2.0"}, "parent"),
        e.ChildReturned("child", "s1", "completed", {"version": "2.0"}),
    ],
)
def test_a_child_does_not_write_what_a_question_of_its_parent_owns(write: e.Event) -> None:
    story = given(one_activity(replace(BUILD, actions=(Action("set", "version"),)), SHIP))
    start = StartRun(EXECUTION, 0, "sha256:0", "test", PRESETS["guided"], passed={"version": "1.0"})
    owned = replace(start, inherited=("version",))
    events = story.when(owned).ack().events
    done = next(index for index, event in enumerate(events) if isinstance(event, e.StepCompleted)) + 1
    assert found(story.plan, events) is None
    assert found(story.plan, [*events[:done], write, *events[done:]]) == "I4"
    assert inspect(story.plan, Audit(), changed(e.RunStarted, inherited=())(events), owned) is not None


def test_another_answer_takes_back_what_the_earlier_one_has_set() -> None:
    """`no` sets nothing, so that what `yes` has set is as it was before: unset."""
    loop = Loop("again", "Again", "for", (BUILD, SHIP), count=2)
    story = given(one_activity(loop)).start(version="1").ack().ack(VERDICT)
    story.ack().ack({**VERDICT, "optionId": "no"})
    assert story.state.variables.get("approved") is None
    assert found(story.plan, story.events) is None
    assert found(story.plan, changed(e.GateResolved, restores={})(story.events)) == "I4"
    assert found(story.plan, changed(e.GateResolved, restores={"approved": True})(story.events)) == "I4"


def test_terms_are_loosened_only_by_the_user() -> None:
    plan = Plan(one_activity(BUILD))
    start = e.RunStarted("test.flow", "sha256:0", "test", Preferences(), 0)
    change = e.PreferencesChanged(PRESETS["never-stop"], "auto", "strict", "server")
    assert found(plan, [start, change]) == "I6"
    assert found(plan, [start, replace(change, channel="cli")]) is None


def test_a_step_is_not_completed_without_its_artifact_or_notes() -> None:
    contract = Contract("test.report", "report", example={"kind": "report"})
    story = given(one_activity(Step("build", "Build", contracts=(contract,)))).start()
    story.ack({"kind": "report"})
    assert found(story.plan, story.events) is None
    assert found(story.plan, changed(e.StepCompleted, brought=())(story.events)) == "I5"


def test_a_step_is_not_completed_without_what_only_the_user_gives() -> None:
    story = given(one_activity(Step("pay", "Pay", user_input=(SPEND,)))).start().ack(spend="approve")
    assert found(story.plan, story.events) is None
    assert found(story.plan, without(e.GateResolved)(story.events)) == "I1"
    assert found(story.plan, without(e.QuestionShown)(story.events)) == "I2"
    assert found(story.plan, changed(e.GateResolved, option="reject")(story.events)) == "I1"


@pytest.mark.parametrize("step", [Step("pay", "Pay", user_input=(SPEND,)), Step("pay", "Pay", confirm=True)])
def test_an_approval_counts_only_for_the_question_that_it_was_given_to(step: Step) -> None:
    story = given(one_activity(step)).start()
    (asked,) = questions_at(story.plan, story.state, story.awaited)
    approved = Decision(asked.options[0].id, "elicitation")
    pay = AcknowledgeStep(EXECUTION, 0, Terms(asks_by="elicitation"), decisions={asked.digest: approved})
    before, audit = len(story.events), story.audit
    events = story.when(pay).events[before:]
    assert [answer.channel for answer in only(events, e.GateResolved)] == ["elicitation"]
    for other in ({"sha256:another": approved}, {}, {asked.digest: replace(approved, option="no")}):
        violation = inspect(story.plan, audit, events, replace(pay, decisions=other))
        assert violation is not None
        assert violation.invariant == "I3"


def test_a_loop_is_not_left_while_a_round_is_due() -> None:
    loop = Loop("each", "Each", "forEach", (BUILD, SHIP), items="things")
    story = given(one_activity(loop)).start(things=[1, 2], version="1")
    for _ in "12":
        story.ack().ack(VERDICT)
    assert found(story.plan, story.events) is None
    at = next(index for index, event in enumerate(story.events) if isinstance(event, e.LoopIterated))
    end = next(index for index, event in enumerate(story.events) if isinstance(event, e.LoopLeft))
    assert found(story.plan, [*story.events[:at], *story.events[end:]]) == "I8"
    first_round_again = changed(e.LoopIterated, iteration=0)
    assert found(story.plan, first_round_again(story.events)) == "I8"


def test_a_loop_is_left_out_in_never_stop_mode_only_if_its_list_is_missing() -> None:
    loop = Loop("each", "Each", "forEach", (BUILD,), items="things")
    story = given(one_activity(loop), mode="never-stop").start().ack()
    assert only(story.events, e.LoopLeft)[0].because == "gap"
    assert found(story.plan, story.events) is None
    started, *rest = story.events
    assert found(story.plan, [started, e.ContextSet({"things": [1]}, "initial"), *rest]) == "I8"


def test_a_gate_whose_condition_turns_true_is_judged_when_its_activity_is_left() -> None:
    late = Gate("late", "Late", "Really?", OPTIONS[1:], condition=Compare("risky", "==", True))
    story = given(one_activity(late, BUILD)).start()
    passed = [*story.events, *only(story.ack().events, e.StepCompleted)]
    rest = story.events[len(passed) :]
    turned = [*passed, e.ContextSet({"risky": True}), *rest]
    assert found(story.plan, story.events) is None
    assert found(story.plan, turned) == "I1"


READY = Variable("ready", "boolean", typed=True)


@pytest.mark.parametrize("value", ["yes", "true", 1, [True]])
def test_a_variable_has_its_declared_type(value: Any) -> None:
    story = given(one_activity(BUILD, variables=(READY,))).start(ready=True)
    assert found(story.plan, changed(e.ContextSet, delta={"ready": value})(story.events)) == "I9"


SIZED = Variable("size", "string", typed=True, values=("small", "large"))


@pytest.mark.parametrize("value", ["huge", "Small", ""])
def test_a_variable_has_one_of_its_declared_values(value: Any) -> None:
    story = given(one_activity(BUILD, variables=(SIZED,))).start(size="small")
    assert found(story.plan, story.events) is None
    assert found(story.plan, changed(e.ContextSet, delta={"size": value})(story.events)) == "I9"


@pytest.mark.parametrize("name", ["ready.now", "artifacts", "checks"])
def test_a_variable_has_a_plain_name(name: str) -> None:
    story = given(one_activity(BUILD)).start(**{"ready": True, name: True})
    assert story.state.variables == {"ready": True}
    assert f"'{name}' is not taken" in story.said
    assert found(story.plan, changed(e.ContextSet, delta={name: True})(story.events)) == "I9"


SETS = Action("set", "ready", value="soon", has_value=True)
ITEMS = Loop("each", "Each", "forEach", (BUILD,), items="things", item_var="ready")


@pytest.mark.parametrize(
    ("item", "sent"),
    [
        (BUILD, {"ready": "soon"}),
        (Step("build", "Build", actions=(SETS,)), {}),
        (Gate("ship", "Ship", "Ship?", (Option("yes", "Yes", effect=Effect({"ready": "soon"})),)), {}),
        (ITEMS, {"things": ["soon"]}),
    ],
    ids=["agent", "action", "effect", "loop"],
)
def test_the_guard_alone_refuses_a_value_of_another_type(
    item: Item, sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = given(one_activity(Step("first", "First"), item, variables=(READY,))).start().ack()
    monkeypatch.setattr("interlock.core.variables.typed_values.converted", lambda kind, value: value)
    refusal = decide(
        story.plan, story.state, AcknowledgeStep(EXECUTION, 0, Terms(), RIGHT, sent), story.audit
    )
    assert isinstance(refusal, Refusal)
    assert refusal.about["invariant"] == "I9"


@pytest.mark.parametrize("target", ["ship", "__terminal__"])
def test_no_jump_leaves_out_a_required_gate(target: str) -> None:
    plan, review, ship = (
        Activity("plan", "Plan", (BUILD,)),
        Activity("review", "Review", (SHIP,)),
        Activity("ship", "Ship", (DEPLOY,)),
    )
    flow = activities(
        replace(plan, transitions=(Transition("review"),)),
        replace(review, transitions=(Transition("ship"),)),
        ship,
    )
    story = given(flow, SESSION).start(version="1")
    story.when(EnterActivity(SESSION, 0, Terms(), "plan"))
    done = e.StepCompleted("build", "build", "end", claimed=True)
    jump = e.ActivityLeft("plan", target, "jump")
    assert found(story.plan, [*story.events, done, jump]) == "I1"
    assert found(story.plan, [*story.events, done, replace(jump, to="review", via="transition")]) is None


def test_an_exit_that_an_option_leads_to_is_open_only_to_who_chose_it() -> None:
    away = Gate("away", "Away", "Skip the review?", (Option("on", "On"), Option("skip", "Skip", effect=SKIP)))
    flow = activities(
        Activity("plan", "Plan", (away, BUILD), transitions=(Transition("review"),)),
        Activity("review", "Review", (SHIP,), transitions=(Transition("ship"),)),
        Activity("ship", "Ship", (DEPLOY,)),
    )
    answer = {"kind": "wr.decision", "checkpointId": "away"}
    skipped = given(flow).start(version="1").ack({**answer, "optionId": "skip"})
    assert skipped.pending == "deploy"
    went_on = given(flow).start(version="1").ack({**answer, "optionId": "on"})
    done = e.StepCompleted("build", "build", "end")
    assert found(went_on.plan, [*went_on.events, done, e.ActivityLeft("plan", "ship", "jump")]) == "I1"


def test_an_abandoned_run_takes_nothing() -> None:
    story = given(one_activity(BUILD)).start()
    gone = e.RunAbandoned("cli", 1)
    completed = e.StepCompleted("build", "build", "end")
    assert found(story.plan, [*story.events, gone]) is None
    assert found(story.plan, [*story.events, gone, completed]) == "I7"
