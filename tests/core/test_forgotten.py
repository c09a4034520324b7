"""No run ends by forgetting: what nobody has set is asked for before the run goes past it (rule 20)."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import AllOf, Compare, Condition
from interlock.core.definition.workflow import (
    TERMINAL,
    Activity,
    Branch,
    DecisionPoint,
    Effect,
    Gate,
    Item,
    Loop,
    Option,
    Step,
    Transition,
    Variable,
)
from interlock.core.engine.moves import moves
from interlock.core.run import events as e
from interlock.core.run.commands import EnterActivity, ResolveCheckpoint, Terms
from interlock.core.run.outcomes import Decided, NeedInput
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION, SurfacePolicy
from support.story import Story, activities, given, one_activity, only

DEEP = Compare("deep", "==", True)
FIRST, LAST = Step("first", "First"), Step("last", "Last", condition=DEEP)
PASSED: dict[str, Item] = {
    "step": LAST,
    "gate": Gate("ask", "Ask", "Sure?", (Option("yes", "Yes"),), condition=DEEP),
    "loop": Loop("rounds", "Rounds", "while", (Step("round", "Round"),), condition=DEEP),
    "skipped loop": Loop("rounds", "Rounds", "for", (Step("round", "Round"),), run_condition=DEEP, count=1),
}


def asked(story: Story) -> NeedInput:
    assert isinstance(story.outcome, Decided)
    assert isinstance(story.outcome.awaited, NeedInput), story.outcome.awaited
    return story.outcome.awaited


@pytest.mark.parametrize("item", PASSED.values(), ids=PASSED)
def test_what_would_be_passed_over_before_the_end_is_asked_for(item: Item) -> None:
    need = asked(given(one_activity(FIRST, item)).start().ack())
    assert (need.variables, need.example) == (("deep",), {"deep": "<true | false>"})
    assert f"'{item.id}'" in need.message


def test_the_run_is_blocked_without_it_and_goes_on_with_it() -> None:
    story = given(one_activity(FIRST, LAST)).start().ack()
    blocked = story.ack().outcome
    assert isinstance(blocked, Decided)
    assert blocked.blockers[0].example == {"deep": "<true | false>"}
    assert story.ack(deep=True).pending == "last"


def test_an_answer_that_says_no_ends_the_run() -> None:
    assert given(one_activity(FIRST, LAST)).start().ack(deep=False).state.status == "complete"


def test_null_leaves_it_unset_and_is_recorded() -> None:
    story = given(one_activity(FIRST, LAST)).start().ack().ack(deep=None)
    assert story.state.status == "complete"
    assert only(story.events, e.ContextSet)[-1].delta == {"deep": None}


def test_what_was_left_unset_can_be_set_later() -> None:
    story = given(one_activity(FIRST, Step("second", "Second"), LAST)).start().ack(deep=None)
    assert story.ack(deep=True).pending == "last"


def test_what_only_an_answer_sets_is_not_asked_of_the_agent() -> None:
    yes, no = Option("yes", "Yes", effect=Effect({"deep": True})), Option("no", "No")
    ask = Gate("ask", "Ask", "Dig?", (yes, no))
    story = given(one_activity(FIRST, ask, LAST)).start().ack()
    decided = {"kind": "wr.decision", "checkpointId": "ask", "optionId": "no"}
    assert story.ack(decided).state.status == "complete"


def test_in_never_stop_mode_it_is_a_gap() -> None:
    story = given(one_activity(FIRST, LAST), mode="never-stop").start().ack().ack()
    assert story.state.status == "complete_with_gaps"


@pytest.mark.parametrize(
    "condition",
    [Compare("deep", "exists"), AllOf((Compare("set", "==", 2), DEEP))],
    ids=["absence decides", "another value decides"],
)
def test_what_is_decided_without_it_is_not_asked_for(condition: Condition) -> None:
    last = Step("last", "Last", condition=condition)
    assert given(one_activity(FIRST, last)).start(set=1).ack().state.status == "complete"


def test_what_comes_before_other_work_is_passed_over_with_a_warning() -> None:
    assert given(one_activity(FIRST, LAST, Step("after", "After"))).start().ack().pending == "after"


def test_an_exit_that_nobody_has_decided_is_asked_for() -> None:
    exits = (Transition("more", DEEP), Transition("end", default=True))
    one = Activity("one", "One", (FIRST,), transitions=exits)
    more, end = (Activity(id, id, (Step(f"do-{id}", id),)) for id in ("more", "end"))
    story = given(activities(one, more, end)).start().ack()
    assert asked(story).variables == ("deep",)
    assert story.ack(deep=True).pending == "do-more"


def branching(*, default: Branch) -> Activity:
    branches = (Branch("more", "More", DEEP, "more"), default)
    decision = DecisionPoint("audit", "Audit", branches)
    again = Transition("more", Compare("again", "==", True))
    return Activity("one", "One", (FIRST,), transitions=(again,), decisions=(decision,))


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION], ids=["execution", "navigation"])
def test_a_default_branch_without_a_target_is_the_end(policy: SurfacePolicy) -> None:
    more = Activity("more", "More", (Step("do-more", "More"),))
    flow = activities(branching(default=Branch("done", "Done", default=True)), more)
    story = (
        given(flow, policy).start(deep=False, again=False).ack(step=None if policy is EXECUTION else "first")
    )
    if policy is NAVIGATION:
        (way,) = moves(story.plan, story.state, Terms(), {}, 0).required
        assert way.target == TERMINAL
        story.when(EnterActivity(policy, story.now, Terms(), TERMINAL))
    assert (story.state.status, only(story.events, e.ActivityLeft)[-1].via) == ("complete", "decision")


@pytest.mark.parametrize("policy", [EXECUTION, NAVIGATION], ids=["execution", "navigation"])
def test_an_exit_over_what_a_question_owns_is_decided_by_its_default(policy: SurfacePolicy) -> None:
    options = (Option("yes", "Yes", effect=Effect({"deep": True})), Option("no", "No"))
    ask = Gate("ask", "Ask", "Dig?", options)
    one = Activity("one", "One", (ask,), transitions=(Transition("more", DEEP),))
    more = Activity("more", "More", (Step("do-more", "More"),))
    declared = (Variable("deep", "boolean", default=False),)
    story = given(activities(one, more, variables=declared), policy).start()
    if policy is EXECUTION:
        story.ack({"kind": "wr.decision", "checkpointId": "ask", "optionId": "no"})
    else:
        story.when(ResolveCheckpoint(policy, story.now, Terms(), "agent", "ask", "no"))
        assert [way.target for way in moves(story.plan, story.state, Terms(), {}, 0).required] == [TERMINAL]
        story.when(EnterActivity(policy, story.now, Terms(), TERMINAL))
    assert story.state.status == "complete_with_gaps"
