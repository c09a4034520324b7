"""Checkpoints that are opened, answered and resumed from by hand (rules 15, 16, 23, 24)."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.core.definition.conditions import describe, holds
from interlock.core.definition.expressions import root
from interlock.core.definition.program import END, Plan
from interlock.core.definition.workflow import Approvers, Gate
from interlock.core.engine.acknowledge import input_required
from interlock.core.engine.claims import Walk, no_activity, notice_unexpected, take_with_claims
from interlock.core.engine.decisions import asked_how, counts, quorum, taken_in_time, undecided_gap
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import (
    FoundGate,
    auto_advances,
    find_gate,
    gate_ids,
    is_answered,
    loops_around,
    pending_gates,
    round_of,
)
from interlock.core.engine.settle import unwhole
from interlock.core.run import events as e
from interlock.core.run.commands import (
    Approve,
    Decision,
    Escalate,
    OpenCheckpoint,
    ResolveCheckpoint,
    ResumeWorker,
)
from interlock.core.run.keys import instance_key
from interlock.core.run.outcomes import Code, Decided, NeedAnswer, NeedInput, Refusal
from interlock.core.run.polls import ApproverAnswer, entitled, seats
from interlock.core.run.questions import Unanswered
from interlock.core.run.state import OpenGate, RunState, instance
from interlock.core.values import Json, Variables
from interlock.core.variables.roots import unset_in_question

CLOCKS_DIFFER_MS = 60_000  # at most, on machines that share a store


def open_checkpoint(plan: Plan, state: RunState, command: OpenCheckpoint) -> Decided | Refusal:
    """Yield a gate: walk to it, which claims the steps before it, and put its question (rule 14).

    A question that the user has answered is not put again.
    """
    if state.activity is None:
        return no_activity(plan)
    if state.finished:
        return Refusal(Code.RUN_FINISHED)
    draft = Draft(plan, state, command.policy, command.now, command.decisions)
    found = find_gate(plan, state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    if state.visit.open is not None and state.visit.open.gate != command.gate:
        draft.take_expired_open()
    if (opened := draft.state.active) is not None:
        about = {"checkpoint": opened.gate, "instance": opened.key, "requested": command.gate}
        return Refusal(Code.CHECKPOINT_ALREADY_ACTIVE, about)
    need = _reached(draft, found, command, command.iteration)
    if isinstance(need, Refusal):
        return need
    if not draft.use_decision(need, command.terms):
        draft.show(need, command.agent)
    return draft.decided()


def _not_found(draft: Draft, gate_id: str) -> Refusal:
    listed = list(gate_ids(draft.plan, draft.state))
    about = {"checkpoint": gate_id, "activity": draft.state.activity, "checkpoints": listed}
    return Refusal(Code.CHECKPOINT_NOT_FOUND, about)


def _reached(
    draft: Draft, found: FoundGate, command: OpenCheckpoint | ResolveCheckpoint, wanted: int | None = None
) -> NeedAnswer | Refusal:
    """Come to the instance of a gate that is meant: the next one in order, or round number `wanted`.

    One that a false condition let pass is asked where the run is now. The way to any other is a walk, and
    what that passes is kept.
    """
    behind = _behind(draft, found, command, wanted)
    if isinstance(behind, NeedAnswer):
        notice_unexpected(draft, command.claims)
        draft.take(_before_showing(draft, found.gate, command))
        Walk(draft, command, found).report()
        return _unwhole(draft, found.gate, command) or behind
    if behind is not None:
        return behind
    take_with_claims(draft, replace(command, variables=_before_showing(draft, found.gate, command)))
    walk = Walk(draft, command, found)
    if walk.loops and wanted is None and found.gate.condition is not None:
        # in a loop the gate is meant in the next round to which it applies, if there is one ahead
        copy = Draft(draft.plan, draft.state, draft.policy, draft.now, draft.decisions)
        ahead = Walk(copy, command, found)
        ahead.passes_inapplicable = True
        walk.passes_inapplicable = isinstance(ahead.go(), NeedAnswer)
    need = walk.go()
    if isinstance(need, Refusal):
        return need if "limit" in need.about else draft.refused(need)
    number = round_of(draft.state, need.key).get("iteration") if isinstance(need, NeedAnswer) else None
    if not isinstance(need, NeedAnswer) or (wanted is not None and walk.loops and wanted != number):
        return draft.refused(Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": found.gate.id}))
    if (refusal := _unwhole(draft, found.gate, command)) is not None:
        return refusal
    walk.report()
    return need


def _unwhole(draft: Draft, gate: Gate, command: OpenCheckpoint | ResolveCheckpoint) -> Refusal | None:
    """Refuse to show a question that lacks something; one that does not apply is dismissed unseen."""
    dismisses = isinstance(command, ResolveCheckpoint) and command.condition_not_met
    if dismisses and not holds(gate.condition, draft.plan.scope(draft.state.variables)):
        return None
    lacking = unwhole(draft.plan, draft.state, gate)
    return draft.refused(input_required(lacking)) if lacking is not None else None


def _before_showing(draft: Draft, gate: Gate, command: OpenCheckpoint | ResolveCheckpoint) -> Variables:
    """Return the variables that a call may set on its way to a question.

    Those that its answer decides come after it, unless the question itself lacks them.
    """
    if not isinstance(command, ResolveCheckpoint):
        return command.variables
    lacking = unset_in_question(draft.plan.scope(draft.state.variables), gate)
    later = gate.decides - set(map(root, lacking))
    return {name: value for name, value in command.variables.items() if root(name) not in later}


def _behind(
    draft: Draft, found: FoundGate, command: OpenCheckpoint | ResolveCheckpoint, wanted: int | None
) -> NeedAnswer | Refusal | None:
    """Return what comes of a gate that the run has come past; None if it is ahead."""
    plan, state, gate = draft.plan, draft.state, found.gate
    if (opened := state.visit.open) is not None and opened.gate == gate.id:
        return NeedAnswer(opened.key, gate, opened.opened_at, found.confirms)
    loops = loops_around(plan, state, found)
    inside = state.within(frames=state.visit.frames[: len(loops)])
    keys = [*plan.program(state.activity or "").ops, END]
    ahead = keys.index(found.key) >= keys.index(state.visit.next_key)
    if [frame.loop for frame in inside.visit.frames] != loops:  # its loop has yet to begin, or is over
        about: dict[str, Json] = {"checkpoint": gate.id}
        if wanted is not None and len(loops) == 1:
            about["instance"] = instance_key([(loops[0], wanted - 1)], gate.id)
        return None if ahead else Refusal(Code.CHECKPOINT_NOT_ACTIVE, about)
    if loops and wanted is not None and wanted <= inside.visit.frames[-1].iteration:
        earlier = replace(inside.visit.frames[-1], iteration=wanted - 1)
        past = inside.within(frames=(*inside.visit.frames[:-1], earlier))
        return _already_answered(inside, gate, instance(past, gate.id))
    key, waiting = instance(inside, gate.id), inside.visit.yielded.get(command.agent)
    if is_answered(plan, inside, gate, key):
        is_meant = wanted is not None or (waiting is not None and waiting.key == key)
        is_only = not loops or (is_meant and wanted in (None, inside.visit.frames[-1].iteration + 1))
        return _already_answered(inside, gate, key) if is_only else None
    dismisses = isinstance(command, ResolveCheckpoint) and command.condition_not_met
    if key in state.visit.passed and (dismisses or state.visit.open is None):
        return NeedAnswer(key, gate, draft.now, found.confirms)
    if ahead or loops:
        return None
    return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate.id, "instance": key})


def _already_answered(state: RunState, gate: Gate, key: str) -> Refusal:
    about = {"checkpoint": gate.id, "option": state.visit.answers.get(key) or None, "instance": key}
    return Refusal(Code.CHECKPOINT_ALREADY_ANSWERED, about)


def resolve_checkpoint(plan: Plan, state: RunState, command: ResolveCheckpoint) -> Decided | Refusal:
    """Answer the open gate, or on `gated` the one that is named and walked to, in exactly one way."""
    if state.finished:
        return Refusal(Code.RUN_FINISHED)
    if command.policy.exits == "claimed" and state.activity is None and state.visit.open is None:
        return no_activity(plan)
    draft = Draft(plan, state, command.policy, command.now, command.decisions)
    need = _question_meant(draft, command)
    if isinstance(need, Refusal):
        return need
    if command.policy.gates == "opened" and command.option is None and command.variables:
        draft.take(command.variables)
        return draft.decided()  # the call has brought what the question shows, and answers nothing
    answer = _decision(draft, need, command)
    if isinstance(answer, Refusal):
        answer = replace(
            answer, about={**answer.about, **asked_how(draft.state, need.key, command.terms, need.gate)}
        )
        return _with_showing(draft, need, answer, command)
    if answer is not None:  # a question that does not apply is dismissed unseen
        draft.show(need)
    how: e.Resolved = "dismissed" if answer is None else "chosen"
    how = "auto_advanced" if command.auto_advance else how
    event = draft.resolved(need, answer, how=how, brings=command.variables)
    draft.record(event, *undecided_gap(draft.state, event, need))
    draft.take(command.variables)
    return draft.decided()


def _with_showing(draft: Draft, need: NeedAnswer, refusal: Refusal, command: ResolveCheckpoint) -> Refusal:
    """On `gated` a refused answer keeps the walk to its question, and has shown it."""
    if command.policy.gates != "pending":
        return refusal
    draft.show(need)
    draft.take(command.variables)
    return draft.refused(refusal)


def _question_meant(draft: Draft, command: ResolveCheckpoint) -> NeedAnswer | Refusal:
    """Return the question that the call answers, after the walk to it on `gated`."""
    if command.policy.gates == "opened":
        lacking = _bring_whole(draft, command)
        if lacking is not None:
            return lacking
    opened = draft.state.visit.open
    if opened is not None and command.gate in (None, opened.gate) and _is_active(opened, command):
        asked = find_gate(draft.plan, draft.state, opened.gate)
        assert asked is not None
        notice_unexpected(draft, command.claims)
        Walk(draft, command, asked).report()
        return NeedAnswer(opened.key, asked.gate, opened.opened_at, asked.confirms)
    if command.gate is None:
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE)
    found = find_gate(draft.plan, draft.state, command.gate)
    if found is None:
        return _not_found(draft, command.gate)
    if command.policy.gates == "pending" and draft.state.activity is not None:
        mistaken = _mistaken(found.gate, command)
        return mistaken or _reached(draft, found, command)
    key = instance(draft.state, found.gate.id)
    if key in draft.state.visit.answers:
        return _already_answered(draft.state, found.gate, key)
    listed = [other.id for other in pending_gates(draft.plan, draft.state)]
    about: dict[str, Json] = {"checkpoint": found.gate.id, "pending": listed}
    return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {**about, "ahead": found.gate.id in listed})


def _bring_whole(draft: Draft, command: ResolveCheckpoint) -> Refusal | None:
    """Come to the question that is meant, with the variables that it shows; refuse while it lacks some."""
    pending = draft.skip_optional(until=command.gate)
    if not isinstance(pending, NeedInput) or pending.gate is None or pending.gate.id != command.gate:
        return None
    draft.take(command.variables)
    still = draft.skip_optional(until=command.gate)
    return input_required(still) if isinstance(still, NeedInput) else None


def _is_active(opened: OpenGate, command: ResolveCheckpoint) -> bool:
    """Say whether an open question takes this answer: on `session` an agent's only once it was yielded."""
    return command.policy.gates != "yielded" or bool(opened.agent) or command.channel != "agent"


