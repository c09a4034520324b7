"""Checks in the core: what must run is said, what has run decides, and a gate shows it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity, Gate, Item, Option, Step, Transition, Workflow
from interlock.core.engine.decide import decide
from interlock.core.engine.evolve import evolved
from interlock.core.guard.audit import Audit, learned
from interlock.core.run import events as e
from interlock.core.run.commands import (
    AcknowledgeStep,
    Answerable,
    CheckResult,
    Claim,
    Decision,
    DueCheck,
    EnterActivity,
    OpenCheckpoint,
    ResolveCheckpoint,
    StartRun,
    Terms,
)
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, NeedStep, Refusal, RunChecks
from interlock.core.run.output import Output
from interlock.core.run.preferences import PRESETS, Mode
from interlock.core.run.state import RunState
from interlock.core.run.surface_policy import EXECUTION, GATED, NAVIGATION, SESSION, SurfacePolicy

TESTS = CommandCheck("tests", "pytest -q")
LINT = CommandCheck("lint", "ruff check .")
BUILD = Step("build", "Build", checks=(TESTS,))
REVIEW = Gate("review", "Review", "Tests: {{checks.tests}}", (Option("ok", "Ok"), Option("no", "No")))
LAST = Step("close", "Close")


def workflow(*items: Item) -> Workflow:
    activity = Activity("main", "Main", items, transitions=(Transition("after"),))
    return Workflow("team.work", "Work", "", "1", (activity, Activity("after", "After")), initial="main")


class Run:
    """A run whose project has files `tree`, and whose checks end with `exit`."""

    def __init__(self, *items: Item, policy: SurfacePolicy = EXECUTION, mode: Mode = "guided") -> None:
        self.plan, self.policy = Plan(workflow(*items)), policy
        self.state, self.audit = RunState(), Audit()
        self.tree, self.exit, self.ran = "sha256:aaaaaaaaaaaa", 0, list[str]()
        self.events: list[e.Event] = []
        self.send(StartRun(policy, 0, "sha256:0", "test", PRESETS[mode]))
        if policy.exits == "claimed":
            self.send(EnterActivity(policy, 0, Terms(), "main"))

    def send(self, command: Answerable | StartRun) -> Decided | Refusal:
        outcome = decide(self.plan, self.state, command, self.audit)
        while isinstance(outcome, RunChecks):
            assert not isinstance(command, StartRun)
            results = tuple(self.result(due) for due in outcome.checks)
            command = replace(command, checked=(*command.checked, *results))
            outcome = decide(self.plan, self.state, command, self.audit)
        assert isinstance(outcome, (Decided, Refusal)), outcome
        assert not (isinstance(outcome, Refusal) and outcome.code is Code.GUARD_REFUSED), outcome.about
        events = outcome.kept if isinstance(outcome, Refusal) else outcome.events
        if not (isinstance(outcome, Decided) and outcome.blockers):
            self.state, self.audit = evolved(self.state, events), learned(self.audit, events)
            assert self.audit.variables == self.state.variables
        self.events += events
        return outcome

    def result(self, due: DueCheck) -> CheckResult:
        if due.again and due.valid_for == self.tree:
            return CheckResult(due, None)
        self.ran.append(due.check.id)
        argv = tuple(due.check.run.split())
        return CheckResult(
            due,
            e.CheckRan(
                due.key,
                due.check.id,
                due.definition,
                argv,
                ".",
                "exited",
                1,
                passed=self.exit == 0,
                exit=self.exit,
                output="1 failed" if self.exit else "1 passed",
                tree_before=self.tree,
                tree_after=self.tree,
                reason="expected exit 0" if self.exit else "",
                trusted_by="cli:local",
            ),
        )

    def ack(self, output: Output | None = None, **decisions: Decision) -> Decided | Refusal:
        by_digest: dict[str, Decision] = {}
        if (opened := self.state.visit.open) is not None:
            by_digest |= dict.fromkeys([opened.shown], *decisions.values()) if decisions else {}
        return self.send(
            AcknowledgeStep(
                self.policy,
                0,
                Terms(),
                output or Output(),
                decisions=by_digest,
                step=None if self.policy is EXECUTION else "build",
            )
        )


def test_a_step_is_done_once_its_check_has_passed() -> None:
    run = Run(BUILD, LAST)
    outcome = run.ack()
    assert isinstance(outcome, Decided)
    assert isinstance(outcome.awaited, NeedStep)
    assert outcome.awaited.step == LAST
    assert run.ran == ["tests"]


def test_a_failing_check_blocks_with_its_output_and_is_recorded() -> None:
    run = Run(BUILD, LAST)
    run.exit = 1
    outcome = run.ack()
    assert isinstance(outcome, Decided)
    (blocker,) = outcome.blockers
    assert "Check 'tests' failed (exit 1): expected exit 0. Its output ends:\n1 failed" in blocker.message
    assert [event.passed for event in outcome.events if isinstance(event, e.CheckRan)] == [False]
    run.exit = 0
    assert not isinstance(run.ack(), Refusal)
    assert run.ran == ["tests", "tests"]


def test_all_checks_of_a_step_run_and_none_where_something_else_is_missing() -> None:
    run = Run(replace(BUILD, checks=(TESTS, LINT), hands_in=("notes",)), LAST)
    assert run.ack().blockers  # type: ignore[union-attr]
    assert run.ran == []
    run.ack(Output("Done."))
    assert run.ran == ["tests", "lint"]


def test_in_a_mode_that_never_stops_a_failed_check_is_a_critical_gap() -> None:
    run = Run(BUILD, LAST, mode="never-stop")
    run.exit = 2
    outcome = run.ack()
    assert isinstance(outcome, Decided)
    assert not outcome.blockers
    (gap,) = [event for event in outcome.events if isinstance(event, e.GapRecorded)]
    assert (gap.severity, gap.detail) == ("critical", "check_failed")


@pytest.mark.parametrize("policy", [SESSION, GATED])
def test_a_claim_runs_the_check_and_is_refused_if_it_fails(policy: SurfacePolicy) -> None:
    run = Run(BUILD, LAST, policy=policy)
    command = EnterActivity(policy, 0, Terms(), "after", (Claim("build", Output()), Claim("close", Output())))
    run.exit = 1
    refusal = run.send(command)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.CHECK_FAILED
    assert "1 failed" in str(refusal.about["reason"])
    run.exit = 0
    assert isinstance(run.send(command), Decided)
    assert run.state.activity == "after"


def test_navigation_completes_a_step_only_with_its_check() -> None:
    run = Run(BUILD, LAST, policy=NAVIGATION)
    run.exit = 1
    refusal = run.ack()
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.CHECK_FAILED
    run.exit = 0
    assert isinstance(run.ack(), Decided)


def test_a_gate_shows_the_check_that_ran() -> None:
    run = Run(BUILD, REVIEW, LAST)
    run.ack()
    assert run.state.visit.open is not None
    shown = "Tests: passed (run by the server on files aaaaaaaa: pytest -q, exit 0)"
    assert run.state.visit.open.text == shown


def test_a_check_that_has_not_run_is_said_to_be_a_claim() -> None:
    run = Run(replace(BUILD, checks=(replace(TESTS, run=""),)), REVIEW, LAST)
    run.ack()
    assert run.ran == []
    assert run.state.visit.open is not None
    assert run.state.visit.open.text == "Tests: not run by the server, only claimed by the agent"


def test_files_that_changed_after_the_check_have_it_run_again_and_the_question_asked_again() -> None:
    run = Run(BUILD, REVIEW, LAST)
    run.ack()
    run.tree = "sha256:bbbbbbbbbbbb"
    outcome = run.ack(ok=Decision("ok", "cli"))
    assert isinstance(outcome, Decided)
    assert isinstance(outcome.awaited, NeedAnswer)
    assert run.state.visit.open is not None
    assert "bbbbbbbb" in run.state.visit.open.text
    assert run.ran == ["tests", "tests"]
    assert isinstance(run.ack(ok=Decision("ok", "cli")), Decided)
    assert run.state.visit.open is None
    assert run.ran == ["tests", "tests"]


def test_files_that_no_longer_pass_hold_the_answer_up() -> None:
    run = Run(BUILD, REVIEW, LAST)
    run.ack()
    run.tree, run.exit = "sha256:bbbbbbbbbbbb", 1
    outcome = run.ack(ok=Decision("ok", "cli"))
    assert isinstance(outcome, Decided)
    assert "Check 'tests' failed" in outcome.blockers[0].message
    assert run.state.visit.open is not None


def test_a_walk_to_a_gate_runs_the_checks_before_it() -> None:
    run = Run(BUILD, REVIEW, LAST, policy=SESSION)
    opened = run.send(
        OpenCheckpoint(SESSION, 0, Terms(), "review", "worker", claims=(Claim("build", Output()),))
    )
    assert isinstance(opened, Decided)
    assert run.ran == ["tests"]
    run.tree = "sha256:cccccccccccc"
    answer = ResolveCheckpoint(SESSION, 9_999, Terms(), "agent", "review", "ok", agent="worker")
    refusal = run.send(answer)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.CHECKED_AGAIN
    assert run.state.visit.open is not None
    assert "cccccccc" in run.state.visit.open.text
    assert isinstance(run.send(replace(answer, now=99_999)), Decided)


def test_a_check_applies_only_if_its_condition_holds() -> None:
    from interlock.core.definition.conditions import Compare

    run = Run(replace(BUILD, checks=(replace(TESTS, condition=Compare("code", "==", True)),)), LAST)
    assert isinstance(run.ack(), Decided)
    assert run.ran == []
