"""Gates: finding them, when they apply, and what exactly was asked."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.program import ENTRANCE, AskGate, ConfirmStep, Plan
from interlock.core.definition.prompts import interpolate
from interlock.core.definition.workflow import Gate, Option, Step, Workflow
from interlock.core.hashing import digest_of
from interlock.core.run.state import RunState, instance


class FoundGate(Struct, frozen=True):
    """A gate of the current activity, the key of its operation, and the step it confirms, if any."""

    gate: Gate
    key: str
    confirms: Step | None = None


def find_gate(plan: Plan, state: RunState, gate_id: str) -> FoundGate | None:
    """Find a gate of the current activity by id; checkpoints before confirmations."""
    if state.activity is None:
        gate = entrance_gate(plan.workflow)
        return FoundGate(gate, "") if gate.id == gate_id else None
    ops = plan.program(state.activity).ops.values()
    for op in ops:
        if isinstance(op, AskGate) and op.gate.id == gate_id:
            return FoundGate(op.gate, op.key)
    for op in ops:
        if isinstance(op, ConfirmStep) and gate_id in (op.gate.id, op.step.id):
            return FoundGate(op.gate, op.key, op.step)
    return None


def gate_ids(plan: Plan, state: RunState) -> tuple[str, ...]:
    """Name the gates of the current activity, for error messages."""
    if state.activity is None:
        return ()
    ops = plan.program(state.activity).ops.values()
    return tuple(op.gate.id for op in ops if isinstance(op, (AskGate, ConfirmStep)))


def pending_gates(plan: Plan, state: RunState) -> tuple[Gate, ...]:
    """The required gates of the activity that have no answer yet: what `gated` calls pending."""
    if state.activity is None or state.exit_to is not None:
        return ()
    asked = [op for op in plan.program(state.activity).ops.values() if isinstance(op, (AskGate, ConfirmStep))]
    guided = state.preferences.guided
    return tuple(
        op.gate
        for op in asked
        if not is_answered(plan, state, op.gate)
        and (
            op.gate.required
            if isinstance(op, AskGate)
            else guided and needs_confirmation(plan, state, op.step)
        )
    )


def is_answered(plan: Plan, state: RunState, gate: Gate) -> bool:
    """Say whether the gate has an answer; a dismissal lasts only while the condition stays false."""
    answer = state.answers.get(instance(state, gate.id), state.answers.get(gate.id))
    if answer is None:
        return False
    dismissed = answer == "" and gate.condition is not None
    return not (dismissed and holds(gate.condition, plan.scope(state.variables)))


def needs_confirmation(plan: Plan, state: RunState, step: Step) -> bool:
    """Say whether the step's own rule asks for a confirmation now."""
    if isinstance(step.confirm, bool):
        return step.confirm
    return holds(step.confirm, plan.scope(state.variables))


def auto_advances(gate: Gate) -> bool:
    """Say whether the gate may answer itself after a time (rule 24)."""
    return not gate.blocking and gate.default_option is not None and gate.auto_advance_ms is not None


def entrance_gate(workflow: Workflow) -> Gate:
    """The first gate of a workflow of independent activities: which one to enter (rule 35)."""
    return Gate(
        id=ENTRANCE,
        name="Choose an activity",
        message=f"'{workflow.name}' has independent activities. Which one fits the goal?",
        options=tuple(
            Option(activity.id, activity.name, activity.problem or activity.description)
            for activity in workflow.activities
        ),
    )


def worded(gate: Gate, scope: Scope) -> Gate:
    """The gate with its question as the user reads it."""
    return replace(gate, message=interpolate(gate.message, scope))


def shown(gate: Gate) -> str:
    """The digest of the question as it was shown; a decision is bound to it (rule 26)."""
    return digest_of(msgspec.json.encode([gate.id, gate.message, gate.options]))