def _mistaken(gate: Gate, command: ResolveCheckpoint) -> Refusal | None:
    """Refuse an answer that could not count for this gate at any time, before anything is claimed."""
    if (command.option is not None) + command.auto_advance + command.condition_not_met != 1:
        return Refusal(Code.RESOLUTION_MODE)
    if command.option is not None and gate.option(command.option) is None:
        listed = [valid.id for valid in gate.options]
        about: dict[str, Json] = {"checkpoint": gate.id, "option": command.option, "options": listed}
        return Refusal(Code.OPTION_NOT_FOUND, about)
    if command.condition_not_met and gate.condition is None:
        return Refusal(Code.NOT_CONDITIONAL, {"checkpoint": gate.id})
    if command.auto_advance and not auto_advances(gate):
        timed = gate.default_option is not None and gate.auto_advance_ms is not None
        return Refusal(
            Code.NOT_AUTO_ADVANCING, {"checkpoint": gate.id, **({"blocking": True} if timed else {})}
        )
    return None


def _decision(draft: Draft, need: NeedAnswer, command: ResolveCheckpoint) -> Decision | Refusal | None:
    """The decision that the call brings; None where it dismisses a gate whose condition is false."""
    if command.option is not None and not (command.auto_advance or command.condition_not_met):
        return _chosen(draft, need, command, command.option)
    gate, mistaken = need.gate, _mistaken(need.gate, command)
    if mistaken is not None:
        return mistaken
    if command.auto_advance:
        return _auto_advanced(gate, max(command.now - need.opened_at, 0))
    if holds(gate.condition, draft.plan.scope(draft.state.variables)):
        about = {"checkpoint": gate.id, "condition": describe(gate.condition)}
        return Refusal(Code.CONDITION_HOLDS, about)
    return None


