"""Checkpoints that are opened, answered and resumed from by hand (rules 15, 16, 23, 24)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.conditions import describe, holds
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Gate
from interlock.core.engine.claims import Walk, take_with_claims
from interlock.core.engine.decisions import counts, inbox_only, resolved, undecided_gap
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import (
    FoundGate,
    answerable_early,
    auto_advances,
    find_gate,
    gate_ids,
    is_answered,
    loops_around,
    pending_gates,
    question_of,
    question_shown,
)
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, OpenCheckpoint, ResolveCheckpoint, ResumeWorker
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, Refusal
from interlock.core.run.state import OpenGate, RunState, instance
from interlock.core.values import Json

CLOCKS_DIFFER_MS = 60_000  # at most, on machines that share a store


def open_checkpoint(plan: Plan, state: RunState, command: OpenCheckpoint) -> Decided | Refusal:
    """Ask a gate's question; steps ahead of a bound gate are thereby claimed."""
    draft = Draft(plan, state, command.policy, command.now)
    take_with_claims(draft, command)
    if state.open is not None and state.open.gate != command.gate:
        draft.take_expired_open()
    if (opened := draft.state.open) is not None:
        about = {"checkpoint": opened.gate, "instance": opened.key, "requested": command.gate}
        return Refusal(Code.CHECKPOINT_ALREADY_ACTIVE, about)
    if draft.state.activity is None:
        return Refusal(Code.NO_ACTIVITY)
    if draft.state.finished:
        return Refusal(Code.RUN_FINISHED)
    found = find_gate(plan, draft.state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    walk = Walk(draft, command, found.gate.id)
    key = _instance_meant(walk, found, command)
    if isinstance(key, Refusal):
        return key
    walk.report()
    draft.record(
        question_shown(
            plan,
            draft.state,
            found.gate,
            key,
            command.now,
            command.policy.name,
            confirms=found.confirms,
            agent=command.agent,
        )
    )
    return draft.decided()


def _not_found(draft: Draft, gate_id: str) -> Refusal:
    listed = list(gate_ids(draft.plan, draft.state))
    about = {"checkpoint": gate_id, "activity": draft.state.activity, "checkpoints": listed}
    return Refusal(Code.CHECKPOINT_NOT_FOUND, about)


def _instance_meant(walk: Walk, found: FoundGate, command: OpenCheckpoint) -> str | Refusal:
    """Find the instance of the gate that is meant: without a number the next unanswered one (rule 16)."""
    draft, gate, wanted = walk.draft, found.gate, command.iteration
    plan = draft.plan
    loops = loops_around(plan, draft.state, found)
    here = replace(draft.state, frames=draft.state.frames[: len(loops)])
    about: dict[str, Json] = {"checkpoint": gate.id}
    if [frame.loop for frame in here.frames] != loops:  # its loop has yet to begin, or is over
        if wanted is not None and len(loops) == 1:
            about["instance"] = f"{loops[0]}@{wanted - 1}::{gate.id}"
        return _reached(walk, command, Refusal(Code.CHECKPOINT_NOT_ACTIVE, about))
    if loops and wanted is not None and wanted <= here.frames[-1].iteration:
        inner = replace(here.frames[-1], iteration=wanted - 1)
        earlier = replace(here, frames=(*here.frames[:-1], inner))
        return _already_answered(here, gate, instance(earlier, gate.id))
    key, waiting = instance(here, gate.id), here.yielded.get(command.agent)
    if not is_answered(plan, here, gate):
        in_place = _opens_in_place(draft, found, loops)
        if in_place and loops and wanted is None:  # it may apply in a later round, and is meant there
            ahead = Walk(Draft(plan, draft.state, draft.policy, draft.now), command, gate.id)
            in_place = isinstance(_reached(ahead, command, Refusal(Code.CHECKPOINT_NOT_ACTIVE)), Refusal)
        return key if in_place else _reached(walk, command, Refusal(Code.CHECKPOINT_NOT_ACTIVE, about))
    answered = _already_answered(here, gate, key)
    if not loops or wanted == here.frames[-1].iteration + 1 or (waiting is not None and waiting.key == key):
        return answered
    return _reached(walk, command, answered)


def _opens_in_place(draft: Draft, found: FoundGate, loops: list[str]) -> bool:
    """Say whether the gate opens before it is reached: it does not apply, or is bound to no step ahead."""
    ops, gate = draft.plan.program(draft.state.activity or "").ops, found.gate
    if draft.state.next_key not in ops or not holds(gate.condition, draft.plan.scope(draft.state.variables)):
        return True
    keys = list(ops)
    ahead = keys.index(found.key) >= keys.index(draft.state.next_key)
    return not loops and not (ahead and gate.bound_to is not None)


def _reached(walk: Walk, command: OpenCheckpoint, otherwise: Refusal) -> str | Refusal:
    """Walk to the gate and return its instance; the refusal if the walk does not come to it."""
    need = walk.go()
    if isinstance(need, Refusal):
        return need
    frames, wanted = walk.draft.state.frames, command.iteration
    is_other = bool(frames) and wanted is not None and wanted != frames[-1].iteration + 1
    return otherwise if is_other or not isinstance(need, NeedAnswer) else need.key


def _already_answered(state: RunState, gate: Gate, key: str) -> Refusal:
    option = state.answers.get(key) or state.answers.get(gate.id)
    about = {"checkpoint": gate.id, "option": option or None, "instance": key}
    return Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)


