"""The bundled activity workflows at the session and gated surfaces: gate by gate to the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity, Gate, Loop, Option, Step, Workflow
from interlock.core.engine.decide import outcome_of
from interlock.core.engine.evolve import evolved
from interlock.core.run import events as e
from interlock.core.run.commands import (
    Claim,
    Command,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    ResumeWorker,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import GATED, SESSION
from interlock.core.values import Variables
from interlock.core.variables.typed_values import sample
from support.harness import compile_cache

TERMS = Terms(min_response_ms=0)
LIBRARY = Library([BUNDLED], compile_cache())
TASKS = [{"title": "a", "done_when": "x"}, {"title": "b", "done_when": "y"}]
PACKAGES = [{"name": "one"}, {"name": "two"}]

every = pytest.mark.parametrize("name", ["meta", "work-package", "work-packages"])


@cache
def loaded(name: str) -> Loaded:
    found = LIBRARY.load(name)
    assert isinstance(found, Loaded), found
    return found


def compiled(name: str) -> Workflow:
    return loaded(name).workflow


def decided(outcome: Decided | Refusal) -> Decided:
    assert isinstance(outcome, Decided), outcome
    assert outcome.blockers == ()
    return outcome


class Stage(Struct, frozen=True):
    """One activity as a worker does it: what its steps produce, and what the user answers."""

    activity: str
    produced: Mapping[str, Any] = {}
    answers: Sequence[tuple[str, str]] = ()


PACKAGE_STAGES = (
    Stage(
        "understand-issue",
        {"issue_ref": "#7", "open_questions": ["which?"], "complexity": "normal"},
        [("answer-questions", "answered"), ("confirm-scope", "full")],
    ),
    Stage("prepare", {"base_branch": "main", "baseline_green": True, "branch": "fix/7"}),
    Stage("design", {}, [("choose-design", "simplest")]),
    Stage("plan", {"tasks": TASKS}, [("approve-plan", "stepwise")]),
    Stage("test-plan"),
    Stage("implement", {}, [("review-task", "commit"), ("review-task", "rework")]),
    Stage("self-review", {"blocking_findings": ["f"]}, [("judge-findings", "disclose")]),
    Stage("validate", {"checks_passed": True, "criteria_met": True}),
    Stage("pull-request", {"pr_url": "https://example.org/pull/7"}, [("approve-publishing", "ready")]),
    Stage("review-response", {"review_state": "waiting"}, [("no-review-yet", "waive")]),
    Stage("merge-and-close", {}, [("decide-merge", "merge-now")]),
)
INITIATIVE_STAGES = (
    Stage("frame-initiative", {"initiative": "i", "goal_measure": "m"}, [("confirm-frame", "confirm")]),
    Stage("survey", {"base_branch": "main", "prior_work": True}),
    Stage("split", {"packages": PACKAGES}, [("approve-split", "finer")]),
    Stage("plan-packages"),
    Stage("order", {"ordered_packages": PACKAGES}, [("approve-order", "value")]),
    Stage(
        "run-packages",
        {"issue_ref": "#1"},
        [("package-not-merged", "skip"), ("package-not-merged", "hold")],
    ),
    Stage("close-initiative", {"goal_reached": True}, [("accept-initiative", "accept")]),
)
META_STAGES = (
    Stage("start-workflow", {"goal": "g", "workflow_id": "work-package"}, [("confirm-workflow", "start")]),
)
PATHS = {"work-package": PACKAGE_STAGES, "work-packages": INITIATIVE_STAGES, "meta": META_STAGES}


def legs(stages: Sequence[Stage]) -> Iterator[tuple[Stage, str]]:
    """Each stage with the activity that follows it."""
    return zip(stages, [*(stage.activity for stage in stages[1:]), "__terminal__"], strict=True)


def reports(plan: Plan, state: RunState) -> tuple[Claim, ...]:
    """Return what a manifest says of every step of the current activity."""
    activity = plan.workflow.activity(state.activity)
    assert activity is not None
    return tuple(Claim(step.id, Output("Done as it says.")) for step in activity.steps())


class Session:
    """A worker and an orchestrator who share a state."""

    def __init__(self, name: str) -> None:
        self.plan = Plan(compiled(name))
        self.state = RunState()
        self.answered: list[str] = []
        self.do(StartRun(SESSION, 0, loaded(name).hash, "bundled", Preferences()))

    def do(self, command: Command) -> Decided:
        made = decided(outcome_of(self.plan, self.state, command))
        assert {notice.code for notice in made.notices.listed} <= {"VARIABLE_NOT_SET"}
        self.state = made.state
        return made

    def leave(self, target: str, produced: Mapping[str, Any]) -> str | None:
        """Ask for the next activity; name the gate that refuses it. What was sent is kept (rule 19)."""
        claims = reports(self.plan, self.state)
        command = EnterActivity(SESSION, 0, TERMS, target, claims, variables=produced)
        outcome = outcome_of(self.plan, self.state, command)
        while isinstance(outcome, Refusal) and outcome.code is Code.INPUT_REQUIRED:
            command, outcome = self.whole(command, outcome)
        if isinstance(outcome, Decided):
            self.do(command)
            return None
        assert outcome.code is Code.GATE_UNANSWERED, outcome
        self.state = evolved(self.state, outcome.kept)
        return str(outcome.about["checkpoint"])

    def whole(self, command: EnterActivity, lacking: Refusal) -> tuple[EnterActivity, Any]:
        """Send what a question shows as well."""
        self.state = evolved(self.state, lacking.kept)
        names: Any = lacking.about["variables"]
        command = replace(command, variables={name: sample(self.plan, name) for name in names})
        return command, outcome_of(self.plan, self.state, command)

    def ask(self, gate: str, option: str, **shown: Any) -> None:
        self.do(OpenCheckpoint(SESSION, 0, TERMS, gate, agent="worker", variables=shown))
        self.do(ResolveCheckpoint(SESSION, 9, TERMS, "agent", gate, option))
        self.do(ResumeWorker(SESSION, 9, "worker"))
        self.answered.append(gate)

    def run(self, stage: Stage, target: str) -> None:
        assert self.state.activity == stage.activity
        produced = stage.produced
        for gate, option in stage.answers:
            assert self.leave(target, produced) == gate, "a gate holds until it is answered (rule 23)"
            self.ask(gate, option)
            produced = {}
        assert self.leave(target, produced) is None


@every
def test_a_session_is_walked_gate_by_gate_to_its_end(name: str) -> None:
    session, stages = Session(name), PATHS[name]
    session.do(EnterActivity(SESSION, 0, TERMS, stages[0].activity))
    for stage, target in legs(stages):
        session.run(stage, target)
    assert session.state.status == "complete"
    assert session.answered == [gate for stage in stages for gate, _ in stage.answers]
    assert set(session.state.route.completed) == {stage.activity for stage in stages}


def test_a_session_follows_the_answer_that_leads_elsewhere() -> None:
    session = Session("work-package")
    session.do(EnterActivity(SESSION, 0, TERMS, "understand-issue"))
    known = {"issue_ref": "1", "open_questions": [], "complexity": "normal", "scope": "small"}
    session.ask("confirm-scope", "correct", **known)
    assert session.leave("understand-issue", {}) is None
    assert (session.state.visit.number, session.state.visit.answers) == (2, {})
    session.ask("confirm-scope", "drop")
    assert session.leave("__terminal__", {}) is None
    assert session.state.variables["outcome"] == "abandoned"


class Gated:
    """One agent at the gated surface, where every required checkpoint is pending from entry (rule 15)."""

    def __init__(self, workflow: Workflow, variables: Variables | None = None) -> None:
        self.plan = Plan(workflow)
        self.state = RunState()
        self.do(StartRun(GATED, 0, "hash", "bundled", Preferences(), variables or {}))

    def do(self, command: Command) -> None:
        made = decided(outcome_of(self.plan, self.state, command))
        assert {notice.code for notice in made.notices.listed} <= {"VARIABLE_NOT_SET"}
        self.state = made.state

    def run(self, stage: Stage, target: str) -> None:
        """Answer each checkpoint where it stands, and leave."""
        self.state = evolved(self.state, [e.ContextSet(stage.produced)])
        answers = dict(stage.answers)
        leave = EnterActivity(GATED, 9, TERMS, target, reports(self.plan, self.state))
        while isinstance(held := outcome_of(self.plan, self.state, leave), Refusal):
            self.state = evolved(self.state, held.kept)
            if held.code is Code.INPUT_REQUIRED:
                names: Any = held.about["variables"]
                leave = replace(leave, variables={name: sample(self.plan, name) for name in names})
                continue
            assert held.code is Code.GATE_UNANSWERED, held
            gate = str(held.about["checkpoint"])
            self.do(ResolveCheckpoint(GATED, 9, TERMS, "agent", gate, answers[gate]))
        self.do(leave)


@every
def test_at_the_gated_surface_each_checkpoint_is_answered_where_it_stands(name: str) -> None:
    gated, stages = Gated(compiled(name)), PATHS[name]
    gated.do(EnterActivity(GATED, 0, TERMS, stages[0].activity))
    for stage, target in legs(stages):
        gated.run(stage, target)
    assert gated.state.status == "complete"
    assert set(gated.state.route.completed) == {stage.activity for stage in stages}


@pytest.mark.parametrize(
    ("activity", "produced", "answer", "target"),
    [
        ("self-review", {"blocking_findings": ["f"]}, ("judge-findings", "fix"), "implement"),
        ("validate", {"checks_passed": False}, ("judge-failure", "repair"), "implement"),
    ],
)
def test_an_answer_decides_the_way_out_of_its_activity(
    activity: str, produced: Mapping[str, Any], answer: tuple[str, str], target: str
) -> None:
    """Rules 15 and 21: nothing between the answer and the way out may take it back."""
    gated = Gated(compiled("work-package"))
    gated.do(EnterActivity(GATED, 0, TERMS, "understand-issue"))
    for stage, onward in legs(PACKAGE_STAGES):
        if stage.activity == activity:
            gated.run(Stage(activity, produced, [answer]), target)
            break
        gated.run(stage, onward)
    assert gated.state.activity == target


def test_at_the_gated_surface_each_iteration_has_its_own_answer() -> None:
    """Rule 16: an answer counts for its own round, also where the activity begins with its loop."""
    gate = Gate("ask", "Ask", "Well?", (Option("yes", "Yes"), Option("no", "No")), bound_to="do")
    loop = Loop("each", "Each", "forEach", (gate, Step("do", "Do")), items="things")
    gated = Gated(Workflow("w", "W", "", "1.0.0", (Activity("one", "One", (loop,)),)), {"things": [1, 2]})
    gated.do(EnterActivity(GATED, 0, TERMS, "one"))
    gated.do(ResolveCheckpoint(GATED, 9, TERMS, "agent", "ask", "yes"))
    held = outcome_of(gated.plan, gated.state, EnterActivity(GATED, 9, TERMS, "__terminal__"))
    assert isinstance(held, Refusal)
    assert (held.code, held.about["instance"]) == (Code.GATE_UNANSWERED, "each@1::ask")
    gated.run(Stage("one", {}, [("ask", "yes")]), "__terminal__")
    assert gated.state.status == "complete"