def _chosen(draft: Draft, need: NeedAnswer, command: ResolveCheckpoint, option: str) -> Decision | Refusal:
    gate = need.gate
    is_listed = command.policy.gates == "pending"  # there a question is known from entry
    elapsed = command.now - (draft.state.visit.entered_at if is_listed else need.opened_at)
    least = command.terms.min_response_ms if command.policy.exits == "claimed" else 0
    question = draft.question(need)
    decided = command.decisions.get(question.digest)
    decision = decided or Decision(option, command.channel, command.client, command.note)
    if not counts(decision, draft.state, need.key, command.terms, gate):
        asked: dict[str, Json] = {"asked": True} if draft.state.declined_by(need.key) else {}
        about: dict[str, Json] = {"checkpoint": gate.id, **asked}
        return Refusal(Code.USER_MUST_DECIDE, about, unanswered=(Unanswered(need.key, question),))
    # More than a little below zero says that the clock was set back, and nothing about the user.
    if decided is None and command.channel == "agent" and -CLOCKS_DIFFER_MS <= elapsed < least:
        about = {"checkpoint": gate.id, "elapsed_ms": max(elapsed, 0), "minimum_ms": least}
        return Refusal(Code.TOO_FAST, about)
    # The answer of a form too: a client need not keep to the options that its form lists.
    if (mistaken := _mistaken(gate, replace(command, option=decision.option))) is not None:
        return mistaken
    if decided is not None and decided.channel != "elicitation" and decided.option != option:
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id, "decided": decided.option})
    return decision