def resolve_checkpoint(plan: Plan, state: RunState, command: ResolveCheckpoint) -> Decided | Refusal:
    """Answer the open gate, or on `gated` any pending one, in exactly one way.

    The variables of the call are merged afterwards: they change neither the question nor its condition.
    """
    draft = Draft(plan, state, command.policy, command.now)
    if command.policy.gates == "opened":
        draft.settle()
    target = _gate_meant(draft, command)
    if isinstance(target, Refusal) and command.policy.exits == "offered":
        ahead = Draft(plan, state, command.policy, command.now)
        ahead.skip_optional(until=command.gate)
        if ahead.state.open is not None and ahead.state.open.gate == command.gate:
            draft, target = ahead, _gate_meant(ahead, command)
    if isinstance(target, Refusal):
        return target
    found, opened = target
    if command.declined:
        return _declined(draft, found, opened, command)
    decision = _decision(draft, found.gate, opened, command)
    if isinstance(decision, Refusal):
        about = {**decision.about, **inbox_only(draft.state, opened.key, command.terms)}
        return replace(decision, about=about)
    how: e.Resolved = "dismissed" if decision is None else "chosen"
    answer = resolved(
        plan,
        draft.state,
        found.gate,
        opened.key,
        decision,
        command.now,
        how="auto_advanced" if command.auto_advance else how,
        confirms=found.confirms,
        agent=opened.agent,
        resumable=bool(opened.agent),
    )
    draft.record(answer, *undecided_gap(draft.state.preferences, answer, found.confirms))
    draft.take(command.variables)
    return draft.decided()


def _gate_meant(draft: Draft, command: ResolveCheckpoint) -> tuple[FoundGate, OpenGate] | Refusal:
    state = draft.state
    if state.open is not None and command.gate in (None, state.open.gate):
        found = find_gate(draft.plan, state, state.open.gate)
        assert found is not None
        return found, state.open
    if command.gate is None:
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE)
    found = find_gate(draft.plan, state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    gate, key, pending = found.gate, instance(state, found.gate.id), pending_gates(draft.plan, state)
    optional = not gate.required and gate.id not in state.answers
    # In a loop a gate may apply in a later round only, which a call is refused for and leaves no trace of.
    unanswered = not state.answers.get(gate.id) and not state.answers.get(key)
    chosen_early = unanswered and command.option is not None
    if command.policy.gates == "pending" and (optional or chosen_early or gate in pending):
        # pending from entry, by id alone: one answer serves every iteration of a loop (rule 15)
        return found, OpenGate(gate.id, gate.id, state.entered_at, "")
    if gate.id in state.answers or key in state.answers:
        return _already_answered(state, gate, key)
    early = [other for other in answerable_early(draft.plan, state) if other.gate.id == gate.id]
    if command.policy.gates == "opened" and early:
        outside = replace(state, frames=state.frames[: len(loops_around(draft.plan, state, found))])
        return found, OpenGate(instance(outside, gate.id), gate.id, command.now, "")
    listed = [other.id for other in pending]
    return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate.id, "pending": listed})


