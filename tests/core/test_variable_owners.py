"""Who may write a variable: from its showing on, a question owns what it shows, reads or sets (rule 26)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import (
    Action,
    Activity,
    ActivityMode,
    Effect,
    Gate,
    Loop,
    Option,
    Step,
    Transition,
    UserInput,
    Variable,
    Workflow,
)
from interlock.core.engine.decide import decide
from interlock.core.run.commands import (
    AcknowledgeStep,
    AdvanceLoop,
    Claim,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    ReturnChild,
    StartChild,
    StartRun,
    Terms,
)
from interlock.core.run.events import ContextSet, GapRecorded, GateResolved, QuestionShown
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, NeedStep, Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.surface_policy import EXECUTION, GATED, NAVIGATION, SESSION, SurfacePolicy
from support.story import Story, activities, given, one_activity, only

TERMS = Terms(min_response_ms=0)
DEPLOY = Gate(
    "deploy",
    "Deploy",
    "Deploy to {{at.host}}?",
    (
        Option("yes", "Yes", effect=Effect({"approved": True})),
        Option("no", "No", effect=Effect({"approved": False})),
    ),
)
STAGING = {"host": "staging"}
PRODUCTION = {"host": "PRODUCTION"}
EVERY = pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION, SESSION, GATED], ids=lambda it: it.name)


def step(name: str, *sets: str, **fields: Any) -> Step:
    return Step(name, name.title(), actions=tuple(Action("set", target) for target in sets), **fields)


def answer(story: Story, gate: str, option: str, **variables: Any) -> Story:
    """Open the question where the surface asks for that, and answer it."""
    if story.policy is SESSION and story.state.active is None:
        story.when(OpenCheckpoint(SESSION, story.now, TERMS, gate, "agent"))
    return story.when(
        ResolveCheckpoint(story.policy, story.now, TERMS, "agent", gate, option, variables=variables)
    )


def go_on(story: Story, target: str = "__terminal__", *done: str, **variables: Any) -> Story:
    """Complete what is pending, or claim the rest of the activity."""
    if story.policy in (SESSION, GATED):
        claims = tuple(Claim(name, Output("done")) for name in done)
        return story.when(EnterActivity(story.policy, story.now, TERMS, target, claims, variables=variables))
    named = done[0] if done and story.policy is NAVIGATION else None
    return story.ack(notes="done", step=named, **variables)


def put(story: Story, gate: str) -> None:
    """Have the question put that the run has come to, where reaching it does not."""
    if story.policy in (SESSION, GATED):
        story.when(OpenCheckpoint(story.policy, story.now, TERMS, gate, "agent" * (story.policy is SESSION)))


def reask(story: Story, **values: Any) -> Story:
    if story.policy in (SESSION, GATED):
        return story.when(EnterActivity(story.policy, story.now, TERMS, "__terminal__", reask=values))
    return story.when(AcknowledgeStep(story.policy, story.now, TERMS, Output("done"), reask=values))


def impossible(story: Story, **values: Any) -> str:
    """Ask again for what cannot be asked; nothing is changed. Return why."""
    before = story.state
    reask(story, **values)
    assert isinstance(story.outcome, Refusal), story.outcome
    assert story.outcome.code is Code.REASK_IMPOSSIBLE
    assert story.state == before
    return str(story.outcome.about["reason"])


def begin(workflow: Workflow, policy: SurfacePolicy, mode: Mode = "guided", **variables: Any) -> Story:
    story = given(workflow, policy, mode).start(**variables)
    if policy in (SESSION, GATED):
        story.when(EnterActivity(policy, story.now, TERMS, workflow.initial or "main"))
    return story


class TestDottedNames:
    @EVERY
    def test_a_key_with_a_dot_is_no_way_to_a_member(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        answer(story, "deploy", "no")
        go_on(story, "__terminal__", "send", **{"at.host": "PRODUCTION", "approved.by": "me"})
        assert story.state.variables == {"at": STAGING, "approved": False}
        assert "'at.host' is not taken" in story.said
        assert 'Send {"at":{"host":"<value>"}}' in story.said

    def test_at_the_start_neither(self) -> None:
        story = given(one_activity(step("send"))).start(**{"at.host": "x", "at": STAGING})
        assert story.state.variables == {"at": STAGING}
        assert "the name of a variable has no dot" in story.said


TYPED = (
    Variable("flag", "boolean", typed=True),
    Variable("size", "number", typed=True),
    Variable("word", "string", typed=True),
    Variable("parts", "array", typed=True),
    Variable("at", "object", typed=True),
    Variable("loose"),
)


class TestTypes:
    @pytest.mark.parametrize(
        ("name", "sent", "stored"),
        [
            ("flag", "true", True),
            ("flag", "False", False),
            ("size", "12", 12),
            ("size", "-1.5", -1.5),
            ("word", 5, "5"),
            ("word", True, "true"),
            ("parts", '["a"]', ["a"]),
            ("at", '{"host":"x"}', {"host": "x"}),
            ("free", "true", "true"),
            ("loose", ["a"], ["a"]),
        ],
    )
    def test_what_can_be_converted_is(self, name: str, sent: Any, stored: Any) -> None:
        story = given(one_activity(step("send"), step("last"), variables=TYPED)).start().ack(**{name: sent})
        assert story.state.variables == {name: stored}

    @pytest.mark.parametrize(
        ("name", "sent"),
        [
            ("flag", "yes"),
            ("flag", 1),
            ("size", "many"),
            ("size", True),
            ("size", "9" * 5000),
            ("word", ["a"]),
            ("parts", "a"),
            ("parts", '{"a": 1}'),
            ("at", "[1]"),
        ],
    )
    def test_what_cannot_is_not_taken(self, name: str, sent: Any) -> None:
        workflow = one_activity(step("send"), step("last"), variables=TYPED)
        story = given(workflow).start().ack(**{name: sent})
        assert story.state.variables == {}
        kind = next(variable.type for variable in TYPED if variable.name == name)
        assert f"'{name}' is not taken: it is declared as {kind}. Send " in story.said
        assert given(workflow).start(**{name: sent}).state.variables == {}

    def test_null_says_that_the_value_is_not_known(self) -> None:
        story = given(one_activity(step("send"), step("last"), variables=TYPED)).start(flag=True)
        assert story.ack(flag=None).state.variables == {"flag": None}
        assert not story.plan.scope(story.state.variables).is_set("flag")

    def test_the_text_true_does_not_pass_a_conditional_gate(self) -> None:
        gate = Gate("g", "G", "Go?", (Option("y", "Y"),), Compare("flag", "==", True))
        story = given(one_activity(step("send"), gate, variables=TYPED)).start().ack(flag="true")
        assert story.pending == "g"

    def test_effects_have_the_declared_type(self) -> None:
        effect = Effect({"size": "{{typed}}", "flag": "true"})
        gate = Gate("g", "G", "Go?", (Option("y", "Y", effect=effect),))
        story = given(one_activity(gate, step("last"), variables=TYPED)).start(typed="many")
        answer(story, "g", "y")
        assert story.state.variables == {"typed": "many", "flag": True}
        assert "'size' is not taken: the effect of checkpoint 'g'" in story.said

    def test_items_of_a_loop_too(self) -> None:
        loop = Loop("each", "Each", "forEach", (step("do"),), items="all.parts", item_var="at")
        story = given(one_activity(loop, variables=TYPED)).start(all={"parts": [STAGING, "x"]})
        assert story.state.variables["at"] == STAGING
        assert "at" not in story.ack().state.variables
        assert "'at' is not taken: the item of loop 'each'" in story.said

    def test_a_list_with_an_item_that_its_loop_cannot_take_is_not_taken(self) -> None:
        loop = Loop("each", "Each", "forEach", (step("do"),), items="parts", item_var="at")
        story = given(one_activity(step("send"), loop, variables=TYPED)).start()
        story.ack(parts=[STAGING, "x"])
        assert "parts" not in story.state.variables
        assert "'parts' is not taken: each of its items is declared as object." in story.said

    def test_what_a_child_returns_too(self) -> None:
        story = given(one_activity(step("send"), variables=TYPED)).start()
        story.when(StartChild("child", "s1"))
        story.when(ReturnChild("child", "s1", True, {"flag": "yes", "size": "3"}))
        assert story.state.variables == {"size": 3}


SIZED = (
    Variable("size", "string", typed=True, values=("small", "large")),
    Variable("level", "number", typed=True, values=(1, 2)),
)


class TestValues:
    @pytest.mark.parametrize(
        ("name", "sent", "stored"), [("size", "small", "small"), ("level", "2", 2), ("size", None, None)]
    )
    def test_a_value_of_a_closed_list_is_taken(self, name: str, sent: Any, stored: Any) -> None:
        story = given(one_activity(step("send"), step("last"), variables=SIZED)).start().ack(**{name: sent})
        assert story.state.variables == {name: stored}

    @pytest.mark.parametrize(
        ("name", "sent"), [("size", "huge"), ("size", "Small"), ("level", 3), ("level", True), ("level", 1.5)]
    )
    def test_no_other_value_is(self, name: str, sent: Any) -> None:
        workflow = one_activity(step("send"), step("last"), variables=SIZED)
        story = given(workflow).start().ack(**{name: sent})
        assert story.state.variables == {}
        assert given(workflow).start(**{name: sent}).state.variables == {}

    def test_the_notice_names_the_legal_values(self) -> None:
        story = given(one_activity(step("send"), step("last"), variables=SIZED)).start().ack(size="huge")
        assert """'size' is not taken: it is one of "small" | "large". Send one of these.""" in story.said

    def test_neither_by_an_effect_a_loop_or_a_child(self) -> None:
        effect = Effect({"size": "{{typed}}"})
        gate = Gate("g", "G", "Go?", (Option("y", "Y", effect=effect),))
        story = given(one_activity(gate, step("last"), variables=SIZED)).start(typed="huge")
        answer(story, "g", "y")
        assert story.state.variables == {"typed": "huge"}
        assert "'size' is not taken: the effect of checkpoint 'g'" in story.said
        loop = Loop("each", "Each", "forEach", (step("do"),), items="all.parts", item_var="size")
        story = given(one_activity(loop, variables=SIZED)).start(all={"parts": ["small", "huge"]})
        assert story.state.variables["size"] == "small"
        assert "size" not in story.ack().state.variables
        story = given(one_activity(step("send"), variables=SIZED)).start()
        story.when(StartChild("child", "s1"))
        story.when(ReturnChild("child", "s1", True, {"size": "huge", "level": "1"}))
        assert story.state.variables == {"level": 1}


class TestShown:
    @EVERY
    def test_what_was_shown_stays(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        put(story, "deploy")
        answer(story, "deploy", "yes", at=PRODUCTION)
        assert "'at' stays" in story.said
        go_on(story, "__terminal__", "send", at=PRODUCTION, approved=False)
        assert story.state.variables == {"at": STAGING, "approved": True}

    @EVERY
    def test_a_question_is_not_changed_while_it_waits(self, policy: SurfacePolicy) -> None:
        """A8: a refused call keeps what it brings, but for what the question shows or reads."""
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        put(story, "deploy")
        story.when(EnterActivity(policy, story.now, TERMS, "main", variables={"at": PRODUCTION, "x": 1}))
        assert isinstance(story.outcome, Refusal)
        assert story.state.variables == {"at": STAGING, "x": 1}

    @pytest.mark.parametrize("policy", [SESSION, GATED], ids=lambda it: it.name)
    def test_a_question_is_not_talked_out_of_its_condition(self, policy: SurfacePolicy) -> None:
        """A9: once a refusal has put the question, what its condition reads is not the agent's to set."""
        gate = Gate("g", "G", "Go?", (Option("y", "Y"),), Compare("risky", "==", True))
        story = begin(one_activity(gate, step("send")), policy, risky=True)
        story.when(EnterActivity(policy, story.now, TERMS, "__terminal__"))
        for _ in range(2):
            story.when(EnterActivity(policy, story.now, TERMS, "__terminal__", variables={"risky": False}))
            assert isinstance(story.outcome, Refusal)
            assert story.outcome.code is Code.GATE_UNANSWERED
        assert story.state.variables == {"risky": True}

    def test_a_mode_that_supplies_what_is_shown_is_shown_too(self) -> None:
        mode = ActivityMode("fast", "Fast", "quick", defaults={"at": PRODUCTION})
        at = Variable("at", "object", default=STAGING, has_default=True)
        workflow = one_activity(DEPLOY, step("send"), modes=(mode,), form="activities", variables=(at,))
        story = given(workflow).start(quick=False)
        answer(story, "deploy", "yes", quick=True)
        assert story.state.variables["quick"] is False

    def test_an_inner_loop_that_writes_the_name_releases_nothing(self) -> None:
        """A10: the outer question showed `currentItem`, which the inner loop writes and gives back."""
        gate = Gate("g", "G", "Deploy {{currentItem}}?", (Option("y", "Y"),))
        inner = Loop("inner", "Inner", "forEach", (step("look"),), items="two")
        outer = Loop("outer", "Outer", "forEach", (gate, inner, step("send")), items="one")
        story = given(one_activity(outer)).start(one=["staging"], two=["x"])
        answer(story, "g", "y")
        story.ack(currentItem="PRODUCTION")
        assert story.pending == "outer@0::send"
        assert story.state.variables["currentItem"] == "staging"
        assert story.ack(currentItem="PRODUCTION").state.variables["currentItem"] == "staging"

    def test_another_question_in_a_loop_releases_only_its_own(self) -> None:
        inside = Gate("inside", "Inside", "Still {{at.host}}?", (Option("y", "Y"),))
        loop = Loop("each", "Each", "for", (inside, step("look")), count=2)
        story = given(one_activity(DEPLOY, loop)).start(at=STAGING)
        answer(story, "deploy", "yes")
        answer(story, "inside", "y")
        story.ack(at=PRODUCTION)
        assert story.pending == "each@1::inside"
        assert story.state.variables["at"] == STAGING

    @pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION], ids=lambda it: it.name)
    def test_a_list_that_was_shown_is_not_replaced_because_a_loop_needs_it(
        self, policy: SurfacePolicy
    ) -> None:
        """A11."""
        gate = Gate("g", "G", "Deploy to {{envs}}?", (Option("y", "Y"),))
        loop = Loop("each", "Each", "forEach", (step("send"),), items="envs")
        story = begin(one_activity(gate, loop), policy, envs="staging")
        answer(story, "g", "y")
        story.ack(envs=["PRODUCTION"])
        items = ("PRODUCTION",)
        story.when(AdvanceLoop(policy, story.now, TERMS, "each", items, variables={"envs": ["PRODUCTION"]}))
        assert story.state.variables == {"envs": "staging"}
        assert "'envs' stays staging" in story.said

    def test_a_child_returns_nothing_that_is_owned(self) -> None:
        variables = (Variable("at"), Variable("found"))
        story = given(one_activity(DEPLOY, step("send"), variables=variables)).start(at=STAGING)
        answer(story, "deploy", "yes")
        story.when(StartChild("child", "s1"))
        story.when(ReturnChild("child", "s1", True, {"at": PRODUCTION, "found": "x"}))
        assert story.state.variables == {"at": STAGING, "approved": True, "found": "x"}
        assert "'at' stays" in story.said

    def test_a_child_keeps_what_is_not_its_parents_agent_to_write(self) -> None:
        workflow = one_activity(DEPLOY, step("choose", "at", "note"), step("send"))
        start = StartRun(EXECUTION, 0, "sha256:0", "test", PRESETS["guided"], {"at": PRODUCTION, "more": 1})
        passed = {"at": STAGING, "note": "as the parent wrote it"}
        story = given(workflow).when(replace(start, passed=passed, inherited=("at",)))
        assert story.state.variables == {**passed, "more": 1}
        answer(story, "deploy", "yes")
        story.ack(at=PRODUCTION, note="changed")
        assert story.state.variables["at"] == STAGING, "no step of the child sets it"
        assert story.state.variables["note"] == "changed"
        assert "'at' stays" in story.said
        story.when(AcknowledgeStep(EXECUTION, story.now, TERMS, reask={"at": PRODUCTION}))
        assert story.state.variables["at"] == STAGING

    def test_a_run_that_has_ended_takes_nothing_from_children(self) -> None:
        story = given(one_activity(step("send"), variables=(Variable("found"),))).start()
        story.when(StartChild("child", "s1")).ack()
        assert story.state.finished
        for late in (ReturnChild("child", "s1", True, {"found": "x"}), StartChild("child", "s2")):
            refused = decide(story.plan, story.state, late, story.audit)
            assert isinstance(refused, Refusal)
            assert (refused.code, refused.kept) == (Code.RUN_FINISHED, ())

    def test_the_next_round_may_change_it_with_the_call_that_begins_the_round(self) -> None:
        loop = Loop("each", "Each", "for", (DEPLOY, step("send")), count=2)
        story = given(one_activity(loop)).start(at=STAGING)
        answer(story, "deploy", "yes")
        story.ack(at=PRODUCTION, approved=False)
        assert story.pending == "each@1::deploy"
        assert story.state.variables["at"] == PRODUCTION
        assert story.state.variables["approved"] is True, "what an answer set stays until the next answer"

    def test_the_next_visit_may_change_it_with_the_call_that_begins_the_visit(self) -> None:
        plan = Activity("plan", "Plan", (DEPLOY,), transitions=(Transition("plan"), Transition("ship")))
        story = begin(activities(plan, Activity("ship", "Ship", (step("send"),))), SESSION, at=STAGING)
        answer(story, "deploy", "yes")
        story.when(EnterActivity(SESSION, story.now, TERMS, "plan", variables={"at": PRODUCTION}))
        assert isinstance(story.outcome, Decided)
        assert story.state.variables["at"] == PRODUCTION

    def test_in_never_stop_mode_nobody_is_asked_and_nothing_owned(self) -> None:
        story = given(one_activity(DEPLOY, step("send")), mode="never-stop").start(at=STAGING)
        story.ack(at=PRODUCTION)
        assert story.state.variables == {"at": PRODUCTION, "approved": True}