def _auto_advanced(gate: Gate, elapsed: int) -> Decision | Refusal:
    least = gate.auto_advance_ms or 0
    if elapsed < least:
        about: dict[str, Json] = {"checkpoint": gate.id, "elapsed_ms": elapsed, "minimum_ms": least}
        return Refusal(Code.TIMER_RUNNING, about)
    return taken_in_time(gate)


def resume_checkpoint(plan: Plan, state: RunState, command: ResumeWorker) -> Decided | Refusal:
    """Let the agent that asked go on, once its checkpoint is answered."""
    if state.finished:
        return Refusal(Code.RUN_FINISHED)
    draft = Draft(plan, state, command.policy, command.now)
    draft.take(command.variables)
    draft.take_expired_open()
    if (opened := draft.state.active) is not None:
        found = find_gate(plan, draft.state, opened.gate)
        how = asked_how(draft.state, opened.key, command.terms, found.gate if found is not None else None)
        return Refusal(Code.CHECKPOINT_STILL_ACTIVE, {"checkpoint": opened.gate, **how})
    answer = draft.state.visit.yielded.get(command.agent)
    if answer is None:
        return Refusal(Code.CHECKPOINT_NOT_YIELDED, {"yielded_by": list(draft.state.visit.yielded)})
    draft.record(e.GateResumed(answer.key, answer.gate, command.agent))
    return draft.decided()


def approve(plan: Plan, state: RunState, command: Approve) -> Decided | Refusal:
    """Record one person's answer; where a session goes on by itself, also the decision that it completes."""
    asked = _put_to_approvers(plan, state, command.gate, command.shown)
    if isinstance(asked, Refusal):
        return asked
    opened, found, rule = asked
    if found.gate.option(command.option) is None:
        options: list[Json] = [option.id for option in found.gate.options]
        return Refusal(Code.OPTION_NOT_FOUND, {"checkpoint": command.gate, "options": options})
    poll = state.poll(opened)
    seat = next(seats(rule, poll, command.approver, state.started_by), None)
    if seat is None:
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": command.gate, "by": list(entitled(rule, poll))})
    name, by = seat
    draft = Draft(plan, state, command.policy, command.now)
    approval = ApproverAnswer(
        command.approver.name, name, by, command.option, command.channel, command.now, command.note
    )
    draft.record(e.ApprovalGiven(opened.key, command.gate, opened.shown, approval))
    decision = quorum(rule, draft.state.poll(opened))
    if decision is not None and command.policy.exits == "claimed":
        need = NeedAnswer(opened.key, found.gate, opened.opened_at)
        draft.record(draft.resolved(need, decision))
    return draft.decided()


def escalate(plan: Plan, state: RunState, command: Escalate) -> Decided | Refusal:
    """Let another group answer too, once the time for an answer has passed."""
    asked = _put_to_approvers(plan, state, command.gate, command.shown)
    if isinstance(asked, Refusal):
        return asked
    opened, found, rule = asked
    is_over = command.now - opened.opened_at >= (rule.within_ms or 0)
    if rule.escalate_to is None or not is_over or state.poll(opened).escalated_to:
        return Refusal(Code.TIMER_RUNNING, {"checkpoint": command.gate})
    draft = Draft(plan, state, command.policy, command.now)
    draft.record(e.QuestionEscalated(opened.key, found.gate.id, opened.shown, rule.escalate_to, command.now))
    return draft.decided()


def _put_to_approvers(
    plan: Plan, state: RunState, gate_id: str, shown: str
) -> tuple[OpenGate, FoundGate, Approvers] | Refusal:
    """Return the open question that is meant, if it was shown so and named people decide it."""
    opened, found = state.visit.open, find_gate(plan, state, gate_id)
    is_meant = opened is not None and (opened.gate, opened.shown) == (gate_id, shown)
    if state.finished or opened is None or found is None or found.gate.decide is None or not is_meant:
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate_id})
    return opened, found, found.gate.decide
