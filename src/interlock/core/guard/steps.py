"""Steps: each is done where it is due, with what it asks of the user and what it must hand in (I1, I5)."""

from __future__ import annotations

from interlock.core.definition.conditions import holds
from interlock.core.definition.expressions import artifact_name
from interlock.core.definition.program import DoStep
from interlock.core.definition.workflow import Step
from interlock.core.guard import checking, writing
from interlock.core.guard.hearing import I1, I5, Hearing, Verdict
from interlock.core.run import events as e


def step(hearing: Hearing, event: e.StepCompleted | e.StepSkipped) -> Verdict:
    """A step is done, or passed over as optional, where it is due."""
    op = hearing.due()
    if not isinstance(op, DoStep) or event.key != hearing.audit.instance(op.step.id):
        yield I1(f"step '{event.key}' is passed where '{hearing.audit.next}' is due")
        return
    step, following = op.step, hearing.program.after(op.key)
    unconfirmed = hearing.program.after(following) if following == f"confirm:{step.id}" else following
    if isinstance(event, e.StepSkipped):
        if step.required and holds(step.condition, hearing.scope):
            yield I1(f"step '{event.key}' is required and was skipped")
        if event.next not in (following, unconfirmed):
            yield I1(f"'{event.next}' does not follow step '{event.key}'")
        return
    if event.next != following:
        yield I1(f"'{event.next}' does not follow step '{event.key}'")
    yield from _inputs(hearing, step, event.key)
    yield from _outputs(hearing, step, event)
    yield from checking.passed(hearing, step, event.key)
    yield from writing.actions(hearing, step.actions, event.sets, f"step '{event.key}'")
    hearing.given = {}
    hearing.completed = step.id


def _inputs(hearing: Hearing, step: Step, key: str) -> Verdict:
    for need in step.user_input:
        asked = hearing.audit.instance(step.input_id(need))
        preferences = hearing.audit.applied
        assumed = not preferences.guided and need.is_assumable
        if asked in hearing.given and (not need.options or hearing.given[asked] == need.accepted):
            continue
        if (preferences.never_stops or assumed) and (need.reason, key) in hearing.gaps:
            continue
        yield I1(f"step '{key}' is completed without the answer to '{asked}'")


def _outputs(hearing: Hearing, step: Step, event: e.StepCompleted) -> Verdict:
    required = [contract.artifact for contract in step.contracts if contract.required]
    missing = [name for name in dict.fromkeys([*required, *step.hands_in]) if name not in event.brought]
    if missing and not (
        hearing.audit.applied.never_stops and ("missing_required_output", event.key) in hearing.gaps
    ):
        yield I5(f"step '{event.key}' is completed without {', '.join(missing)}")
    handed_in = {artifact_name(contract.artifact) for contract in step.contracts}
    if any(fields for name, fields in event.artifacts.items() if name not in handed_in):
        yield I5(f"step '{event.key}' hands in an artifact that it has no contract for")
