"""Checks of steps, and those that gates show: which must run before an outcome counts, and what fails.

The core runs nothing. It says what must run, and the same command is decided again with the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.expressions import CHECKS
from interlock.core.definition.program import Plan, gates_of
from interlock.core.definition.workflow import Gate, Step
from interlock.core.hashing import check_digest
from interlock.core.run import events as e
from interlock.core.run.commands import Checkable, CheckResult, DueCheck
from interlock.core.run.keys import item_of
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.reasons import Blocker, BlockerCode, WorkflowStep, as_gap
from interlock.core.run.state import RunState
from interlock.core.values import Json

CHECK_GAP = "check_failed"
BY_THE_USER = "The user must allow the server to run this check."
FIX_AND_REPEAT = "Correct what the check finds, and acknowledge again: the server runs it again."
MOST_OF_OUTPUT = 300  # characters of a check's output in a blocker, whose text is short


def checks_of(
    plan: Plan, step: Step, key: str, scope: Scope, checked: Sequence[CheckResult]
) -> tuple[tuple[e.CheckRan, ...], tuple[DueCheck, ...]]:
    """Separate the checks of a step that were run for this command from those that are still to run."""
    applicable = [check for check in step.checks if check.run and holds(check.condition, scope)]
    due = [DueCheck(key, check, check_digest(plan.workflow.id, check)) for check in applicable]
    results = {(result.due.key, result.due.definition): result.ran for result in checked}
    ran = tuple(result for one in due if (result := results.get((one.key, one.definition))) is not None)
    return ran, tuple(one for one in due if (one.key, one.definition) not in results)


def checks_shown(
    plan: Plan, state: RunState, command: Checkable, outcome: Decided | Refusal
) -> Iterator[DueCheck]:
    """Yield the checks that an outcome shows or has answered, and that ran before this command.

    A result is valid for the files that it was run on: it must still hold where a question shows it.
    """
    activity, known = state.activity, {(result.due.key, result.due.definition) for result in command.checked}
    fresh: set[str] = set()
    for event in outcome.kept if isinstance(outcome, Refusal) else outcome.events:
        match event:
            case e.ActivityEntered():
                activity = event.activity
            case e.CheckRan():
                fresh.add(event.check)
            case e.QuestionShown(input=False) | e.GateResolved(how="chosen" | "auto_advanced"):
                for name in _shown_by(plan, activity, event.gate):
                    last = state.checks.get(name)
                    if name in fresh or last is None or (event.key, last.definition) in known:
                        continue
                    check = next(check for check in plan.workflow.checks() if check.id == name)
                    yield DueCheck(event.key, check, last.definition, again=True, valid_for=last.tree)


def _shown_by(plan: Plan, activity_id: str | None, gate_id: str) -> list[str]:
    """Name the checks that a gate's question shows."""
    activity = plan.workflow.activity(activity_id)
    gates: list[Gate] = gates_of(activity) if activity is not None else []
    paths = (path for gate in gates if gate.id == gate_id for path in gate.text_paths())
    return [name for root, _, name in (path.partition(".") for path in paths) if root == CHECKS]


def failed_check(ran: e.CheckRan) -> Blocker:
    """Say how a check ended, and what was expected; nobody but the user helps one that is not trusted."""
    pointer = WorkflowStep(item_of(ran.key))
    if not ran.is_trusted:
        text = f"Check '{ran.check}' was not run: {ran.reason}"
        return Blocker(BlockerCode.USER_ONLY_DEPENDENCY, pointer, text, BY_THE_USER)
    end = ran.output[-MOST_OF_OUTPUT:]
    shown = f" Its output ends:\n{end}" if end else ""
    text = f"Check '{ran.check}' failed ({ran.outcome}): {ran.reason}.{shown}"
    return Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, pointer, text, FIX_AND_REPEAT)


def check_refusal(failed: e.CheckRan) -> Refusal:
    """Refuse what a failed check holds up, on a surface that keeps no blocked attempts."""
    about: dict[str, Json] = {"check": failed.check, "reason": failed_check(failed).message}
    return Refusal(Code.CHECK_FAILED, {**about, "for_user": not failed.is_trusted})


def check_gap(failed: e.CheckRan) -> e.GapRecorded:
    """The critical gap of a mode that does not stop for a failed check."""
    gap = as_gap(failed_check(failed), "critical", CHECK_GAP)
    return e.GapRecorded("critical", "contract_violation", CHECK_GAP, gap.summary, failed.key)


def unrun_check(step: Step, due: DueCheck) -> Blocker:
    """Say that a check is still to run."""
    text = f"Check '{due.check.id}' is run by the server when the step is done: {due.check.run}"
    return Blocker(BlockerCode.INVALID_REQUIRED_OUTPUT, WorkflowStep(step.id), text)
