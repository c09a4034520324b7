"""Checks: a step that has one is done only with its own passing run, as the workflow defines it (I5)."""

from __future__ import annotations

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.conditions import holds
from interlock.core.definition.workflow import Step
from interlock.core.guard.hearing import I5, Hearing, Verdict
from interlock.core.hashing import check_digest
from interlock.core.run import events as e


def ran(hearing: Hearing, event: e.CheckRan) -> Verdict:
    """A check was run as the workflow defines it, was trusted, and passed by its own exit status."""
    defined = (check for check in hearing.plan.workflow.checks() if check.id == event.check)
    check = next((it for it in defined if _digest(hearing, it) == event.definition), None)
    if check is None:
        yield I5(f"check '{event.check}' was run by another definition than the workflow's")
    elif event.passed and (event.ended, event.exit) != ("exited", check.expected.exit):
        yield I5(f"check '{event.check}' is recorded as passed, and ended otherwise: {event.outcome}")
    elif event.ended != "not_started" and not event.is_trusted:
        yield I5(f"check '{event.check}' was run without a user's trust")


def passed(hearing: Hearing, step: Step, key: str) -> Verdict:
    """Each check that applies has passed for this very instance of the step, or its gap is recorded."""
    for check in step.checks:
        if not check.run or not holds(check.condition, hearing.scope):
            continue
        last = hearing.audit.checks.get(check.id)
        is_passed = last is not None and last.passed and last.definition == _digest(hearing, check)
        if is_passed and (key, check.id) in hearing.ran:
            continue
        if not (hearing.audit.applied.never_stops and ("check_failed", key) in hearing.gaps):
            yield I5(f"step '{key}' is completed without its check '{check.id}'")


def _digest(hearing: Hearing, check: CommandCheck) -> str:
    return check_digest(hearing.plan.workflow.id, check)
