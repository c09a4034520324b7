"""Answers of named people: each by who may, to the question as shown, and a decision only by enough (I3)."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.definition.workflow import Approvers, Gate
from interlock.core.guard.hearing import I1, I2, I3, Hearing, Verdict
from interlock.core.run import events as e
from interlock.core.run.channels import is_at_least
from interlock.core.run.polls import ApproverAnswer


def _rule(hearing: Hearing, key: str) -> Approvers | None:
    found = hearing.find(key)
    return found.gate.decide if found is not None else None


def approved(hearing: Hearing, event: e.ApprovalGiven) -> Verdict:
    """One person answers an open question as it was shown, by a channel of the user, if the gate lists it."""
    audit, rule, approval = hearing.audit, _rule(hearing, event.key), event.approval
    if rule is None or audit.open != event.key:
        yield I1(f"'{event.key}' is answered by '{approval.by}', and does not wait for approvers")
        return
    showing = audit.showings.get(event.key)
    if showing is None or showing.digest != event.shown:
        yield I2(f"'{approval.by}' answered '{event.key}', which was not shown so")
    escalated = audit.poll(event.key).escalated_to
    if approval.entitled not in rule.by and (not escalated or approval.entitled != escalated):
        yield I3(f"'{approval.by}' answered '{event.key}' as '{approval.entitled}', which is not listed")
    if rule.not_by_starter and audit.started_by in (approval.by, approval.seat):
        yield I3(f"'{approval.by}' answered '{event.key}' and started the run")
    if not is_at_least(approval.channel, "user"):
        yield I3(f"'{approval.channel}' answered '{event.key}', which only people may")


def escalated(hearing: Hearing, event: e.QuestionEscalated) -> Verdict:
    """A question is escalated to the group that its gate names, after its time, once."""
    rule, showing = _rule(hearing, event.key), hearing.audit.showings.get(event.key)
    is_due = (
        rule is not None
        and rule.within_ms is not None
        and showing is not None
        and showing.digest == event.shown
        and event.at - showing.at >= rule.within_ms
    )
    if rule is None or rule.escalate_to != event.to or hearing.audit.open != event.key or not is_due:
        yield I3(f"'{event.key}' is escalated to '{event.to}' before its time, or to another group")


def decided(hearing: Hearing, event: e.GateResolved, gate: Gate | None) -> Verdict:
    """A gate with named approvers is decided by as many of them as it wants, and they agree.

    In never-stop mode it is a gap, like every decision without the user.
    """
    rule = gate.decide if gate is not None else None
    if rule is None:
        if event.channel == "approvers":
            yield I3(f"'{event.key}' is decided by approvers, and names none")
        return
    if event.channel != "approvers":
        if event.channel in ("server", "time"):
            return
        if hearing.audit.applied.never_stops:
            yield from hearing.needs_gap("needs_user_choice", event.key)
        else:
            yield I3(f"'{event.channel}' answered '{event.key}', which its approvers decide")
        return
    agreeing = [it for it in _newest(hearing.audit.poll(event.key).approvals) if it.option == event.option]
    if len(agreeing) < rule.at_least:
        yield I3(f"'{event.key}' is decided by {len(agreeing)} of {rule.at_least} approvers")


def _newest(approvals: Sequence[ApproverAnswer]) -> list[ApproverAnswer]:
    """Return the answers that count: the newest of each person and of each seat.

    The poll keeps no others; whoever counts must not rely on that.
    """
    counted: list[ApproverAnswer] = []
    for approval in approvals:
        others = (it for it in counted if it.by != approval.by and it.seat != approval.seat)
        counted = [*others, approval]
    return counted
