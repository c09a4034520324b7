"""Moving between activities: the walk out of one, the way that was expected, the one that was taken."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from interlock.core.definition.conditions import describe
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Activity
from interlock.core.engine.claims import Walk, gate_open
from interlock.core.engine.draft import Draft
from interlock.core.engine.exits import ChosenExit, chosen_exit, exits
from interlock.core.engine.gates import pending_gates
from interlock.core.engine.settle import arrived, left
from interlock.core.run import events as e
from interlock.core.run.commands import EnterActivity
from interlock.core.run.outcomes import Code, Decided, Done, Exit, NeedAnswer, NeedExit, Refusal
from interlock.core.run.state import RunState


def enter(plan: Plan, state: RunState, command: EnterActivity) -> Decided | Refusal:
    """Leave the current activity by a way it has, and enter the target."""
    draft = Draft(plan, state, command.policy, command.now)
    if command.variables:
        draft.record(e.ContextSet(command.variables))
    refusal = _impossible(draft, command.target) or _go(draft, command)
    return refusal.keeping(command.variables) if refusal else draft.decided()


def _impossible(draft: Draft, target: str) -> Refusal | None:
    state, workflow = draft.state, draft.plan.workflow
    if state.finished:
        return Refusal(Code.RUN_FINISHED)
    if state.open is not None:
        return gate_open(state, {"target": target})
    if not workflow.is_end(target) and workflow.activity(target) is None:
        listed = [activity.id for activity in workflow.activities]
        return Refusal(Code.ACTIVITY_NOT_FOUND, {"target": target, "activities": listed})
    return None


def _go(draft: Draft, command: EnterActivity) -> Refusal | None:
    if draft.state.activity is None:
        return _begin(draft, command)
    if draft.policy.exits != "claimed":
        return _take(draft, command)
    refusal = _demanded(draft, command)
    if refusal:
        return refusal
    _abandon_children(draft)
    arrival = Walk(draft, command, None).go()
    if isinstance(arrival, Refusal):
        return arrival
    assert not isinstance(arrival, (NeedAnswer, Done)), "a walk to the way out ends there"
    _advise(draft, command)
    return _cross(draft, command.target, via="claim")


def _demanded(draft: Draft, command: EnterActivity) -> Refusal | None:
    """On `gated` nobody goes elsewhere while a required gate has neither answer nor dismissal (rule 15)."""
    state, terms = draft.state, command.terms
    if draft.policy.gates != "pending" or state.preferences.never_stops or terms.enforcement == "advisory":
        return None
    pending = [gate.id for gate in pending_gates(draft.plan, state)]
    if not pending:
        return None
    about = {"target": command.target, "activity": state.activity, "pending": pending}
    return Refusal(Code.GATE_UNANSWERED, about)


def _abandon_children(draft: Draft) -> None:
    """A parent that goes on by itself leaves its running children behind (rule 35)."""
    for session, workflow in draft.state.children.items():
        draft.record(e.ChildReturned(workflow, session, "abandoned"))


def _begin(draft: Draft, command: EnterActivity) -> Refusal | None:
    initial = draft.plan.workflow.initial
    if draft.plan.workflow.is_end(command.target):
        return Refusal(Code.NO_ACTIVITY)
    if initial is not None and command.target != initial:
        draft.notice(
            "FIRST_ACTIVITY",
            f"First activity must be '{initial}' but '{command.target}' was requested. "
            "Start with the workflow's initialActivity.",
        )
        draft.record(_diverged(f"began with '{command.target}' instead of '{initial}'"))
    from interlock.core.engine.settle import entered

    draft.record(entered(draft.plan, draft.state, command.target, draft.now))
    return None


def _take(draft: Draft, command: EnterActivity) -> Refusal | None:
    """Navigation refuses a way that is not open (rule 22)."""
    pending = draft.settle()
    if not isinstance(pending, NeedExit):
        return Refusal(Code.ACTIVITY_NOT_COMPLETE, {"activity": draft.state.activity})
    exit_ = _matching(draft, pending.exits, command.target)
    if exit_ is None:
        return _no_way(pending.exits, command.target)
    if not exit_.open:
        return _closed(draft, pending.exits, exit_, command)
    _abandon_children(draft)
    return _cross(draft, exit_.to, via="claim" if exit_.unset else "transition")


def _closed(draft: Draft, listed: tuple[Exit, ...], exit_: Exit, command: EnterActivity) -> Refusal | None:
    """Never-stop goes on where no way is open, and says so for good."""
    if not draft.state.preferences.never_stops or any(one.open for one in listed):
        return _no_way(listed, command.target)
    text = f"No way out of activity '{draft.state.activity}' was open; '{exit_.to}' was taken."
    draft.record(e.GapRecorded("critical", "unexpected", "missing_input", text))
    return _cross(draft, exit_.to, via="gap")


def _matching(draft: Draft, listed: tuple[Exit, ...], target: str) -> Exit | None:
    """The way to the target; the words for the end all mean the same (rule 21)."""
    exact = next((exit_ for exit_ in listed if exit_.to == target), None)
    if exact is not None or not draft.plan.workflow.is_end(target):
        return exact
    return next((exit_ for exit_ in listed if draft.plan.workflow.is_end(exit_.to)), None)


def _no_way(listed: tuple[Exit, ...], target: str) -> Refusal:
    valid = [exit_.to for exit_ in listed if exit_.open]
    return Refusal(Code.INVALID_TRANSITION, {"target": target, "valid": valid})


def _cross(draft: Draft, target: str, *, via: Literal["claim", "transition", "gap"]) -> Refusal | None:
    expected = chosen_exit(draft.plan, draft.state)
    if expected is not None and expected.to == target:
        draft.record(left(draft.plan, draft.state, expected))
    else:
        found = ChosenExit(target, "transition", _condition_to(draft, target))
        draft.record(replace(left(draft.plan, draft.state, found), via=via))
    draft.record(arrived(draft.plan, draft.state, draft.now))
    return None


def _condition_to(draft: Draft, target: str) -> str:
    listed = exits(draft.plan, draft.state) if draft.state.activity else ()
    return next((exit_.condition for exit_ in listed if exit_.to == target), "")


def _advise(draft: Draft, command: EnterActivity) -> None:
    """What the session documents call validation: warnings, and a divergence event for a wrong way."""
    activity = draft.plan.workflow.activity(draft.state.activity)
    assert activity is not None
    if command.target == activity.id:
        return
    listed = exits(draft.plan, draft.state)
    exit_ = _matching(draft, listed, command.target)
    if exit_ is None:
        targets = ", ".join(one.to for one in listed)
        draft.notice(
            "NOT_A_TRANSITION",
            f"Activity '{command.target}' is not a direct transition from '{activity.id}'. "
            f"Valid transitions: [{targets}]",
        )
        draft.record(_diverged(f"went from '{activity.id}' to '{command.target}', which it does not lead to"))
    elif not exit_.open:
        draft.notice(
            "CONDITION_FALSE",
            f"Transition to '{command.target}' requires condition '{exit_.condition}', which does not hold.",
        )
        draft.record(_diverged(f"went from '{activity.id}' to '{command.target}' against its condition"))
    if command.claimed_condition is not None and exit_ is not None:
        _advise_condition(draft, activity, command)


def _advise_condition(draft: Draft, activity: Activity, command: EnterActivity) -> None:
    claimed, target = command.claimed_condition or "", command.target
    declared = [one for one in activity.transitions if one.to == target]
    if not declared:
        return
    texts = [describe(one.condition) for one in declared if one.condition is not None]
    plain = claimed in ("", "default")
    if texts and len(texts) == len(declared) and plain:
        said = f"'{claimed}'" if claimed else "no condition"
        text = f"Transition to '{target}' requires condition '{texts[0]}' but agent claimed {said}."
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
