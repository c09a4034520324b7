"""Activities: left when all of them is done, by a way that leaves nothing out, up to the end (I1)."""

from __future__ import annotations

from interlock.core.definition.program import END
from interlock.core.guard import passing, writing
from interlock.core.guard.hearing import I1, Hearing, Verdict
from interlock.core.guard.leaving import gone_back_before, is_open, leaves_out, left_behind, past_skipped
from interlock.core.guard.rendered import entrance
from interlock.core.run import events as e


def left(hearing: Hearing, event: e.ActivityLeft) -> Verdict:
    """An activity is left when all of it is done, or as an answer or a gap allows."""
    audit, activity = hearing.audit, hearing.plan.workflow.activity(event.activity)
    if activity is None or event.activity != audit.activity or audit.left_to is not None:
        yield I1(f"activity '{event.activity}' is left, and the run is not in it")
        return
    is_decided = audit.exit_to is not None and _leads(hearing, audit.exit_to, event.to)
    yield from passing.judged_again(hearing, everywhere=is_decided)
    by_gap = event.via == "gap" and audit.applied.never_stops
    by_gap = by_gap and any(detail == "missing_input" for detail, _ in hearing.gaps)
    if not (is_decided or by_gap or (audit.next == END and not audit.rounds)):
        yield I1(f"activity '{event.activity}' is left where '{audit.next}' is due")
    by_gap = by_gap or _jumps_by_gap(hearing)
    hearing.jumped = not is_decided and not is_open(hearing.plan, audit, event.to)
    if hearing.jumped and not by_gap and leaves_out(hearing.plan, audit, event.to):
        yield I1(f"the way from '{event.activity}' to '{event.to}' leaves out something required")
    if event.via != "gap" and left_behind(hearing.plan, audit) != {*event.unanswered}:
        yield I1(f"activity '{event.activity}' is left, and what it leaves out is not what is recorded")
    if not (event.via == "gap" and not event.sets):
        yield from writing.actions(hearing, activity.exit_actions, event.sets, f"activity '{activity.id}'")


def entered(hearing: Hearing, event: e.ActivityEntered) -> Verdict:
    """An activity is entered at its beginning, where the run was left to it."""
    audit, workflow = hearing.audit, hearing.plan.workflow
    activity = workflow.activity(event.activity)
    if activity is None:
        yield I1(f"activity '{event.activity}' does not exist")
        return
    if audit.activity is None:
        yield from _begun(hearing, event.activity)
    elif audit.left_to != event.activity:
        yield I1(f"activity '{event.activity}' is entered, and the run was not left to it")
    is_back = bool(audit.path) and (hearing.jumped or audit.path[0] != workflow.initial)
    if event.before != (gone_back_before(hearing.plan, audit, activity.id) if is_back else ""):
        yield I1(f"activity '{event.activity}' is before the beginning, and that is not recorded")
    if event.next != hearing.plan.program(activity.id).first or event.visit != audit.visit + 1:
        yield I1(f"activity '{event.activity}' does not begin at its beginning")
    yield from writing.actions(hearing, activity.entry_actions, event.sets, f"activity '{activity.id}'")


def _begun(hearing: Hearing, target: str) -> Verdict:
    workflow, audit = hearing.plan.workflow, hearing.audit
    gate = entrance(workflow).id
    if audit.answers.get(gate, target) != target or audit.open == gate:
        yield I1(f"activity '{target}' is entered, and another was chosen")
    if not _jumps_by_gap(hearing) and leaves_out(hearing.plan, audit, target):
        yield I1(f"the run begins with '{target}', which leaves out something required")


def ended(hearing: Hearing, event: e.RunCompleted) -> Verdict:
    """A run ends where it was left to an end, and is complete only without open gaps."""
    audit = hearing.audit
    if audit.left_to is None or not hearing.plan.workflow.is_end(audit.left_to):
        yield I1(f"the run ends in activity '{audit.activity}', which was not left to an end")
    is_complete = not audit.gaps and not audit.older_gaps
    if is_complete is (event.status != "complete"):
        yield I1(f"the run ends '{event.status}', and {len(audit.gaps)} gaps are open")


def _jumps_by_gap(hearing: Hearing) -> bool:
    applied = hearing.audit.applied
    may = applied.never_stops or applied.enforcement == "advisory"
    return may and any(detail in ("jump", "left_out") for detail, _ in hearing.gaps)


def _leads(hearing: Hearing, to: str, target: str) -> bool:
    ends = {past_skipped(hearing.plan, hearing.audit, name) for name in (to, target)}
    return len(ends) == 1 or all(map(hearing.plan.workflow.is_end, ends))