class TestWholeQuestions:
    @EVERY
    def test_in_never_stop_mode_what_a_question_lacks_is_a_gap(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, "never-stop")
        put(story, "deploy")
        (gap,) = only(story.events, GapRecorded)
        assert gap.summary == "Checkpoint 'deploy' was put without 'at.host', which nobody has set."
        assert (gap.severity, gap.key) == ("critical", "deploy")
        put(story, "deploy")
        assert len(only(story.events, GapRecorded)) == 1, "the same question is put once"

    @EVERY
    def test_there_what_an_agent_gives_in_the_users_place_is_a_gap_too(self, policy: SurfacePolicy) -> None:
        ask = UserInput("needs_user_artifact", "Which build of {{product}}?", key="build")
        story = begin(one_activity(step("ship", user_input=(ask,))), policy, "never-stop")
        go_on(story, "__terminal__", "ship", build="7")
        assert [gap.summary for gap in only(story.events, GapRecorded)] == [
            f"The question '{ask.question}' shows 'product', which nobody has set.",
            "'Which build of [unset: product]?' was answered without the user.",
        ]
        assert story.state.variables == {"build": "7"}

    @EVERY
    def test_a_whole_question_leaves_no_gap(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, "never-stop", at=STAGING)
        put(story, "deploy")
        assert only(story.events, QuestionShown)
        assert not only(story.events, GapRecorded)


