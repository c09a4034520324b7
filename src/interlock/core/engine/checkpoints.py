"""Checkpoints that are opened, answered and resumed from by hand (rules 15, 16, 23, 24)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.conditions import describe, holds
from interlock.core.definition.program import EnterLoop, Plan, RepeatLoop
from interlock.core.definition.workflow import Gate, Step
from interlock.core.engine.claims import Walk
from interlock.core.engine.decisions import counts, resolved, undecided_gap
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import (
    FoundGate,
    auto_advances,
    find_gate,
    gate_ids,
    is_answered,
    pending_gates,
    shown,
)
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, OpenCheckpoint, ResolveCheckpoint, ResumeCheckpoint
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, Refusal
from interlock.core.run.state import OpenGate, RunState, instance
from interlock.core.values import Json


def open_checkpoint(plan: Plan, state: RunState, command: OpenCheckpoint) -> Decided | Refusal:
    """Put a gate's question; steps ahead of a bound gate are thereby claimed."""
    draft = _draft(plan, state, command)
    if draft.state.open is not None:
        about = {"checkpoint": draft.state.open.gate, "requested": command.gate}
        return Refusal(Code.CHECKPOINT_ALREADY_ACTIVE, about)
    if draft.state.activity is None:
        return Refusal(Code.NO_ACTIVITY)
    if draft.state.finished:
        return Refusal(Code.RUN_FINISHED)
    found = find_gate(plan, draft.state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    key = _instance(draft, found, command)
    if isinstance(key, Refusal):
        return key
    draft.record(e.GateOpened(key, found.gate.id, command.now, shown(found.gate), command.agent))
    return draft.decided()


def _instance(draft: Draft, found: FoundGate, command: OpenCheckpoint) -> str | Refusal:
    """Find which instance of the gate is meant: one answer per iteration of its loop (rule 16)."""
    state, gate = draft.state, found.gate
    key = instance(state, gate.id)
    if command.iteration is not None and _is_past(state, command.iteration):
        return _already(state, gate, _iteration_key(state, gate, command.iteration))
    answered = is_answered(draft.plan, state, gate)
    if answered and not _asks_again(state, key, command):
        return _already(state, gate)
    if not answered and not _must_be_reached(draft, found):
        return key
    reached = Walk(draft, command, gate.id).go()
    if isinstance(reached, Refusal):
        return reached
    if not isinstance(reached, NeedAnswer) or _is_another(draft.state, command.iteration):
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate.id})
    return reached.key


def _is_past(state: RunState, iteration: int) -> bool:
    return bool(state.frames) and iteration <= state.frames[-1].iteration


def _is_another(state: RunState, iteration: int | None) -> bool:
    return bool(state.frames) and iteration is not None and iteration != state.frames[-1].iteration + 1


def _asks_again(state: RunState, key: str, command: OpenCheckpoint) -> bool:
    """The agent that asked and resumed asks about the next iteration; another one repeats the question."""
    if not state.frames or (command.iteration or 0) == state.frames[-1].iteration + 1:
        return False
    before = state.resumed
    return command.iteration is not None or (
        before is not None and before.key == key and before.agent == command.agent
    )


def _iteration_key(state: RunState, gate: Gate, iteration: int) -> str:
    inner = replace(state.frames[-1], iteration=iteration - 1)
    return instance(replace(state, frames=(*state.frames[:-1], inner)), gate.id)


def _draft(
    plan: Plan, state: RunState, command: OpenCheckpoint | ResolveCheckpoint | ResumeCheckpoint
) -> Draft:
    draft = Draft(plan, state, command.policy, command.now)
    if command.variables:
        draft.record(e.ContextSet(command.variables))
    return draft


def _not_found(draft: Draft, gate_id: str) -> Refusal:
    listed = list(gate_ids(draft.plan, draft.state))
    about = {"checkpoint": gate_id, "activity": draft.state.activity, "checkpoints": listed}
    return Refusal(Code.CHECKPOINT_NOT_FOUND, about)


def _must_be_reached(draft: Draft, found: FoundGate) -> bool:
    """A gate bound to a step, or inside a loop, opens when it is reached; others may open earlier."""
    if not holds(found.gate.condition, draft.plan.scope(draft.state.variables)):
        return False
    keys = list(draft.plan.program(draft.state.activity or "").ops)
    if draft.state.next_key not in keys:
        return False
    target, here = keys.index(found.at), keys.index(draft.state.next_key)
    if _loop_around(draft, found.at):
        return True
    return target >= here and found.gate.bound_to is not None


def _loop_around(draft: Draft, key: str) -> bool:
    depth = 0
    for op in draft.plan.program(draft.state.activity or "").ops.values():
        depth += isinstance(op, EnterLoop) - isinstance(op, RepeatLoop)
        if op.key == key:
            return depth > 0
    return False


def _already(state: RunState, gate: Gate, key: str = "") -> Refusal:
    key = key or instance(state, gate.id)
    option = state.answers.get(key) or state.answers.get(gate.id)
    about = {"checkpoint": gate.id, "option": option or None, "instance": key}
    return Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)


