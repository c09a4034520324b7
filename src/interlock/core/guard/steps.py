"""Steps: each is done where it is due, with what it asks of the user, hands in and has checked (I1, I5)."""

from __future__ import annotations

from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.conditions import holds
from interlock.core.definition.expressions import artifact_name
from interlock.core.definition.program import DoStep, confirmation_key
from interlock.core.definition.workflow import Step
from interlock.core.guard import writing
from interlock.core.guard.hearing import I1, I5, Hearing, Verdict
from interlock.core.hashing import check_digest
from interlock.core.run import events as e


def closed(hearing: Hearing, event: e.StepCompleted | e.StepSkipped) -> Verdict:
    """A step is done, or passed over as optional, where it is due."""
    op = hearing.due()
    if not isinstance(op, DoStep) or event.key != hearing.audit.instance(op.step.id):
        yield I1(f"step '{event.key}' is passed where '{hearing.visit.next}' is due")
        return
    step, following = op.step, hearing.program.after(op.key)
    is_skipped = isinstance(event, e.StepSkipped)
    is_confirmed = following == confirmation_key(step.id)
    unconfirmed = hearing.program.after(following) if is_skipped and is_confirmed else following
    if event.next not in (following, unconfirmed):
        yield I1(f"'{event.next}' does not follow step '{event.key}'")
    if isinstance(event, e.StepSkipped):
        if step.required and holds(step.condition, hearing.scope):
            yield I1(f"step '{event.key}' is required and was skipped")
        return
    yield from _inputs(hearing, step, event.key)
    yield from _outputs(hearing, step, event)
    yield from _checks(hearing, step, event.key)
    yield from writing.actions(hearing, step.actions, event.sets, f"step '{event.key}'")
    hearing.given = {}
    hearing.completed = step.id


def _inputs(hearing: Hearing, step: Step, key: str) -> Verdict:
    """Each answer that only the user can give has come with the step, and approves it."""
    for need in step.user_input:
        asked = hearing.audit.instance(step.input_id(need))
        if asked in hearing.given and (not need.options or hearing.given[asked] == need.accepted):
            continue
        is_assumed = not hearing.terms.guided and need.is_assumable
        if not ((hearing.terms.never_stops or is_assumed) and (need.reason, key) in hearing.gaps):
            yield I1(f"step '{key}' is completed without the answer to '{asked}'")


def _outputs(hearing: Hearing, step: Step, event: e.StepCompleted) -> Verdict:
    """All that the step must hand in has come, and no artifact that it has no contract for."""
    required = {contract.artifact for contract in step.contracts if contract.required}
    missing = sorted((required | {*step.hands_in}).difference(event.brought))
    is_gap = hearing.terms.never_stops and ("missing_required_output", event.key) in hearing.gaps
    if missing and not is_gap:
        yield I5(f"step '{event.key}' is completed without {', '.join(missing)}")
    handed_in = {artifact_name(contract.artifact) for contract in step.contracts}
    if any(fields for name, fields in event.artifacts.items() if name not in handed_in):
        yield I5(f"step '{event.key}' hands in an artifact that it has no contract for")


def _checks(hearing: Hearing, step: Step, key: str) -> Verdict:
    """Each check that applies has passed for this very instance of the step, or its gap is recorded."""
    is_gap = hearing.terms.never_stops and ("check_failed", key) in hearing.gaps
    for check in step.checks if not is_gap else ():
        last = hearing.audit.checks.get(check.id)
        is_passed = last is not None and last.passed and last.definition == _digest(hearing, check)
        is_due = check.run and holds(check.condition, hearing.scope)
        if is_due and not (is_passed and (key, check.id) in hearing.ran):
            yield I5(f"step '{key}' is completed without its check '{check.id}'")


def checked(hearing: Hearing, event: e.CheckRan) -> Verdict:
    """A check was run as the workflow defines it, was trusted, and passed by its own exit status."""
    defined = (check for check in hearing.workflow.checks() if check.id == event.check)
    check = next((it for it in defined if _digest(hearing, it) == event.definition), None)
    if check is None:
        yield I5(f"check '{event.check}' was run by another definition than the workflow's")
    elif event.passed and (event.ended, event.exit) != ("exited", check.expected.exit):
        yield I5(f"check '{event.check}' is recorded as passed, and ended otherwise: {event.outcome}")
    elif event.ended != "not_started" and not event.is_trusted:
        yield I5(f"check '{event.check}' was run without a user's trust")


def _digest(hearing: Hearing, check: CommandCheck) -> str:
    return check_digest(hearing.workflow.id, check)
