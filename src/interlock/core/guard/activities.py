"""Activities: left when all of them is done, by a way that leaves nothing out, up to the end (I1)."""

from __future__ import annotations

from interlock.core.definition.program import END, ENTRANCE
from interlock.core.guard import passing, writing
from interlock.core.guard.hearing import I1, Hearing, Verdict
from interlock.core.guard.leaving import gone_back_before, is_open, leaves_out, left_behind, past_skipped
from interlock.core.run import events as e


def left(hearing: Hearing, event: e.ActivityLeft) -> Verdict:
    """An activity is left when all of it is done, or as an answer or a gap allows."""
    visit, activity = hearing.visit, hearing.workflow.activity(event.activity)
    if activity is None or event.activity != visit.activity or visit.left_to is not None:
        yield I1(f"activity '{event.activity}' is left, and the run is not in it")
        return
    ends = {past_skipped(hearing, target) for target in (visit.exit_to or "", event.to)}
    is_decided = visit.exit_to is not None and (len(ends) == 1 or all(map(hearing.workflow.is_end, ends)))
    yield from passing.judged_again(hearing, everywhere=is_decided)
    is_gap = event.via == "gap" and any(detail == "missing_input" for detail, _ in hearing.gaps)
    by_gap = is_gap and hearing.terms.never_stops
    if not (is_decided or by_gap or (visit.next == END and not visit.rounds)):
        yield I1(f"activity '{event.activity}' is left where '{visit.next}' is due")
    hearing.jumped = not is_decided and not is_open(hearing, event.to)
    if hearing.jumped and not (by_gap or _jumps_by_gap(hearing)) and leaves_out(hearing, event.to):
        yield I1(f"the way from '{event.activity}' to '{event.to}' leaves out something required")
    if event.via != "gap" and left_behind(hearing) != {*event.unanswered}:
        yield I1(f"activity '{event.activity}' is left, and what it leaves out is not what is recorded")
    if event.via != "gap" or event.sets:
        yield from writing.actions(hearing, activity.exit_actions, event.sets, f"activity '{activity.id}'")


def entered(hearing: Hearing, event: e.ActivityEntered) -> Verdict:
    """An activity is entered at its beginning, where the run was left to it."""
    path, activity = hearing.audit.path, hearing.workflow.activity(event.activity)
    if activity is None:
        yield I1(f"activity '{event.activity}' does not exist")
        return
    if hearing.visit.activity is None:
        if hearing.visit.answers.get(ENTRANCE, activity.id) != activity.id or hearing.visit.open == ENTRANCE:
            yield I1(f"activity '{activity.id}' is entered, and another was chosen")
        if not _jumps_by_gap(hearing) and leaves_out(hearing, activity.id):
            yield I1(f"the run begins with '{activity.id}', which leaves out something required")
    elif hearing.visit.left_to != event.activity:
        yield I1(f"activity '{event.activity}' is entered, and the run was not left to it")
    is_back = bool(path) and (hearing.jumped or path[0] != hearing.workflow.initial)
    if event.before != (gone_back_before(hearing, activity.id) if is_back else ""):
        yield I1(f"activity '{event.activity}' is before the beginning, and that is not recorded")
    if event.next != hearing.plan.program(activity.id).first or event.visit != hearing.visit.number + 1:
        yield I1(f"activity '{event.activity}' does not begin at its beginning")
    yield from writing.actions(hearing, activity.entry_actions, event.sets, f"activity '{activity.id}'")


def ended(hearing: Hearing, event: e.RunCompleted) -> Verdict:
    """A run ends where it was left to an end, and is complete only without open gaps."""
    audit = hearing.audit
    if hearing.visit.left_to is None or not hearing.workflow.is_end(hearing.visit.left_to):
        yield I1(f"the run ends in activity '{hearing.visit.activity}', which was not left to an end")
    is_complete = not audit.gaps and not audit.older_gaps
    if is_complete is (event.status != "complete"):
        yield I1(f"the run ends '{event.status}', and {len(audit.gaps)} gaps are open")


def _jumps_by_gap(hearing: Hearing) -> bool:
    is_allowed = hearing.terms.never_stops or hearing.terms.enforcement == "advisory"
    return is_allowed and any(detail in ("jump", "left_out") for detail, _ in hearing.gaps)
