"""The way out of an activity (rule 21), skipped activities, ends, and where nothing decides."""

from __future__ import annotations

from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import (
    Activity,
    ActivityMode,
    Branch,
    DecisionPoint,
    Effect,
    Gate,
    Option,
    Step,
    Transition,
    Variable,
    Workflow,
)
from interlock.core.engine.moves import moves
from interlock.core.run import events as e
from interlock.core.run.commands import EnterActivity, ResolveCheckpoint, Terms
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.surface_policy import NAVIGATION
from support.story import activities, given, only


def activity(id: str, *items: object, **fields: object) -> Activity:
    return Activity(id, id.title(), tuple(items) or (Step(f"do-{id}", id),), **fields)  # type: ignore[arg-type]


GO_LEFT = Compare("go", "==", "left")
LEFT, RIGHT = activity("left"), activity("right")
CHOICE = Gate(
    "choose",
    "Choose",
    "Where?",
    (Option("left", "Left", effect=Effect(transition_to="left")), Option("stay", "Stay")),
)


def forked(**fields: object) -> Workflow:
    exits = (Transition("left", GO_LEFT), Transition("right", default=True))
    return activities(activity("first", transitions=exits, **fields), LEFT, RIGHT)


def decided(option: str) -> dict[str, str]:
    return {"kind": "wr.decision", "checkpointId": "choose", "optionId": option}


def test_the_first_true_transition_wins_and_else_the_default() -> None:
    assert given(forked()).start().ack(go="left").pending == "do-left"
    assert given(forked()).start().ack(go="right").pending == "do-right"


def test_a_decision_branch_outranks_a_transition() -> None:
    branches = (
        Branch("a", "A", Compare("go", "==", "left"), "right"),
        Branch("b", "B", to=None, default=True),
    )
    flow = forked(decisions=(DecisionPoint("d", "D", branches),))
    assert given(flow).start().ack(go="left").pending == "do-right"
    assert given(flow).start().ack(go="on").pending == "do-right"


def test_an_options_transition_leaves_at_once_over_the_remaining_steps() -> None:
    flow = activities(
        activity("first", CHOICE, Step("skipped", "S"), transitions=(Transition("right", default=True),)),
        LEFT,
        RIGHT,
    )
    assert given(flow).start().ack(decided("left")).pending == "do-left"
    assert given(flow).start().ack(decided("stay")).pending == "skipped"


def test_no_way_that_is_open_asks_for_the_variables_that_decide() -> None:
    flow = activities(activity("first", transitions=(Transition("left", GO_LEFT),)), LEFT)
    story = given(flow).start().ack()
    assert story.pending == "way:first"
    assert story.ack().outcome.blockers[0].pointer.key == "go"  # type: ignore[union-attr]
    assert story.ack(go="left").pending == "do-left"


def test_never_stop_takes_the_first_way_and_discloses_it() -> None:
    flow = activities(activity("first", transitions=(Transition("left", GO_LEFT),)), LEFT)
    story = given(flow, mode="never-stop").start().ack().ack()
    assert story.pending == "do-left"
    assert only(story.events, e.GapRecorded)[0].detail == "missing_input"


def test_never_stop_takes_a_closed_exit_as_a_gap_unless_a_value_has_decided_it() -> None:
    """Rule 22: an unchosen option would open `left`; a value of the run closes `right`."""
    options = (Option("go", "Go", effect=Effect({"go": "left"})), Option("stay", "Stay"))
    transitions = (Transition("left", GO_LEFT), Transition("right", Compare("far", "==", True)))
    first = activity("first", Gate("choose", "Choose", "Where?", options), transitions=transitions)
    story = given(activities(first, LEFT, RIGHT), NAVIGATION, "never-stop").start(far=False)
    story.when(ResolveCheckpoint(NAVIGATION, story.now, Terms(min_response_ms=0), "agent", "choose", "stay"))
    listed = moves(story.plan, story.state, Terms(), {}, story.now)
    assert [move.target for move in (*listed.required, *listed.optional)] == ["left"]
    for target in ("right", "first"):
        refused = story.when(EnterActivity(NAVIGATION, story.now, Terms(), target)).outcome
        assert isinstance(refused, Refusal)
        assert refused.code is Code.INVALID_TRANSITION
    story.when(EnterActivity(NAVIGATION, story.now, Terms(), "left"))
    assert story.pending == "do-left"
    gap = only(story.events, e.GapRecorded)[-1]
    assert gap.summary == "No exit of activity 'first' was open; 'left' was taken."


def test_no_transitions_and_the_words_for_the_end_complete_the_run() -> None:
    for end in ("__terminal__", "end-workflow", "workflow-end"):
        flow = activities(activity("first", transitions=(Transition(end, default=True),)))
        assert given(flow).start().ack().state.status == "complete"
    assert given(activities(activity("first"))).start().ack().state.status == "complete"


def test_end_workflow_is_an_activity_where_one_has_that_id() -> None:
    last = activity("end-workflow")
    flow = activities(activity("first", transitions=(Transition("end-workflow", default=True),)), last)
    assert given(flow).start().ack().pending == "do-end-workflow"


