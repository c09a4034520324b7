"""The bundled activity workflows, walked by the engine to every kind of end, surface by surface."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.program import Plan
from interlock.core.definition.prompts import gate_prompt, step_prompt
from interlock.core.definition.workflow import Workflow
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.evolve import evolved
from interlock.core.run import events as e
from interlock.core.run.commands import (
    AcknowledgeStep,
    AdvanceLoop,
    Command,
    EnterActivity,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import (
    Decided,
    Done,
    NeedAnswer,
    NeedExit,
    NeedInput,
    NeedLoop,
    NeedStep,
    Refusal,
)
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Preferences
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, NAVIGATION, SurfacePolicy
from support.harness import compile_cache

TERMS = Terms(min_response_ms=0)
GUIDED = Preferences()
LIBRARY = Library([BUNDLED], compile_cache())

every = pytest.mark.parametrize("name", ["meta", "work-package", "work-packages"])


@cache
def loaded(name: str) -> Loaded:
    found = LIBRARY.load(name)
    assert isinstance(found, Loaded), found
    return found


def compiled(name: str) -> Workflow:
    return loaded(name).workflow


class Script(Struct, frozen=True):
    """What an agent sends with steps and answers at gates; a list has one entry a visit, the last repeats."""

    sends: Mapping[str, Any] = {}
    answers: Mapping[str, Any] = {}

    def answering(self, **answers: Any) -> Script:
        named = {key.replace("_", "-"): option for key, option in answers.items()}
        return Script(self.sends, {**self.answers, **named})

    def sending(self, step: str, *values: Mapping[str, Any]) -> Script:
        return Script({**self.sends, step: list(values)}, self.answers)


class Walked(Struct):
    activities: list[str]
    visited: list[str]
    shown: list[str]
    state: RunState
    events: list[e.Event]


TASKS = [{"title": "a", "done_when": "x"}, {"title": "b", "done_when": "y"}]
PACKAGES = [{"name": "one"}, {"name": "two"}]
FULL = Script(
    sends={
        "read-issue": {"issue_ref": "#7"},
        "write-analysis": {"open_questions": [], "complexity": "normal", "scope": "s"},
        "check-workspace": {"base_branch": "main"},
        "run-baseline": {"baseline_green": True},
        "create-branch": {"branch": "fix/7"},
        "compare-designs": {"designs": "d"},
        "write-plan": {"tasks": TASKS},
        "review-diff": {"blocking_findings": []},
        "run-checks": {"checks_passed": True},
        "observe-criteria": {"criteria_met": True, "failures": []},
        "write-text": {"pr_title": "t"},
        "publish": {"pr_url": "https://example.org/pull/7"},
        "collect-review": {"review_state": "approved"},
        "answer-comments": {"rework_needed": False},
        "make-small-change": {"checks_passed": True},
        "commit-small-change": {"outcome": "committed"},
        "check-mergeable": {"merge_blockers": []},
        "wrap-up": {"outcome": "merged"},
    },
    answers={
        "confirm-scope": "full",
        "choose-design": "recommended",
        "approve-plan": "approve",
        "approve-publishing": "ready",
        "decide-merge": "merge-now",
    },
)
HARD = Script(
    sends={
        **FULL.sends,
        "write-analysis": {"open_questions": ["which?"], "complexity": "small", "scope": "s"},
        "run-baseline": {"baseline_green": False},
        "review-diff": [{"blocking_findings": ["f"]}, {"blocking_findings": []}],
        "plan-fixes": {"tasks": TASKS[:1]},
        "run-checks": [{"checks_passed": False}, {"checks_passed": True}],
        "plan-repair": {"tasks": TASKS[:1]},
        "collect-review": [{"review_state": item} for item in ("waiting", "changes_requested", "approved")],
        "answer-comments": {"rework_needed": True, "tasks": TASKS[:1]},
        "wrap-up": {"outcome": "abandoned"},
    },
    answers={
        **FULL.answers,
        "answer-questions": "assume",
        "red-baseline": "leave",
        "approve-plan": ["revise", "stepwise"],
        "review-task": ["rework", "commit", "commit", "commit", "commit"],
        "judge-findings": "fix",
        "judge-failure": "repair",
        "no-review-yet": "remind",
        "decide-merge": "close",
    },
)
INITIATIVE = Script(
    sends={
        "write-frame": {"initiative": "i", "goal_measure": "m"},
        "map-parts": {"base_branch": "main"},
        "find-earlier-work": {"prior_work": False},
        "propose-packages": {"packages": PACKAGES},
        "draw-dependencies": {"orders": "o"},
        "set-order": {"ordered_packages": PACKAGES},
        "ready-package": {"issue_ref": "#1", "quick_mode": False, "package_ready": True},
        "run-package": {"outcome": "merged", "pr_url": "https://example.org/pull/1"},
        "record-result": {"results": []},
        "measure-goal": {"goal_reached": True},
    },
    answers={
        "confirm-frame": "confirm",
        "approve-split": "approve",
        "approve-order": "risk",
        "accept-initiative": "accept",
    },
)

MATCH = Script(
    {"state-goal": {"goal": "g"}, "match-workflow": {"workflow_id": "work-package"}},
    {"confirm-workflow": "start"},
)
SHORT = {
    "meta": MATCH,
    "work-package": FULL.answering(confirm_scope="small"),
    "work-packages": INITIATIVE.sending(
        "name-single", {"issue_ref": "#1", "base_branch": "main", "quick_mode": True}
    )
    .sending("run-single", {"outcome": "committed"})
    .sending("close-single", {"goal_reached": True})
    .answering(confirm_frame="single"),
}
scripted = pytest.mark.parametrize(
    ("name", "script"),
    [
        *(("work-package", FULL), ("work-package", HARD), ("work-packages", INITIATIVE), ("meta", MATCH)),
        ("work-packages", SHORT["work-packages"]),
    ],
    ids=["full", "hard", "initiative", "meta", "single"],
)


def started(name: str, preferences: Preferences = GUIDED) -> Decided:
    start = StartRun(EXECUTION, 0, loaded(name).hash, "bundled", preferences)
    return decided(outcome_of(Plan(compiled(name)), RunState(), start))


def played(
    name: str, script: Script, preferences: Preferences = GUIDED, surface: SurfacePolicy = EXECUTION
) -> Walked:
    """Do whatever is pending until the run is done."""
    plan, now = Plan(compiled(name)), started(name, preferences)
    walked = Walked([], [], [], now.state, list(now.events))
    while not isinstance(now.awaited, Done):
        assert len(walked.visited) < 300, walked.visited[-20:]
        walked.shown.append(shown(plan, now))
        now = decided(outcome_of(plan, now.state, move(now, script, walked.visited, surface)))
        walked.events += now.events
    walked.state = now.state
    walked.activities = [event.activity for event in walked.events if isinstance(event, e.ActivityEntered)]
    return walked


def shown(plan: Plan, now: Decided) -> str:
    """The words that an agent gets for the pending item."""
    scope = plan.scope(now.state.variables)
    match now.awaited:
        case NeedStep(step=step):
            return step_prompt(plan, now.state, step)
        case NeedAnswer(gate=gate):
            return gate_prompt(gate, scope)
        case _:
            return ""


def move(now: Decided, script: Script, visited: list[str], surface: SurfacePolicy = EXECUTION) -> Command:
    """What the script does about the pending item, which joins the path."""
    match now.awaited:
        case NeedStep(step=step):
            sent = visit(script.sends.get(step.id, {}), visited.count(step.id))
            visited.append(step.id)
            return AcknowledgeStep(surface, 0, TERMS, Output("done"), sent)
        case NeedAnswer(gate=gate):
            option = visit(script.answers.get(gate.id), visited.count(gate.id))
            visited.append(gate.id)
            return AcknowledgeStep(surface, 0, TERMS, decision(gate.id, option))
        case NeedInput():
            return AcknowledgeStep(surface, 0, TERMS)
        case NeedLoop(loop=loop):
            return AdvanceLoop(surface, 0, TERMS, loop.id)
        case NeedExit(exits=exits):
            return EnterActivity(surface, 0, TERMS, next(exit_.to for exit_ in exits if exit_.expected))
        case other:
            raise AssertionError(other)


def decision(gate: str, option: str | None) -> Output:
    if option is None:
        return Output()
    return Output(artifacts=({"kind": "wr.decision", "checkpointId": gate, "optionId": option},))


def visit(given: Any, number: int) -> Any:
    return given[min(number, len(given) - 1)] if isinstance(given, list) else given


def decided(outcome: Decided | Refusal) -> Decided:
    assert isinstance(outcome, Decided), outcome
    assert outcome.blockers == ()
    return outcome


def test_the_full_route_visits_all_activities_but_the_short_one_and_merges() -> None:
    walked = played("work-package", FULL)
    activities = [activity.id for activity in compiled("work-package").activities]
    assert walked.activities == [activity for activity in activities if activity != "small-change"]
    assert (walked.state.variables["outcome"], walked.state.status) == ("merged", "complete")
    assert walked.visited.count("commit-task") == len(TASKS)


@scripted
def test_no_way_is_taken_and_no_word_shown_by_an_unset_variable(name: str, script: Script) -> None:
    """Rules 20 and 32."""
    walked = played(name, script)
    assert [event for event in walked.events if getattr(event, "unset", ())] == []
    assert [text for text in walked.shown if "[unset" in text] == []


def test_the_quick_mode_leaves_design_and_test_plan_out() -> None:
    walked = played("work-package", FULL.answering(confirm_scope="quick"))
    left_out = {activity.id for activity in compiled("work-package").activities} - set(walked.activities)
    assert left_out == {"design", "test-plan", "small-change"}
    assert walked.state.variables["outcome"] == "merged"


@every
def test_it_has_a_short_route_of_at_most_four_steps_and_one_gate(name: str) -> None:
    walked = played(name, SHORT[name])
    questions = {gate.id for activity in compiled(name).activities for gate in activity.gates()}
    assert walked.state.status == "complete"
    assert len([item for item in walked.visited if item not in questions]) <= 4
    assert len([item for item in walked.visited if item in questions]) <= 1


def test_the_short_route_of_a_package_ends_at_a_commit() -> None:
    walked = played("work-package", SHORT["work-package"])
    assert walked.visited == [
        "read-issue",
        "write-analysis",
        "confirm-scope",
        "make-small-change",
        "commit-small-change",
    ]
    assert (walked.state.variables["outcome"], walked.state.status) == ("committed", "complete")


def test_a_review_that_is_waived_is_recorded_as_waived() -> None:
    script = FULL.sending("collect-review", {"review_state": "waiting"}).answering(no_review_yet="waive")
    walked = played("work-package", script)
    assert walked.state.variables["review_state"] == "waived"
    assert "Review: «waived»." in "\n".join(walked.shown)


def test_nothing_is_called_merged_before_it_is() -> None:
    walked = played("work-package", FULL.sending("wrap-up", {"outcome": "deferred"}))
    assert (walked.state.variables["merge_decision"], walked.state.variables["outcome"]) == (
        "merge",
        "deferred",
    )


def test_the_hard_route_repairs_reworks_and_ends_unmerged() -> None:
    walked = played("work-package", HARD)
    entered = walked.activities
    assert "design" not in entered, "a small issue is planned at once"
    assert [entered.count(item) for item in ("plan", "implement", "self-review", "validate")] == [2, 4, 4, 3]
    assert walked.visited.count("rework-task") == 1
    assert walked.visited.count("remind-reviewers") == 1
    assert follows(walked, "answer-comments") == "check-start", "new tasks end the rounds of review"
    assert walked.visited[-2:] == ["close-unmerged", "wrap-up"]
    assert walked.state.variables["outcome"] == "abandoned"


def follows(walked: Walked, item: str) -> str:
    return walked.visited[walked.visited.index(item) + 1]


@pytest.mark.parametrize(
    ("gate", "option", "outcome"),
    [
        ("answer-questions", "park", "deferred"),
        ("confirm-scope", "drop", "abandoned"),
        ("red-baseline", "stop", "deferred"),
        ("approve-plan", "defer", "deferred"),
        ("judge-failure", "stop", "deferred"),
        ("approve-publishing", "hold", "deferred"),
        ("approve-publishing", "end-at-commit", "committed"),
        ("no-review-yet", "park", "deferred"),
    ],
)
def test_an_early_end_says_how_the_package_ended(gate: str, option: str, outcome: str) -> None:
    walked = played("work-package", HARD.answering(**{gate: option}))
    assert walked.visited[-1] == gate
    assert (walked.state.variables["outcome"], walked.state.status) == (outcome, "complete")


def test_the_initiative_runs_every_package_in_order() -> None:
    walked = played("work-packages", INITIATIVE)
    activities = [activity.id for activity in compiled("work-packages").activities]
    assert walked.activities == [activity for activity in activities if activity != "single-package"]
    assert walked.visited.count("run-package") == len(PACKAGES)
    assert walked.state.variables["verdict"] == "accepted"


def test_a_package_that_fails_is_ordered_again_or_holds_the_initiative() -> None:
    failing = INITIATIVE.sending("run-package", {"outcome": "deferred"})
    script = failing.answering(package_not_merged=["reorder", "hold"], accept_initiative="stop")
    walked = played("work-packages", script)
    assert walked.activities[-4:] == ["run-packages", "order", "run-packages", "close-initiative"]
    assert walked.visited.count("run-package") == 2
    assert walked.state.variables["verdict"] == "stopped"


def test_a_package_that_cannot_start_is_not_run() -> None:
    missing = INITIATIVE.sending("ready-package", {"issue_ref": "#1", "package_ready": False})
    walked = played("work-packages", missing.answering(package_not_merged="skip"))
    assert "run-package" not in walked.visited
    assert walked.visited.count("package-not-merged") == len(PACKAGES)


def test_a_package_that_is_given_up_is_not_taken_for_the_one_before() -> None:
    script = INITIATIVE.sending("run-package", {"outcome": "merged"}, {})
    walked = played("work-packages", script.answering(package_not_merged="skip"))
    assert walked.visited.count("package-not-merged") == 1


def test_what_a_child_returns_decides_how_the_parent_goes_on() -> None:
    """Rule 35: the parent asks nothing about a package that its child has merged."""
    plan, now, visited = Plan(compiled("work-packages")), started("work-packages"), list[str]()
    script = INITIATIVE.sending("run-package", {})
    while "ready-package" not in visited:
        now = decided(outcome_of(plan, now.state, move(now, script, visited)))
    returned = e.ChildReturned("work-package", "s", "completed", {"outcome": "merged", "pr_url": "u"})
    state = evolved(now.state, [returned])
    for _ in ("run-package", "record-result"):
        now = decided(outcome_of(plan, state, move(now, script, visited)))
        state = now.state
    assert isinstance(now.awaited, NeedStep)
    assert now.awaited.step.id == "ready-package"


@scripted
def test_navigation_takes_the_same_path_as_execution(name: str, script: Script) -> None:
    navigated, executed = played(name, script, surface=NAVIGATION), played(name, script)
    assert navigated.visited == executed.visited
    assert navigated.activities == executed.activities
    assert navigated.state.variables == executed.state.variables


@pytest.mark.parametrize(
    ("answer", "last"), [("start", "open-session"), ("none", "work-without")], ids=["start", "none"]
)
def test_meta_opens_a_session_or_says_that_none_is_used(answer: str, last: str) -> None:
    walked = played("meta", MATCH.answering(confirm_workflow=answer))
    assert walked.visited == ["state-goal", "match-workflow", "confirm-workflow", last]


def test_meta_asks_again_until_a_workflow_fits() -> None:
    walked = played("meta", MATCH.answering(confirm_workflow=["other", "start"]))
    assert walked.activities == ["start-workflow", "start-workflow"]


@every
@pytest.mark.parametrize("sends", [{}, FULL.sends], ids=["silent", "approved"])
def test_unattended_it_ends_and_does_nothing_that_cannot_be_undone(
    name: str, sends: Mapping[str, Any]
) -> None:
    """Rule 27: never-stop takes default options, so these must be the harmless ones."""
    walked = played(name, Script(sends), PRESETS["never-stop"])
    assert walked.state.status == "complete_with_gaps"
    assert "merge" not in walked.visited
    assert walked.state.variables.get("pr_mode", "draft") == "draft"


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["in a few words", "none"]),
    "number": st.integers(0, 2),
    "boolean": st.booleans(),
    "array": st.lists(st.just({"name": "x"}), max_size=2),
    "object": st.just({"name": "x"}),
}


@every
@given(data=st.data())
def test_whatever_is_reported_and_answered_the_run_goes_on(name: str, data: st.DataObject) -> None:
    """No honest report and no option leads to a refusal or a block."""
    plan, now = Plan(compiled(name)), started(name)
    honest = {
        variable.name: st.sampled_from(variable.values) if variable.values else VALUES[variable.type]
        for variable in compiled(name).variables
    }
    for _ in range(60):
        match now.awaited:
            case Done():
                break
            case NeedStep(step=step):
                wanted = [action.target for action in step.actions if action.target and not action.has_value]
                sent = {target: data.draw(honest[target], target) for target in wanted}
                command = AcknowledgeStep(EXECUTION, 0, TERMS, Output("done"), sent)
            case NeedAnswer(gate=gate):
                option = data.draw(st.sampled_from(gate.options), gate.id)
                command = AcknowledgeStep(EXECUTION, 0, TERMS, decision(gate.id, option.id))
            case NeedInput(variables=names):
                command = AcknowledgeStep(EXECUTION, 0, TERMS, variables={name: [] for name in names})
            case other:
                raise AssertionError(other)
        now = decided(outcome_of(plan, now.state, command))
