"""Gates that named people decide: who may answer, and when enough of them agree (rule 27a)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Approvers
from interlock.core.engine.decisions import resolved
from interlock.core.engine.draft import Draft
from interlock.core.engine.gates import FoundGate, find_gate
from interlock.core.run import events as e
from interlock.core.run.commands import Approve, Decision, Escalate
from interlock.core.run.outcomes import Code, Decided, Refusal
from interlock.core.run.polls import Approval, Approver, Poll
from interlock.core.run.state import OpenGate, RunState
from interlock.core.values import Json


def approve(plan: Plan, state: RunState, command: Approve) -> Decided | Refusal:
    """Record one person's answer; where a session goes on by itself, also the decision that it completes."""
    asked = _asked(plan, state, command.gate, command.shown)
    if isinstance(asked, Refusal):
        return asked
    opened, found, rule = asked
    if found.gate.option(command.option) is None:
        options: list[Json] = [option.id for option in found.gate.options]
        return Refusal(Code.OPTION_NOT_FOUND, {"checkpoint": command.gate, "options": options})
    poll = state.poll(opened)
    seat = next(_seats(rule, poll, command.approver, state.started_by), None)
    if seat is None:
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": command.gate, "by": list(entitled(rule, poll))})
    name, by = seat
    draft = Draft(plan, state, command.policy, command.now)
    approval = Approval(command.approver.name, name, by, command.option, command.channel, command.now)
    draft.record(e.ApprovalGiven(opened.key, command.gate, opened.shown, approval, command.note))
    decision = quorum(rule, draft.state.poll(opened))
    if decision is not None and command.policy.exits == "claimed":
        agent = opened.agent
        draft.record(
            resolved(
                plan,
                draft.state,
                found.gate,
                opened.key,
                decision,
                command.now,
                agent=agent,
                resumable=bool(agent),
            )
        )
    return draft.decided()


def escalate(plan: Plan, state: RunState, command: Escalate) -> Decided | Refusal:
    """Let another group answer too, once the time for an answer has passed."""
    asked = _asked(plan, state, command.gate, command.shown)
    if isinstance(asked, Refusal):
        return asked
    opened, found, rule = asked
    is_over = command.now - opened.opened_at >= (rule.within_ms or 0)
    if rule.escalate_to is None or not is_over or state.poll(opened).escalated_to:
        return Refusal(Code.TIMER_RUNNING, {"checkpoint": command.gate})
    draft = Draft(plan, state, command.policy, command.now)
    draft.record(e.QuestionEscalated(opened.key, found.gate.id, opened.shown, rule.escalate_to, command.now))
    return draft.decided()


def _asked(
    plan: Plan, state: RunState, gate_id: str, shown: str
) -> tuple[OpenGate, FoundGate, Approvers] | Refusal:
    """Return the open question that is meant, if it was shown so and named people decide it."""
    opened, found = state.open, find_gate(plan, state, gate_id)
    is_meant = opened is not None and (opened.gate, opened.shown) == (gate_id, shown)
    if state.finished or opened is None or found is None or found.gate.decide is None or not is_meant:
        return Refusal(Code.CHECKPOINT_NOT_ACTIVE, {"checkpoint": gate_id})
    return opened, found, found.gate.decide


def entitled(rule: Approvers, poll: Poll) -> tuple[str, ...]:
    """Return the names and groups that may answer now."""
    return (*rule.by, *((poll.escalated_to,) if poll.escalated_to else ()))


def _seats(rule: Approvers, poll: Poll, approver: Approver, starter: str) -> Iterator[tuple[str, str]]:
    """Yield the seats that a person may take, with the entry of the list behind each: the own one first."""
    for holder in (approver, *approver.stands_in_for):
        listed = (name for name in entitled(rule, poll) if name in (holder.name, *holder.groups))
        if rule.not_by_starter and starter in (approver.name, holder.name):
            continue
        yield from ((holder.name, name) for name in listed)


def quorum(rule: Approvers, poll: Poll) -> Decision | None:
    """Return the decision that enough people agree on, if they do."""
    counted = Counter(approval.option for approval in poll.approvals)
    agreed = next((option for option, votes in counted.items() if votes >= rule.at_least), None)
    if agreed is None:
        return None
    names = ", ".join(approval.by for approval in poll.approvals if approval.option == agreed)
    return Decision(agreed, "approvers", names)