class TestSetters:
    @EVERY
    def test_a_declared_step_after_the_answer_may_set_it(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send", "approved")), policy, at=STAGING)
        answer(story, "deploy", "yes")
        go_on(story, "__terminal__", "send", approved=False)
        assert story.state.variables["approved"] is False
        (written,) = [event for event in only(story.events, ContextSet) if event.by]
        assert (written.by, written.delta) == ("send", {"approved": False})
        assert "Step 'send' has changed 'approved'" in story.said

    @EVERY
    def test_a_skipped_step_sets_nothing(self, policy: SurfacePolicy) -> None:
        """A4."""
        story = begin(
            one_activity(DEPLOY, step("reset", "approved", required=False), step("send")), policy, at=STAGING
        )
        answer(story, "deploy", "no")
        if policy is EXECUTION:
            story.ack(
                notes="", approved=True
            )  # a bare acknowledgement passes over a step that is not required
        else:
            go_on(story, "__terminal__", "send", approved=True)
        assert story.state.variables["approved"] is False
        assert "'approved' stays false" in story.said

    def test_a_step_before_the_gate_sets_nothing_after_the_answer(self) -> None:
        """A5 and A6: the call after the answer completes the step before the gate."""
        story = begin(one_activity(step("list", "at"), DEPLOY), GATED, at=STAGING)
        answer(story, "deploy", "yes")
        go_on(story, "__terminal__", "list", at=PRODUCTION)
        assert story.state.variables["at"] == STAGING

    def test_in_the_next_round_it_may(self) -> None:
        loop = Loop("each", "Each", "for", (step("list", "approved"), DEPLOY), count=2)
        story = given(one_activity(loop)).start(at=STAGING).ack(approved=None)
        answer(story, "deploy", "yes")
        assert story.pending == "each@1::list"
        assert story.ack(approved=False).state.variables["approved"] is False

    def test_a_step_that_must_set_it_may_bring_it(self) -> None:
        """It is owned and unset: the requirement sees what the step brings."""
        gate = Gate("g", "G", "Go?", (Option("a", "A", effect=Effect({"way": "x"})), Option("b", "B")))
        last = Step("last", "Last", condition=Compare("way", "==", "y"))
        story = given(one_activity(gate, step("choose", "way"), last)).start()
        answer(story, "g", "b")
        assert isinstance(story.ack().outcome, Decided)
        assert story.outcome.blockers  # type: ignore[union-attr]
        assert story.ack(way="y").pending == "last"


class TestAnswers:
    def test_what_an_earlier_answer_set_goes_back(self) -> None:
        """Or an option 'revise' would be repeated for ever after 'approve'."""
        gate = Gate(
            "review",
            "Review",
            "Good?",
            (
                Option("approve", "Approve", effect=Effect({"approved": True})),
                Option("revise", "Revise", effect=Effect({"again": True, "level": "low"})),
            ),
        )
        first = replace(step("do"), actions=(Action("set", "level"),))
        loop = Loop("rework", "Rework", "doWhile", (first, gate), condition=Compare("again", "==", True))
        story = given(one_activity(loop, step("last"))).start(level="high").ack()
        answer(story, "review", "revise")
        assert story.state.variables == {
            "level": "low",
            "again": True,
            "currentIteration": 2,
            "currentIndex": 1,
        }
        answer(story.ack(), "review", "approve")
        assert story.pending == "last"
        assert {"level": "high", "approved": True}.items() <= story.state.variables.items()
        assert "again" not in story.state.variables
        assert only(story.events, GateResolved)[-1].restores == {"again": None, "level": "high"}

    def test_what_a_step_has_set_since_stays(self) -> None:
        loop = Loop("each", "Each", "for", (DEPLOY, step("send", "approved")), count=2)
        other = Option("later", "Later")
        loop = Loop(
            "each",
            "Each",
            "for",
            (Gate("deploy", "Deploy", "Go?", (*DEPLOY.options, other)), step("send", "approved")),
            count=2,
        )
        story = given(one_activity(loop)).start()
        answer(story, "deploy", "yes")
        story.ack(approved=False)
        assert story.state.variables["approved"] is False
        answer(story, "deploy", "later")
        assert story.state.variables["approved"] is False

    @EVERY
    def test_what_the_question_asks_for_comes_with_its_answer(self, policy: SurfacePolicy) -> None:
        """B6: the condition asks for what is absent."""
        gate = Gate(
            "ask", "Ask", "Please provide the URL.", (Option("ok", "OK"),), Compare("url", "notExists")
        )
        story = begin(one_activity(gate, step("send")), policy)
        answer(story, "ask", "ok", url="https://x")
        assert story.state.variables == {"url": "https://x"}
        go_on(story, "__terminal__", "send", url="https://y")
        assert story.state.variables == {"url": "https://x"}

    @pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION, SESSION], ids=lambda it: it.name)
    def test_and_only_with_its_answer(self, policy: SurfacePolicy) -> None:
        gate = Gate(
            "ask", "Ask", "Please provide the URL.", (Option("ok", "OK"),), Compare("url", "notExists")
        )
        story = begin(one_activity(gate, step("send")), policy)
        story.when(EnterActivity(policy, story.now, TERMS, "nowhere", variables={"url": "https://x"}))
        assert isinstance(story.outcome, Refusal)
        assert story.state.variables == {}

    def test_an_approval_is_about_what_its_question_showed(self) -> None:
        need = UserInput("needs_user_approval", "Delete {{target}}?", "signed")
        story = given(one_activity(Step("delete", "Delete", user_input=(need,)), step("last"))).start(
            target="a"
        )
        story.ack(target="b", signed="approve")
        assert isinstance(story.awaited, NeedStep)
        assert story.state.variables == {"target": "a", "signed": "approve"}
        assert only(story.events, GateResolved)[-1].question == "Delete «a»?"

    def test_a_default_that_time_has_taken_owns_what_it_showed(self) -> None:
        gate = Gate(
            "g",
            "G",
            "Deploy to {{at.host}}?",
            DEPLOY.options,
            blocking=False,
            default_option="no",
            auto_advance_ms=10,
        )
        story = given(one_activity(gate, step("send"), step("last"))).start(at=STAGING)
        assert isinstance(story.awaited, NeedAnswer)
        story.now += 20
        story.when(AcknowledgeStep(EXECUTION, story.now, TERMS, variables={"at": PRODUCTION}))
        story.ack(approved=True, at=PRODUCTION)
        assert story.state.variables == {"at": STAGING, "approved": False}


