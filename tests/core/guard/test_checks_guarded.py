"""The guard and checks: no step with a check is done without its own passing run (I5)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity, Step, Workflow
from interlock.core.guard.audit import Audit, learned
from interlock.core.guard.inspection import inspect
from interlock.core.hashing import check_digest
from interlock.core.run import events as e
from interlock.core.run.preferences import Preferences

TESTS = CommandCheck("tests", "pytest -q")
WORKFLOW = Workflow(
    "team.work", "Work", "", "1", (Activity("main", "Main", (Step("build", "Build", checks=(TESTS,)),)),)
)
RAN = e.CheckRan(
    "build",
    "tests",
    check_digest("team.work", TESTS),
    ("pytest", "-q"),
    ".",
    "exited",
    1,
    passed=True,
    exit=0,
    trusted_by="cli:local",
)
DONE = e.StepCompleted("build", "build", "end")


def judged(*events: e.Event) -> str:
    """Judge events of a run that has come to the step."""
    plan = Plan(WORKFLOW)
    started = e.RunStarted("team.work", "sha256:0", "test", Preferences(), 0)
    audit = learned(Audit(), [started, e.ActivityEntered("main", 1, plan.program("main").first, 0)])
    following = plan.program("main").after("step:build")
    violation = inspect(
        plan,
        audit,
        [replace(event, next=following) if isinstance(event, e.StepCompleted) else event for event in events],
    )
    return violation.text if violation else ""


def test_a_step_is_done_with_its_passing_check() -> None:
    assert judged(RAN, DONE) == ""


def test_a_failed_check_alone_is_recorded() -> None:
    assert judged(replace(RAN, passed=False, exit=1)) == ""


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([DONE], "completed without its check 'tests'"),
        ([replace(RAN, passed=False, exit=1), DONE], "completed without its check"),
        ([RAN, replace(RAN, passed=False, exit=1), DONE], "completed without its check"),
        ([replace(RAN, key="review"), DONE], "completed without its check"),
        ([DONE, RAN], "completed without its check"),
        ([replace(RAN, definition="sha256:other"), DONE], "another definition"),
        ([replace(RAN, check="lint"), DONE], "another definition"),
        ([replace(RAN, exit=1), DONE], "ended otherwise: exit 1"),
        ([replace(RAN, ended="timed_out", exit=None), DONE], "ended otherwise: timed out"),
        ([replace(RAN, trusted_by=""), DONE], "without a user's trust"),
        ([replace(RAN, trusted_by="agent:local"), DONE], "without a user's trust"),
        ([replace(RAN, trusted_by="elicitation:local"), DONE], "without a user's trust"),
        ([replace(RAN, trusted_by="server:local"), DONE], "without a user's trust"),
        ([replace(RAN, trusted_by="nobody:cli"), DONE], "without a user's trust"),
        ([replace(RAN, trusted_by="", passed=False, exit=1)], "without a user's trust"),
        ([replace(RAN, trusted_by="", passed=False, exit=None, ended="not_started")], ""),
        (
            [RAN, e.GapRecorded("critical", "contract_violation", "check_failed", "", "build"), DONE],
            "",
        ),
    ],
)
def test_what_the_guard_says(events: list[e.Event], why: str) -> None:
    assert why in judged(*events)


def test_a_gap_is_enough_only_in_a_mode_that_never_stops() -> None:
    gap = e.GapRecorded("critical", "contract_violation", "check_failed", "", "build")
    failed = replace(RAN, passed=False, exit=1)
    never = e.TermsApplied("auto", "strict", "full_auto_never_stop")
    loosened = e.PreferencesChanged(Preferences("full_auto_never_stop"), channel="cli")
    assert "without its check" in judged(failed, gap, DONE)
    assert judged(loosened, never, failed, gap, DONE) == ""
