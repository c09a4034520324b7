"""Runs that would go on by themselves for ever, or for very long: they stop, say why, and can be helped."""

from __future__ import annotations

import pytest

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import Activity, Gate, Loop, Option, Step, Transition, Workflow
from interlock.core.engine.draft import Draft
from interlock.core.run.events import ActivityEntered
from interlock.core.run.outcomes import Decided
from interlock.core.run.surface_policy import EXECUTION
from interlock.surfaces.execution.errors import suggested_fix
from support.harness import Bench, steps, workflow
from support.story import activities, given, one_activity

WANTED = Compare("wanted", "truthy")
WORK = Step("work", "Work", condition=WANTED)
OUT = Transition("done", Compare("enough", "==", True))


def circle(*exits: Transition) -> Workflow:
    """Two activities that lead to each other and have nothing to do unless it is wanted."""
    one = Activity("one", "One", (WORK,), transitions=(*exits, Transition("two", default=True)))
    two = Activity("two", "Two", (), transitions=(Transition("one", default=True),))
    return activities(one, two, Activity("done", "Done", (Step("last", "Last"),)))


def test_a_circle_stops_and_names_what_decides_it() -> None:
    story = given(circle(OUT)).start().ack(wanted=None, enough=None)
    assert story.pending == "circle:one"
    blocked = story.ack().outcome
    assert isinstance(blocked, Decided)
    assert [getattr(blocker.pointer, "key", None) for blocker in blocked.blockers] == ["enough", "wanted"]
    assert story.ack(enough=True).pending == "last"


def test_a_circle_finds_work_when_it_is_wanted() -> None:
    assert given(circle()).start().ack(wanted=True).pending == "work"


def test_a_circle_without_any_way_out_blocks_and_says_whose_fault_it_is() -> None:
    empty = Activity("one", "One", (), transitions=(Transition("one", default=True),))
    outcome = given(activities(empty)).start().ack().outcome
    assert isinstance(outcome, Decided)
    assert outcome.blockers[0].code == "INVARIANT_VIOLATION"
    assert "author" in suggested_fix(outcome.blockers[0])


def test_what_holds_nobody_up_is_passed_over_once_in_a_circle() -> None:
    """A default that is taken at once, or an optional step, may lead back to itself."""
    at_once = Gate("go", "Go", "On?", (Option("on", "On"),), blocking=False, default_option="on")
    for item in (at_once, Step("maybe", "Maybe", required=False)):
        again = Activity("one", "One", (item,), transitions=(Transition("one", default=True),))
        story = given(activities(again)).start()
        draft = Draft(story.plan, story.state, EXECUTION, story.now)
        draft.skip_optional()
        assert sum(isinstance(event, ActivityEntered) for event in draft.events) == 1


def test_never_stop_ends_a_circle_with_a_critical_gap() -> None:
    """Rule 27: never-stop reaches the end, whatever the author wrote."""
    story = given(circle(), mode="never-stop").start().ack().ack()
    assert story.state.status == "complete_with_gaps"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["guided", "never-stop"])
def test_a_very_long_way_without_work_is_walked_in_stretches(mode: str) -> None:
    inner = Loop("inner", "Inner", "for", (WORK,), count=100, max_iterations=100)
    outer = Loop("outer", "Outer", "for", (inner,), count=100, max_iterations=100)
    story = given(one_activity(outer, Step("last", "Last")), mode=mode).start()  # type: ignore[arg-type]
    assert story.pending == "rest:main"
    rests = 0
    while story.pending == "rest:main":
        rests += 1
        assert rests < 5
        story.ack()
    assert story.pending == "last"


@pytest.mark.slow
def test_the_execution_surface_lets_a_long_way_go_on(bench: Bench) -> None:
    """Rule 33: no input stalls the server, and none makes it fail."""

    def loop(name: str, *body: object) -> dict[str, object]:
        bounds = {"type": "for", "count": 100, "maxIterations": 100}
        return {"id": name, "type": "loop", "title": name, "loop": bounds, "body": list(body)}

    skipped = steps("work", runCondition={"var": "wanted", "equals": True})
    bench.write(workflow(loop("outer", loop("inner", *skipped)), *steps("last")))
    agent = bench.agent()
    answer = agent.start("test.flow")
    while answer["pending"]["stepId"] != "last":
        assert "has not finished; call again" in answer["pending"]["prompt"]
        answer = agent.ack()
    assert answer["kind"] == "ok"
