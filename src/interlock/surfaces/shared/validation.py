"""What the documents call validation: warnings that never block and say what to correct.

Steps in loops, steps whose condition is false, and steps after an early exit do not count as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.core.definition.condition_uses import exit_conditions
from interlock.core.definition.conditions import describe, holds
from interlock.core.definition.workflow import Step, Workflow
from interlock.core.run.output import Output
from interlock.ledger.runs.position import Position
from interlock.surfaces.arguments import InvalidArgument, read_output
from interlock.surfaces.shared.replies import as_json
from interlock.surfaces.shared.session_params import ActivityDone, StepDone

MOST_NAMED = 50


def step_manifest(position: Position, manifest: Sequence[StepDone] | None) -> Iterator[str]:
    """Compare the steps that are claimed with those of the activity that is left."""
    activity = position.plan.workflow.activity(position.state.visit.activity)
    if activity is None:
        return
    state, steps = position.state, {step.id for step in activity.steps()}
    claimed = {step.step_id: None for step in manifest or ()}
    scope, done = position.plan.scope(state.variables), set(state.visit.done)
    outside_loops = (item for item in activity.items if isinstance(item, Step))
    due = {
        step.id: None
        for step in outside_loops
        if (step.required and holds(step.condition, scope)) or step.id in done
    }  # a step that is done was due when its condition held
    missing = [step for step in due if step not in claimed and not state.has_report(step)]
    if not manifest:
        if (steps and not any(map(state.has_report, steps))) or (missing and not state.visit.exit_to):
            yield (
                f"No step_manifest provided for previous activity '{activity.id}'. "
                "Include a manifest to enable step completion validation."
            )
        return
    if missing and not state.visit.exit_to:
        yield f"Missing steps in manifest: [{', '.join(missing)}]"
    yield from _order_mismatch(due, claimed)
    empty = [
        step.step_id
        for step in manifest
        if not (step.output.strip() if isinstance(step.output, str) else step.output)
        and not state.has_report(step.step_id)
    ]
    for step_id in empty[:MOST_NAMED]:
        yield f"Step '{step_id}' has empty output"
    if len(empty) > MOST_NAMED:
        yield f"{len(empty) - MOST_NAMED} more steps have empty output"


def _order_mismatch(due: Mapping[str, None], claimed: Mapping[str, None]) -> Iterator[str]:
    expected_order = [step for step in due if step in claimed]
    claimed_order = [step for step in claimed if step in due]
    for index, (expected, step) in enumerate(zip(expected_order, claimed_order, strict=True)):
        if expected != step:
            yield f"Step order mismatch at position {index}: expected '{expected}' but got '{step}'"
            return


def activity_manifest(workflow: Workflow, manifest: Sequence[ActivityDone] | None) -> Iterator[str]:
    """Advise on the summary of activities done so far."""
    if manifest is None:
        return
    if not manifest:
        yield "Empty activity_manifest provided. Omit the parameter if no activities have been completed."
    conditions = set[str]()
    for activity in workflow.activities:
        conditions.update(describe(use.condition) for use in exit_conditions(activity))
    for done in manifest:
        if workflow.activity(done.activity_id) is None:
            yield f"Activity manifest references unknown activity '{done.activity_id}'"
        if not done.outcome.strip():
            yield f"Activity '{done.activity_id}' has empty outcome"
        claimed = done.transition_condition
        if claimed and claimed != "default" and claimed not in conditions:
            yield (
                f"Activity '{done.activity_id}' claims transition condition '{claimed}' "
                "not found in workflow transitions"
            )


def output_of(done: StepDone) -> Output | InvalidArgument:
    """Read the output of a step in a manifest: text, notes and artifacts, or any value as text."""
    match done.output:
        case str() as text:
            return Output(text.strip())
        case dict() as members if {"kind", "artifacts", "notesMarkdown"} & members.keys():
            return read_output(members)
        case None:
            return Output()
        case other:
            return Output(as_json(other))