def test_a_skipped_target_is_replaced_by_its_own_default_way() -> None:
    skip = Gate(
        "choose",
        "C",
        "?",
        (Option("skip", "Skip", effect=Effect(skip_activities=("middle",))), Option("no", "No")),
    )
    flow = activities(
        activity("first", skip, transitions=(Transition("middle", default=True),)),
        activity("middle", transitions=(Transition("last", default=True),)),
        activity("last"),
    )
    assert given(flow).start().ack(decided("skip")).pending == "do-last"
    assert given(flow).start().ack(decided("no")).pending == "do-middle"


def test_an_active_mode_skips_its_activities() -> None:
    flow = activities(
        activity("first", transitions=(Transition("middle", default=True),)),
        activity("middle", transitions=(Transition("last", default=True),)),
        activity("last"),
        modes=(ActivityMode("quick", "Quick", "quick", skip_activities=("middle",)),),
    )
    assert given(flow).start().ack(quick=True).pending == "do-last"


def test_an_active_mode_puts_its_defaults_over_the_declared_ones() -> None:
    flow = activities(
        activity(
            "first",
            transitions=(
                Transition("deep", Compare("depth", "==", "deep")),
                Transition("last", default=True),
            ),
        ),
        activity("deep"),
        activity("last"),
        variables=(Variable("depth", "string", default="flat", has_default=True),),
        modes=(ActivityMode("thorough", "Thorough", "thorough", defaults={"depth": "deep"}),),
    )
    assert given(flow).start().ack().pending == "do-last"
    assert given(flow).start().ack(thorough=True).pending == "do-deep"
    assert given(flow).start().ack(thorough=True, depth="flat").pending == "do-last"


def test_a_circle_of_skipped_activities_ends() -> None:
    flow = activities(
        activity("first", transitions=(Transition("a", default=True),)),
        activity("a", transitions=(Transition("b", default=True),)),
        activity("b", transitions=(Transition("a", default=True),)),
        modes=(ActivityMode("quick", "Quick", "quick", skip_activities=("a", "b")),),
    )
    assert given(flow).start(quick=True).ack() is not None


def test_entering_an_activity_again_starts_its_answers_empty() -> None:
    again = Gate(
        "choose",
        "C",
        "?",
        (Option("again", "Again", effect=Effect(transition_to="first")), Option("on", "On")),
    )
    flow = activities(activity("first", again))
    story = given(flow).start().ack(decided("again"))
    assert story.pending == "choose"
    assert story.state.visit.number == 2
    assert story.ack(decided("on")).state.status == "complete"


def test_independent_activities_begin_with_a_choice() -> None:
    flow = activities(LEFT, RIGHT)
    flow = Workflow(**{**{name: getattr(flow, name) for name in flow.__struct_fields__}, "initial": None})
    story = given(flow).start()
    assert story.pending == "choose-activity"
    chosen = {"kind": "wr.decision", "checkpointId": "choose-activity", "optionId": "right"}
    assert story.ack(chosen).pending == "do-right"


def test_a_step_passed_over_names_the_variable_that_nobody_set() -> None:
    flow = activities(
        activity("first", Step("maybe", "M", condition=Compare("go", "==", 1)), Step("last", "L"))
    )
    story = given(flow).start()
    assert only(story.events, e.StepSkipped)[0].unset == ("go",)
    assert story.pending == "last"


def test_an_exit_passed_over_names_the_variable_that_nobody_set() -> None:
    story = given(forked()).start().ack(go=None)
    assert isinstance(story.outcome, Decided)
    assert (
        "An exit of activity 'first' was passed over: nobody has set 'go'." in story.outcome.notices.messages
    )
    for go in ("left", "right"):
        assert only(given(forked()).start().ack(go=go).events, e.ActivityLeft)[0].unset == ()
    gated = activity("first", CHOICE, transitions=(Transition("right", GO_LEFT), Transition("right")))
    story = given(activities(gated, LEFT, RIGHT)).start().ack(decided("left"))
    assert only(story.events, e.ActivityLeft)[0].unset == ()


def test_a_confirmation_passed_over_names_the_variable_that_nobody_set() -> None:
    flow = activities(
        activity("first", Step("one", "One", confirm=Compare("go", "==", 1)), Step("two", "Two"))
    )
    story = given(flow).start().ack()
    assert story.pending == "two"
    assert isinstance(story.outcome, Decided)
    text = "Checkpoint 'confirm-one' was passed over: nobody has set 'go' (go == 1)."
    assert text in story.outcome.notices.messages


def test_a_way_that_only_the_lender_has_is_passed_over() -> None:
    exits = (Transition("elsewhere", GO_LEFT), Transition("right", default=True))
    flow = activities(activity("first", transitions=exits), RIGHT)
    assert given(flow).start().ack(go="left").pending == "do-right"
    alone = activities(activity("first", transitions=(Transition("elsewhere", default=True),)))
    assert given(alone).start().ack().state.status == "complete"
