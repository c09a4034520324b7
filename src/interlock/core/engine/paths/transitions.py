"""Moving between activities: what is claimed first, the exit that was expected, the one that was taken."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from interlock.core.definition.conditions import describe
from interlock.core.definition.program import Plan, entrance_gate
from interlock.core.engine.acknowledge import input_required, resolve_late, without_input
from interlock.core.engine.claims import Outlook, Walk, gate_open, no_activity, take_with_claims
from interlock.core.engine.decisions import counts, undecided_gap
from interlock.core.engine.draft import Draft
from interlock.core.engine.paths.exits import ChosenExit, chosen_exit, exits
from interlock.core.engine.paths.jumps import activities_left_out, left_out
from interlock.core.engine.settle import arrived, awaited, consequences, entered, lacks_unset, left
from interlock.core.run import events as e
from interlock.core.run.commands import Decision, EnterActivity
from interlock.core.run.keys import item_of
from interlock.core.run.outcomes import (
    Code,
    Decided,
    Done,
    Exit,
    NeedAnswer,
    NeedExit,
    NeedInput,
    Refusal,
)
from interlock.core.run.questions import Unanswered
from interlock.core.run.state import RunState


def enter(plan: Plan, state: RunState, command: EnterActivity) -> Decided | Refusal:
    """Leave the current activity by an exit it has, and enter the target."""
    if state.finished:
        return resolve_late(plan, state, command, *(claim.output for claim in command.claims))
    draft = Draft(plan, state, command.policy, command.now, command.decisions)
    if command.policy.exits != "claimed":
        was_asked = lacks_unset(awaited(plan, state, command.policy))
        draft.take(command.variables)
        if was_asked and not isinstance(draft.settle(), (NeedInput, NeedExit)):
            return draft.decided()  # what was sent has made something due before the exit
        return _entered(draft, command) or draft.decided()
    take_with_claims(draft, command)
    refusal = _entered(draft, command)
    if refusal is None:
        return draft.decided()
    # Nothing is kept of a mistaken target, of a walk without end, or of one past an exit that was decided.
    is_mistaken = refusal.code in (Code.ACTIVITY_NOT_FOUND, Code.NO_ACTIVITY)
    is_left = is_mistaken or not refusal.about.keys().isdisjoint(("limit", "decided_exit"))
    return replace(refusal, kept=()) if is_left else draft.refused(refusal)


def outstanding(plan: Plan, state: RunState, command: EnterActivity) -> tuple[Refusal, ...]:
    """Return what keeps the run in its activity as the variables are now, up to the first gate."""
    if state.active is not None:
        return (gate_open(plan, state, {}, command.terms),)
    draft = Draft(plan, state, command.policy, command.now, command.decisions)
    return Outlook(draft, command).look()


def _entered(draft: Draft, command: EnterActivity) -> Refusal | None:
    state, workflow, target = draft.state, draft.plan.workflow, command.target
    draft.take_expired_open()
    if draft.state.active is not None:
        return gate_open(draft.plan, draft.state, {"target": target}, command.terms)
    if not workflow.is_end(target) and workflow.activity(target) is None:
        listed = [activity.id for activity in workflow.activities]
        return Refusal(Code.ACTIVITY_NOT_FOUND, {"target": target, "activities": listed})
    if state.activity is None:
        return _begin(draft, command)
    if draft.policy.exits != "claimed":
        return _take(draft, command)
    return _claim(draft, command)


def _claim(draft: Draft, command: EnterActivity) -> Refusal | None:
    """Claim the rest of the activity and take the exit that the agent names."""
    walk, arrival = Walk(draft, command), None
    decided, astray = draft.state.visit.exit_to, _other_exit(draft, command.target)
    while arrival is None or astray:  # never-stop mode may decide an exit on the way
        if astray:  # only the exit that was decided waives steps and gates that remain (rule 23)
            decided, draft.state = draft.state.visit.exit_to, draft.state.within(exit_to=None)
        arrival = walk.go()
        if isinstance(arrival, Refusal):
            walk.report_late()
            about = {**arrival.about, "decided_exit": astray} if astray else arrival.about
            return replace(arrival, about=about)
        astray = _other_exit(draft, command.target)
    assert not isinstance(arrival, (NeedAnswer, Done)), "a walk without a gate to reach ends at the exits"
    draft.state = draft.state.within(exit_to=draft.state.visit.exit_to or decided)
    listed = exits(draft.plan, draft.state)
    named = _matching(draft, listed, command.target)
    if named is None or not named.open:
        return _jump(draft, command, listed)
    _record_silence(draft, command)
    _advise_condition(draft, command)
    _cross(draft, named.to, via="claim" if named.unset else "transition")
    return None


def _record_silence(draft: Draft, command: EnterActivity) -> None:
    """Record that nothing was written down about steps of the activity that is left (rule 31)."""
    activity = draft.plan.workflow.activity(draft.state.activity)
    assert activity is not None, "only an activity that was entered is left"
    told = {claim.step for claim in command.claims if claim.output.has_content}
    wanting = (step.id for step in activity.steps() if step.required and step.wants_notes)
    silent = [
        step
        for step in wanting
        if step in draft.state.visit.unreported and step not in told and not draft.state.has_report(step)
    ]
    if silent:
        named = ", ".join(f"'{step}'" for step in silent)
        text = f"Nothing was written down about {named} of activity '{activity.id}'."
        draft.record(e.GapRecorded("warning", "unexpected", "no_notes", text, activity.id))


def _other_exit(draft: Draft, target: str) -> str:
    """Name the exit that an answer has decided, if it is not the target; empty otherwise."""
    if draft.state.visit.exit_to is None:
        return ""
    chosen = chosen_exit(draft.plan, draft.state)
    is_target = chosen is None or _matching(draft, (Exit(chosen.to, open=True),), target) is not None
    return "" if is_target or chosen is None else chosen.to


def _jump(draft: Draft, command: EnterActivity, listed: tuple[Exit, ...]) -> Refusal | None:
    """Go where no open exit leads, with a warning, if that leaves nothing out (rule 22)."""
    refusal = _leave_out(draft, command, listed)
    if refusal is not None:
        return refusal
    _record_silence(draft, command)
    _advise(draft, command, listed)
    _cross(draft, command.target, via="jump")
    return None


def _leave_out(draft: Draft, command: EnterActivity, listed: tuple[Exit, ...]) -> Refusal | None:
    """Refuse to leave out what is required; advisory enforcement and never-stop mode record a gap."""
    state, target, advisory = draft.state, command.target, command.terms.enforcement == "advisory"
    left = left_out(draft.plan, state, target)
    if left is None:
        if omitted := activities_left_out(draft.plan, state, target):
            names = ", ".join(f"'{name}'" for name in omitted)
            text = f"Required activities were left out on the way to '{target}': {names}."
            draft.record(e.GapRecorded("warning", "unexpected", "jump", text, target))
        elif advisory and target not in (*state.route.path, state.activity):
            text = f"Activity '{target}' was entered, to which no open exit leads."
            draft.record(e.GapRecorded("warning", "unexpected", "jump", text, target))
        return None
    if advisory or state.preferences.never_stops:
        what = "Step" if left.kind == "step" else "Checkpoint"
        text = f"{what} '{left.id}' of activity '{left.activity}' was left out on the way to '{target}'."
        draft.record(e.GapRecorded("critical", "user_only_dependency", "left_out", text, left.id))
        return None
    about = {"target": target, "left_out": left.id, "kind": left.kind, "in_activity": left.activity}
    opened = [exit_.to for exit_ in sorted(listed, key=lambda exit_: not exit_.expected) if exit_.open]
    return Refusal(Code.GATE_UNANSWERED, {**about, "first": opened[0] if opened else left.activity})


def _begin(draft: Draft, command: EnterActivity) -> Refusal | None:
    initial, target = draft.plan.workflow.initial, command.target
    if draft.plan.workflow.is_end(target):
        return no_activity(draft.plan)
    if draft.state.visit.open is not None:
        return _chosen(draft, command)
    if initial is not None and target != initial:
        refusal = _leave_out(draft, command, (Exit(initial, open=True),))
        if refusal is not None:
            return refusal
        draft.notice(
            "FIRST_ACTIVITY",
            f"First activity must be '{initial}' but '{target}' was requested. "
            "Start with the workflow's initialActivity.",
        )
        draft.record(_diverged(f"began with '{target}' instead of '{initial}'"))
    draft.record(entered(draft.plan, draft.state, target, draft.now))
    return None


def _chosen(draft: Draft, command: EnterActivity) -> Refusal | None:
    """Answer the question which activity to begin with, which another surface has put (rules 34 and 35)."""
    gate, state = entrance_gate(draft.plan.workflow), draft.state
    need = NeedAnswer(gate.id, gate, draft.now)
    question = draft.question(need)
    decided = command.decisions.get(question.digest)
    if decided is not None and decided.channel != "elicitation" and decided.option != command.target:
        about = {"checkpoint": gate.id, "decided": decided.option, "first": decided.option}
        return Refusal(Code.USER_MUST_DECIDE, about)
    decision = decided or Decision(command.target, "agent", command.client)
    if not counts(decision, state, gate.id, command.terms):
        unanswered = (Unanswered(gate.id, question),)
        return Refusal(Code.USER_MUST_DECIDE, {"checkpoint": gate.id}, unanswered=unanswered)
    answer = draft.resolved(need, decision)
    draft.record(answer, *undecided_gap(state, answer))
    draft.record(entered(draft.plan, draft.state, decision.option, draft.now))
    return None


def _take(draft: Draft, command: EnterActivity) -> Refusal | None:
    """Take an exit that is open (rule 22); in never-stop mode a closed one, if none is open."""
    pending, target = draft.skip_optional(), command.target
    while lacks_unset(pending) and draft.state.preferences.never_stops:
        draft.record(*without_input(draft, pending))
        pending = draft.skip_optional()
    if draft.state.visit.open is not None:
        return gate_open(draft.plan, draft.state, {"target": target}, command.terms)
    if lacks_unset(pending):
        return input_required(pending)
    if not isinstance(pending, NeedExit):
        return Refusal(Code.ACTIVITY_NOT_COMPLETE, {"activity": draft.state.activity})
    exit_ = _matching(draft, pending.exits, target)
    valid = [listed.to for listed in pending.exits if listed.open]
    if exit_ is not None and exit_.open:
        _cross(draft, exit_.to, via="claim" if exit_.unset else "transition")
        return None
    if exit_ is None or valid or exit_.decided or not draft.state.preferences.never_stops:
        return Refusal(Code.INVALID_TRANSITION, {"target": target, "valid": valid})
    text = f"No exit of activity '{draft.state.activity}' was open; '{exit_.to}' was taken."
    draft.record(e.GapRecorded("critical", "unexpected", "missing_input", text))
    _cross(draft, exit_.to, via="gap")
    return None


def _matching(draft: Draft, listed: tuple[Exit, ...], target: str) -> Exit | None:
    """The exit to the target; the words for the end all mean the same (rule 21)."""
    exact = next((exit_ for exit_ in listed if exit_.to == target), None)
    if exact is not None or not draft.plan.workflow.is_end(target):
        return exact
    return next((exit_ for exit_ in listed if draft.plan.workflow.is_end(exit_.to)), None)


def _cross(draft: Draft, target: str, *, via: Literal["claim", "transition", "jump", "gap"]) -> None:
    """Record leaving the activity for the target without the children that still run, and arriving there."""
    draft.abandon_children()
    _notice_unstarted(draft)
    plan, state = draft.plan, draft.state
    expected = chosen_exit(plan, state)
    if expected is not None and expected.to == target:
        leaving = left(plan, state, expected)
        draft.record(leaving, *consequences(leaving))
    else:
        condition = next((exit_.condition for exit_ in exits(plan, state) if exit_.to == target), "")
        draft.record(replace(left(plan, state, ChosenExit(target, "transition", condition)), via=via))
    draft.record(arrived(plan, draft.state, draft.now, jumped=via == "jump"))


def _notice_unstarted(draft: Draft) -> None:
    """Say which workflows the activity or its steps trigger, and nobody has started (rule 35)."""
    if draft.policy.gates == "pending":  # the document of `gated` has no child sessions
        return
    activity, visit = draft.plan.workflow.activity(draft.state.activity), draft.state.visit
    assert activity is not None, "only an activity that was entered is left"
    done = {item_of(key) for key in visit.done}
    declared = {trigger.workflow: f"activity '{activity.id}'" for trigger in activity.triggers}
    for step in activity.steps():
        if step.id in done:
            declared |= {trigger.workflow: f"step '{step.id}'" for trigger in step.triggers}
    for workflow, by in declared.items():
        if workflow not in visit.triggered:
            text = f"Workflow '{workflow}', which {by} triggers, was not started."
            draft.notice("CHILD_NOT_STARTED", text)


def _advise(draft: Draft, command: EnterActivity, listed: tuple[Exit, ...]) -> None:
    """Warn about a jump, as the session documents do, and record the divergence."""
    activity, target = draft.state.activity, command.target
    exit_ = _matching(draft, listed, target)
    if exit_ is None:
        targets = ", ".join(other.to for other in listed)
        again = ". It was entered again: all of it is due anew." if target == activity else ""
        draft.notice(
            "NOT_A_TRANSITION",
            f"Activity '{target}' is not a direct transition from '{activity}'. "
            f"Valid transitions: [{targets}]{again}",
        )
        summary = f"went from '{activity}' to '{target}', which it does not lead to"
    else:
        chosen = chosen_exit(draft.plan, draft.state)
        because = f"requires condition '{exit_.condition}', which does not hold."
        if not exit_.condition and chosen is not None:
            decides = f"'{chosen.condition}' holds" if chosen.condition else "a decision was made"
            because = f"is open only when nothing else decides, but {decides}: '{chosen.to}' is expected."
        draft.notice("CONDITION_FALSE", f"Transition to '{target}' {because}")
        summary = f"went from '{activity}' to '{target}' against its condition"
        _advise_condition(draft, command)
    draft.record(_diverged(summary))


def _advise_condition(draft: Draft, command: EnterActivity) -> None:
    """Warn if the condition that the agent claims is not the declared one."""
    activity = draft.plan.workflow.activity(draft.state.activity)
    if command.claimed_condition is None or activity is None:
        return
    claimed, target = command.claimed_condition, command.target
    conditions = [transition.condition for transition in activity.transitions if transition.to == target]
    if not conditions:
        return
    texts = [describe(condition) for condition in conditions if condition is not None]
    plain = claimed in ("", "default")
    if texts and len(texts) == len(conditions) and plain:
        claim = f"'{claimed}'" if claimed else "no condition"
        text = f"Transition to '{target}' requires condition '{texts[0]}' but agent claimed {claim}."
        draft.notice("CONDITION_CLAIM", text)
    elif not texts and not plain:
        text = (
            f"Transition to '{target}' is the default (no condition) but agent claimed condition '{claimed}'."
        )
        draft.notice("CONDITION_CLAIM", text)
    elif texts and not plain and claimed not in texts:
        text = f"Condition mismatch for transition to '{target}': workflow defines '{texts[0]}'"
        draft.notice("CONDITION_CLAIM", f"{text} but agent claimed '{claimed}'.")


def _diverged(summary: str) -> e.DivergenceRecorded:
    return e.DivergenceRecorded("efficiency_skip", f"The agent {summary}.")
