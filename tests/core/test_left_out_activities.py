"""Required activities that a jump leaves out make a gap; those that declared exits avoid do not (rule 22)."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import TERMINAL, Activity, Step, Transition, Workflow
from interlock.core.run.commands import EnterActivity, Terms
from interlock.core.run.surface_policy import GATED, SESSION, SurfacePolicy
from support.story import Story, activities, given

FORK = (Transition("left", Compare("go", "==", "left")), Transition("right", default=True))


def activity(id: str, *exits: Transition, required: bool = True) -> Activity:
    step = Step(f"do-{id}", id, notes_optional=True)
    return Activity(id, id.title(), (step,), transitions=exits, required=required)


def flow(*, required: bool = True) -> Workflow:
    """A fork whose branches meet in one activity before the end."""
    meet = Transition("meet", default=True)
    return activities(
        activity("first", *FORK),
        activity("left", meet),
        activity("right", meet),
        activity("meet", Transition("last", default=True), required=required),
        activity("last", required=required),
        initial="first",
    )


def walked(workflow: Workflow, policy: SurfacePolicy, *targets: str) -> Story:
    story = given(workflow, policy).start()
    for target in targets:
        story = story.when(EnterActivity(policy, story.now, Terms(), target, variables={"go": "left"}))
    return story


@pytest.mark.parametrize("policy", [SESSION, GATED], ids=["session", "gated"])
def test_an_end_where_no_exit_leads_is_a_gap(policy: SurfacePolicy) -> None:
    story = walked(flow(), policy, "first", TERMINAL)
    assert story.state.status == "complete_with_gaps"
    (gap,) = story.state.gaps.newest
    assert gap.summary == "Required activities were left out on the way to '__terminal__': 'meet', 'last'."


def test_a_jump_over_a_required_activity_is_a_gap() -> None:
    story = walked(flow(), SESSION, "first", "left", "last", TERMINAL)
    assert story.state.status == "complete_with_gaps"
    assert [gap.summary.rpartition(": ")[2] for gap in story.state.gaps.newest] == ["'meet'."]


def test_what_is_not_required_may_be_left_out() -> None:
    assert walked(flow(required=False), SESSION, "first", TERMINAL).state.status == "complete"


def test_what_declared_exits_avoid_is_not_left_out() -> None:
    story = walked(flow(), SESSION, "first", "left", "meet", "last", TERMINAL)
    assert story.state.status == "complete"


def test_a_beginning_elsewhere_leaves_out_what_comes_before() -> None:
    story = walked(flow(), SESSION, "meet")
    assert [gap.summary.rpartition(": ")[2] for gap in story.state.gaps.newest] == ["'first'."]