def resolve_checkpoint(plan: Plan, state: RunState, command: ResolveCheckpoint) -> Decided | Refusal:
    """Answer the open gate, or on `gated` any pending one, in exactly one way."""
    draft = _draft(plan, state, command)
    if command.policy.gates == "opened":
        draft.settle()
    target = _target(draft, command)
    if isinstance(target, Refusal):
        return target
    gate, opened = target
    decision = _chosen(draft, gate, opened, command)
    if isinstance(decision, Refusal):
        return decision
    how: e.Resolved = "dismissed" if decision is None else "chosen"
    if command.auto_advance:
        how = "auto_advanced"
    draft.record(
        resolved(
            gate,
            opened.key,
            decision,
            command.now,
            how=how,
            agent=opened.agent,
            again=_again(draft, gate, decision),
            resumable=bool(opened.agent),
        )
    )
    if decision is not None:
        confirms = _confirmed_by(draft, gate)
        draft.record(*undecided_gap(draft.state, NeedAnswer(opened.key, gate, 0, confirms), decision))
    return draft.decided()


def _again(draft: Draft, gate: Gate, decision: Decision | None) -> str | None:
    confirms = _confirmed_by(draft, gate)
    revising = decision is not None and decision.option == "revise"
    return f"step:{confirms.id}" if confirms and revising else None


def _confirmed_by(draft: Draft, gate: Gate) -> Step | None:
    found = find_gate(draft.plan, draft.state, gate.id)
    return found.confirms if found else None


def _target(draft: Draft, command: ResolveCheckpoint) -> tuple[Gate, OpenGate] | Refusal:
    state = draft.state
    if state.open is not None and command.gate in (None, state.open.gate):
        found = find_gate(draft.plan, state, state.open.gate)
        assert found is not None
        return found.gate, state.open
    if command.gate is None:
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE)
    found = find_gate(draft.plan, state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    pending = pending_gates(draft.plan, state)
    optional = not found.gate.required and found.gate.id not in state.answers
    if (
        command.policy.gates == "opened"
        or command.policy.name == "session"
        or not (optional or found.gate in pending)
    ):
        return _not_active(state, found.gate, pending)
    # pending from entry, by id alone: one answer serves every iteration of a loop (rule 15)
    return found.gate, OpenGate(found.gate.id, found.gate.id, state.entered_at)


def _not_active(state: RunState, gate: Gate, pending: tuple[Gate, ...]) -> Refusal:
    if gate.id in state.answers or instance(state, gate.id) in state.answers:
        return _already(state, gate)
    listed = [other.id for other in pending]
    return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate.id, "pending": listed})


def _chosen(
    draft: Draft, gate: Gate, opened: OpenGate, command: ResolveCheckpoint
) -> Decision | Refusal | None:
    modes = (command.option is not None) + command.auto_advance + command.condition_not_met
    if modes != 1:
        return Refusal(Code.RESOLUTION_MODE)
    if command.auto_advance:
        return _auto(gate, command.now - opened.opened_at)
    if command.condition_not_met:
        return _dismissed(draft, gate)
    return _option(draft, gate, command, command.now - opened.opened_at)


def _option(draft: Draft, gate: Gate, command: ResolveCheckpoint, elapsed: int) -> Decision | Refusal:
    least = command.terms.min_response_ms if command.policy.exits == "claimed" else 0
    if command.channel == "agent" and elapsed < least:
        about: dict[str, Json] = {"checkpoint": gate.id, "elapsed_ms": elapsed, "minimum_ms": least}
        return Refusal(Code.TOO_FAST, about)
    option = command.option or ""
    if gate.option(option) is None:
        listed = [valid.id for valid in gate.options]
        return Refusal(Code.OPTION_NOT_FOUND, {"checkpoint": gate.id, "option": option, "options": listed})
    decided = command.decisions.get(gate.id)
    if decided is not None and decided.option != option:
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id, "decided": decided.option})
    decision = decided or Decision(option, command.channel, command.client, command.note)
    if not counts(decision, command.terms, draft.state.preferences):
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id})
    return decision


def _auto(gate: Gate, elapsed: int) -> Decision | Refusal:
    if gate.default_option is None or gate.auto_advance_ms is None:
        return Refusal(Code.NOT_AUTO_ADVANCING, {"checkpoint": gate.id})
    if not auto_advances(gate):
        return Refusal(Code.NOT_AUTO_ADVANCING, {"checkpoint": gate.id, "blocking": True})
    if elapsed < gate.auto_advance_ms:
        about: dict[str, Json] = {
            "checkpoint": gate.id,
            "elapsed_ms": elapsed,
            "minimum_ms": gate.auto_advance_ms,
        }
        return Refusal(Code.TIMER_RUNNING, about)
    return Decision(gate.default_option, "server", note="the time to answer has passed")


def _dismissed(draft: Draft, gate: Gate) -> Refusal | None:
    if gate.condition is None:
        return Refusal(Code.NOT_CONDITIONAL, {"checkpoint": gate.id})
    if holds(gate.condition, draft.plan.scope(draft.state.variables)):
        about = {"checkpoint": gate.id, "condition": describe(gate.condition)}
        return Refusal(Code.CONDITION_HOLDS, about)
    return None


def resume_checkpoint(plan: Plan, state: RunState, command: ResumeCheckpoint) -> Decided | Refusal:
    """Let the agent that asked go on, once its checkpoint is answered."""
    draft = _draft(plan, state, command)
    if state.open is not None:
        return Refusal(Code.CHECKPOINT_STILL_ACTIVE, {"checkpoint": state.open.gate})
    if state.resolution is None:
        return Refusal(Code.CHECKPOINT_NOT_YIELDED)
    draft.record(e.GateResumed(state.resolution.key, state.resolution.gate, command.agent))
    return draft.decided()