def _decision(
    draft: Draft, gate: Gate, opened: OpenGate, command: ResolveCheckpoint
) -> Decision | Refusal | None:
    """The decision that the call brings; None where it dismisses a gate whose condition is false."""
    if (command.option is not None) + command.auto_advance + command.condition_not_met != 1:
        return Refusal(Code.RESOLUTION_MODE)
    if command.auto_advance:
        return _auto_advanced(gate, max(command.now - opened.opened_at, 0))
    if command.option is not None:
        return _chosen(draft, gate, opened, command, command.option)
    if gate.condition is None:
        return Refusal(Code.NOT_CONDITIONAL, {"checkpoint": gate.id})
    if holds(gate.condition, draft.plan.scope(draft.state.variables)):
        about = {"checkpoint": gate.id, "condition": describe(gate.condition)}
        return Refusal(Code.CONDITION_HOLDS, about)
    return None


def _chosen(
    draft: Draft, gate: Gate, opened: OpenGate, command: ResolveCheckpoint, option: str
) -> Decision | Refusal:
    elapsed = command.now - opened.opened_at
    least = command.terms.min_response_ms if command.policy.exits == "claimed" else 0
    decided = command.decisions.get(gate.id)
    decision = decided or Decision(option, command.channel, command.client, command.note)
    if not counts(decision, draft.state, opened.key, command.terms):
        asked: dict[str, Json] = {"asked": True} if opened.key in draft.state.declined else {}
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id, **asked})
    # More than a little below zero says that the clock was set back, and nothing about the user.
    if decided is None and command.channel == "agent" and -CLOCKS_DIFFER_MS <= elapsed < least:
        about: dict[str, Json] = {"checkpoint": gate.id, "elapsed_ms": max(elapsed, 0), "minimum_ms": least}
        return Refusal(Code.TOO_FAST, about)
    if gate.option(option) is None:
        listed = [valid.id for valid in gate.options]
        return Refusal(Code.OPTION_NOT_FOUND, {"checkpoint": gate.id, "option": option, "options": listed})
    if decided is not None and decided.option != option:
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id, "decided": decided.option})
    return decision


def _declined(draft: Draft, found: FoundGate, opened: OpenGate, command: ResolveCheckpoint) -> Refusal:
    """Refuse to answer for a user who was asked and did not answer, in this call and later (rule 27)."""
    digest = question_of(draft.plan, draft.state, found.gate, found.confirms).digest
    event = e.QuestionDeclined(opened.key, found.gate.id, digest, command.now, command.client)
    kept = () if opened.key in draft.state.declined else (event,)
    return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": found.gate.id, "asked": True}, kept)


def _auto_advanced(gate: Gate, elapsed: int) -> Decision | Refusal:
    if gate.default_option is None or gate.auto_advance_ms is None:
        return Refusal(Code.NOT_AUTO_ADVANCING, {"checkpoint": gate.id})
    if not auto_advances(gate):
        return Refusal(Code.NOT_AUTO_ADVANCING, {"checkpoint": gate.id, "blocking": True})
    if elapsed < gate.auto_advance_ms:
        least = gate.auto_advance_ms
        about: dict[str, Json] = {"checkpoint": gate.id, "elapsed_ms": elapsed, "minimum_ms": least}
        return Refusal(Code.TIMER_RUNNING, about)
    return Decision(gate.default_option, "server", note="the time to answer has passed")


def resume_checkpoint(plan: Plan, state: RunState, command: ResumeWorker) -> Decided | Refusal:
    """Let the agent that asked go on, once its checkpoint is answered."""
    draft = Draft(plan, state, command.policy, command.now)
    draft.take(command.variables)
    draft.take_expired_open()
    if draft.state.open is not None:
        return Refusal(Code.CHECKPOINT_STILL_ACTIVE, {"checkpoint": draft.state.open.gate})
    answer = draft.state.yielded.get(command.agent)
    if answer is None:
        return Refusal(Code.CHECKPOINT_NOT_YIELDED, {"yielded_by": list(draft.state.yielded)})
    draft.record(e.GateResumed(answer.key, answer.gate, command.agent))
    return draft.decided()
