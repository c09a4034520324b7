"""What session and gated say alike about refusals and errors; what differs is in each surface's own table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from interlock.core.run.notices import GAP_CLOSED, USERS_GAPS
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.runs.brief import outcome_text
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import REPORT, Words, after_checks, names, sentence, shape

ASK_THE_USER = "Send the user's choice as option_id with respond_checkpoint."


def entry_action(position: Position) -> str:
    """Say what to do next in a session that has entered no activity yet, or has ended."""
    if position.state.abandoned is not None:
        return "Nothing: the run was abandoned. Call start_session without session_token to begin a new one."
    if position.state.finished:
        return f"Nothing: the workflow is completed.{_closing(position.state)}"
    workflow = position.plan.workflow
    first = workflow.initial or " or ".join(activity.id for activity in workflow.activities)
    return f"Call get_workflow, then next_activity with activity_id {first}."


def completed(position: Position, state: RunState) -> dict[str, Json]:
    """Return what `next_activity` answers at the end, beside the id."""
    outcome = outcome_text(position.plan.workflow, state, position.session_id)
    body: dict[str, Json] = {"name": "Completed", "status": "completed", "outcome": outcome}
    return {**body, "next_action": f"Nothing.{_closing(state)}"} if state.gaps else body


def _closing(state: RunState) -> str:
    """Say how a gap is closed when the workflow is completed."""
    if not state.gaps:
        return ""
    if not state.agent_resolves_gaps:
        return f" Open gaps: {state.gaps}. {USERS_GAPS}"
    call = "next_activity with activity_id '__terminal__' and a step_manifest entry of any step with output"
    return f" When a gap is closed later: {call} {GAP_CLOSED}"


def actions(refusals: Sequence[Refusal], words: Callable[[Refusal], Words]) -> str:
    """Say what to do about several refusals; steps that lack their output are named together."""
    steps: dict[str, None] = {}
    others: list[str] = []
    for refusal in refusals:
        match refusal.code:
            case Code.OUTPUT_REQUIRED if refusal.about.get("from_user"):
                shown = msgspec.json.encode(refusal.about["example"]).decode()
                others += [str(refusal.about["reason"]), words(refusal).next_action, f"Example: {shown}."]
            case Code.OUTPUT_REQUIRED:
                wanted = refusal.about.get("requirement")
                steps[f"{refusal.about['step']}{f' ({wanted})' if wanted else ''}"] = None
            case Code.INPUT_REQUIRED:
                others += [str(refusal.about["reason"]), words(refusal).next_action]
            case _:
                others.append(words(refusal).next_action)
    outputs = [f"Send in step_manifest what these steps produce: {', '.join(steps)}."] if steps else []
    return " ".join(dict.fromkeys([*outputs, *others]))


def words(refusal: Refusal) -> Words:
    """Put a refusal into the words that both surfaces share."""
    return Words(sentence(refusal), _next_action(refusal))


def _next_action(refusal: Refusal) -> str:
    about = refusal.about
    match refusal.code:
        case Code.RUN_FINISHED:
            return "Start a new session with start_session."
        case Code.RUN_ABANDONED:
            return "It cannot go on; what was done stays readable. Start a new session with start_session."
        case Code.DECISION_PENDING:
            return "Resolve it with respond_checkpoint first."
        case Code.GATE_UNANSWERED:
            gate = about.get("checkpoint") or names(about, "pending")
            return f"Answer it with respond_checkpoint first: {gate}."
        case Code.NO_ACTIVITY:
            return "Call next_activity first."
        case Code.ACTIVITY_NOT_FOUND:
            return f"Send one of these as activity_id: {names(about, 'activities')}."
        case (
            Code.ACTIVITY_NOT_COMPLETE
            | Code.STEP_NOT_FOUND
            | Code.STEP_NOT_PENDING
            | Code.STEP_ALREADY_COMPLETE
        ):
            return "Do the steps of the activity and list them in step_manifest."
        case Code.INVALID_TRANSITION:
            return f"Call next_activity with one of: {names(about, 'valid') or 'none'}."
        case Code.CHECKPOINT_ALREADY_ANSWERED:
            return "Go on with the recorded answer."
        case Code.GUARD_REFUSED:
            return REPORT
        case Code.REASK_IMPOSSIBLE:
            return (
                "Go on without reask. To ask anew what another activity has asked, enter that activity again "
                "with next_activity."
            )
        case Code.VARIABLES_TOO_LARGE:
            return "Send less in variables: keep large data in files, and null for a name that is done with."
        case Code.OUTPUT_REQUIRED:
            step = f"step '{about['step']}'" if "step" in about else "the step"
            if about.get("from_user"):
                return f"Ask the user, then send the answer as an artifact of {step} in step_manifest."
            wanted = f" ({about['requirement']})" if about.get("requirement") else ""
            return f"Send what {step} produces{wanted} as its output in step_manifest."
        case Code.INPUT_REQUIRED if "limit" in about:
            return "Send shorter lists for its loops in variables."
        case Code.INPUT_REQUIRED if about.get("from_user"):
            return f"Ask the user, then send in variables: {shape(about)}."
        case Code.INPUT_REQUIRED | Code.LOOP_ITEMS_REQUIRED:
            return f"Send in variables: {shape(about)}."
        case Code.ROUND_DUE:
            round_ = f"Do its steps and send them in step_manifest: {names(about, 'steps')}."
            if about.get("steered"):
                return f"{round_} When it is over, the artifact wr.loop_control says so (decision: stop)."
            return f"{round_} If the loop is over, send the variables that end it."
        case Code.CHECKPOINT_NOT_FOUND if about.get("checkpoints"):
            return f"Send one of these as checkpoint_id: {names(about, 'checkpoints')}."
        case Code.CHECKPOINT_NOT_FOUND:
            return "Go on: this activity has no checkpoints."
        case Code.CHECKPOINT_NOT_ACTIVE if about.get("pending"):
            return f"Answer one that is pending: {names(about, 'pending')}."
        case (
            Code.CHECKPOINT_NOT_ACTIVE
            | Code.CHECKPOINT_NOT_YIELDED
            | Code.LOOP_NOT_FOUND
            | Code.CHILD_RUNNING
        ):
            return "Go on with the activity."
        case Code.CHECKPOINT_ALREADY_ACTIVE | Code.CHECKPOINT_STILL_ACTIVE:
            return "Have the active checkpoint resolved with respond_checkpoint first."
        case Code.OPTION_NOT_FOUND:
            return f"Send one of these as option_id: {names(about, 'options')}."
        case Code.RESOLUTION_MODE:
            return "Send exactly one of them."
        case Code.TOO_FAST:
            return "Present the checkpoint to the user, then respond with the user's choice."
        case Code.TIMER_RUNNING:
            return f"Wait, or ask the user. {ASK_THE_USER}"
        case Code.CHECK_FAILED | Code.CHECKED_AGAIN:
            return after_checks(refusal)
        case Code.NOT_AUTO_ADVANCING | Code.NOT_CONDITIONAL | Code.CONDITION_HOLDS:
            return ASK_THE_USER
        case Code.USER_MUST_DECIDE if "decided" in about:
            return f"Respond with option_id '{about['decided']}'."
        case Code.USER_MUST_DECIDE if "rejected" in about:
            return "Do what the user says about it, then call again: the user is asked once more."
        case Code.USER_MUST_DECIDE:
            return "Tell the user to open the inbox (interlock inbox)."
        case _:
            assert_never(refusal.code)


def recovery(error: LedgerError) -> str:
    """Say what to do about an error of the ledger."""
    match error.code:
        case "TOKEN_UNKNOWN_NODE":
            return "Call start_session to begin a session."
        case "TOKEN_OTHER_TIMELINE":
            return (
                "Call start_session with the session_token of this answer to see where the session is, and go"
                " on from there. What you sent after that is not recorded: send it again."
            )
        case "TOKEN_BAD_SIGNATURE":
            return "Copy the token again, whole; if that fails too, call start_session."
        case "TOKEN_KEY_RETIRED":
            return "Begin a session with start_session; the user finds the old one with interlock sessions."
        case "TOKEN_UNSUPPORTED_VERSION" | "TOKEN_SCOPE_MISMATCH":
            return error.next_action or "Call start_session to begin a session."
        case "TOKEN_WORKFLOW_HASH_MISMATCH":
            return f"{error.next_action} To go on, begin a new session with start_session."
        case _:
            return error.next_action