class TestAskingAgain:
    @EVERY
    def test_the_question_is_asked_again_with_the_new_value(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        answer(story, "deploy", "yes")
        reask(story, at=PRODUCTION)
        assert isinstance(story.awaited, NeedAnswer)
        assert "Checkpoint 'deploy' is asked again" in story.said
        shown = only(story.events, QuestionShown)[-1]
        assert shown.question == "Deploy to «PRODUCTION»?"
        go_on(story, "__terminal__", "send")
        assert not story.state.finished, "nothing goes on before the answer"
        answer(story, "deploy", "no")
        assert story.state.variables == {"at": PRODUCTION, "approved": False}
        go_on(story, "__terminal__", "send")
        assert "send" in story.state.visit.done

    def test_an_open_question_is_put_in_new_words(self) -> None:
        story = begin(one_activity(DEPLOY, step("send")), EXECUTION, at=STAGING)
        reask(story, at=PRODUCTION)
        assert only(story.events, QuestionShown)[-1].question == "Deploy to «PRODUCTION»?"
        assert story.pending == "deploy"

    def test_it_never_passes(self) -> None:
        """With these values the question would not apply."""
        gate = Gate("g", "G", "Go?", DEPLOY.options, Compare("risky", "==", True))
        story = begin(one_activity(gate, step("send")), EXECUTION, risky=True)
        assert "would not be asked at all" in impossible(story, risky=False)
        answer(story, "g", "no")
        assert "would not be asked at all" in impossible(story, risky=False)

    @EVERY
    def test_what_only_an_answer_sets_is_not_asked_for_by_value(self, policy: SurfacePolicy) -> None:
        """The question would look the same, and an option that sets nothing would let the value stand."""
        options = (Option("yes", "Yes", effect=Effect({"approved": True})), Option("no", "No"))
        story = begin(one_activity(Gate("g", "G", "Go?", options), step("send")), policy)
        answer(story, "g", "no")
        assert "'approved' is set by the answer to checkpoint 'g'" in impossible(story, approved=True)

    @EVERY
    @pytest.mark.parametrize("value", [None, {}], ids=str)
    def test_it_is_not_asked_without_what_it_shows(self, policy: SurfacePolicy, value: Any) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        answer(story, "deploy", "yes")
        assert "it cannot be asked without a value" in impossible(story, at=value)

    @EVERY
    def test_a_name_that_no_question_shows_is_refused(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        answer(story, "deploy", "yes")
        text = "No question shows 'att'. Those of a question: at, approved."
        assert impossible(story, att=PRODUCTION) == text
        assert impossible(story, at=PRODUCTION, att=PRODUCTION) == text

    def test_another_activity_is_gone_back_to(self) -> None:
        plan = Activity("plan", "Plan", (DEPLOY,), transitions=(Transition("ship"),))
        story = begin(
            activities(plan, Activity("ship", "Ship", (step("send"), step("last")))), EXECUTION, at=STAGING
        )
        answer(story, "deploy", "yes")
        assert "checkpoint 'deploy' of activity 'plan'" in impossible(story, at=PRODUCTION)
        assert "reask" not in go_on(story, at=PRODUCTION).said

    def test_it_is_advised_only_where_it_helps(self) -> None:
        story = begin(one_activity(DEPLOY, step("send"), step("last")), EXECUTION, at=STAGING)
        answer(story, "deploy", "yes")
        assert "Sent in reask, 'at' is taken" in go_on(story, at=PRODUCTION, approved=False).said
        assert "reask" not in go_on(story, at=PRODUCTION).said, "the run is over"

    @pytest.mark.parametrize("policy", [SESSION, GATED])
    def test_it_is_not_advised_to_a_tool_that_does_not_have_it(self, policy: SurfacePolicy) -> None:
        story = begin(one_activity(DEPLOY, step("send")), policy, at=STAGING)
        put(story, "deploy")
        answer(story, "deploy", "yes", at=PRODUCTION)
        assert "The value that was sent is ignored" in story.said
        assert "reask" not in story.said
