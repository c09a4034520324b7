"""What session and gated say alike about refusals and errors; what differs is in each surface's own table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from interlock.core.run.notices import GAP_CLOSED, USERS_GAPS
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.run.state import RunState
from interlock.core.values import Json
from interlock.ledger.errors import LedgerError
from interlock.ledger.runs.brief import outcome_text
from interlock.ledger.runs.position import Position
from interlock.surfaces.refusals import (
    AFTER_CHECKS,
    AT_ADDRESS,
    BY_ADDRESS,
    BY_FORM,
    INBOX,
    MESSAGES,
    REPORT,
    Words,
    only_the_user_answers,
    sentence,
)
from interlock.surfaces.shared.sentences import Table, When, said

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
    return {**body, "next_action": f"Nothing.{_closing(state)}"} if state.gaps.open else body


def _closing(state: RunState) -> str:
    """Say how a gap is closed when the workflow is completed."""
    if not state.gaps.open:
        return ""
    if not state.agent_resolves_gaps:
        return f" Open gaps: {state.gaps.open}. {USERS_GAPS}"
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


LIST_STEPS = "Do the steps of the activity and list them in step_manifest."
GO_ON = "Go on with the activity."
RESOLVE_FIRST = "Have the active checkpoint resolved with respond_checkpoint first."
ANSWER_FIRST = (
    "Answer it with respond_checkpoint first: {gates}.",
    "Take the declared path: its activities one after another, with next_activity.",
)
ACTIONS: Table = {
    **AFTER_CHECKS,
    Code.RUN_FINISHED: "Start a new session with start_session.",
    Code.RUN_ABANDONED: (
        "It cannot go on; what was done stays readable. Start a new session with start_session."
    ),
    Code.DECISION_PENDING: "Resolve it with respond_checkpoint first.",
    Code.GATE_UNANSWERED: ANSWER_FIRST,
    Code.NO_ACTIVITY: (
        "Call next_activity with activity_id '{initial}'.",
        "Call next_activity with the activity that fits the goal: {activities}.",
    ),
    Code.ACTIVITY_NOT_FOUND: "Send one of these as activity_id: {activities}.",
    Code.ACTIVITY_NOT_COMPLETE: LIST_STEPS,
    Code.STEP_NOT_FOUND: LIST_STEPS,
    Code.STEP_NOT_PENDING: LIST_STEPS,
    Code.STEP_ALREADY_COMPLETE: LIST_STEPS,
    Code.INVALID_TRANSITION: (
        "Call next_activity with one of: {valid}.",
        "Call next_activity with one of: none.",
    ),
    Code.CHECKPOINT_ALREADY_ANSWERED: "Go on with the recorded answer.",
    Code.GUARD_REFUSED: REPORT,
    Code.REASK_IMPOSSIBLE: (
        "Go on without reask. To ask anew what another activity has asked, enter that activity again "
        "with next_activity."
    ),
    Code.VARIABLES_TOO_LARGE: (
        "Send less in variables: keep large data in files, and null for a name that is done with."
    ),
    Code.OUTPUT_REQUIRED: (
        When("form", f"Send step '{{step}}' in step_manifest: {BY_FORM}"),
        When(
            "from_user",
            "Ask the user, then send the answer as an artifact of step '{step}' in step_manifest.",
        ),
        "Send what step '{step}' produces ({requirement}) as its output in step_manifest.",
        "Send what step '{step}' produces as its output in step_manifest.",
        "Send what the step produces as its output in step_manifest.",
    ),
    Code.INPUT_REQUIRED: (
        When("form", f"Send step '{{step}}' in step_manifest: {BY_FORM}"),
        When("from_user", "Ask the user, then send in variables: {shape}."),
        "Send in variables: {shape}.",
        "Send shorter lists for its loops in variables.",
    ),
    Code.LOOP_ITEMS_REQUIRED: "Send in variables: {shape}.",
    Code.ROUND_DUE: (
        When(
            "repeated",
            "The output of {repeated} was sent before, in the same words, and counts for that round only. "
            "Do the steps of this one, and say in step_manifest what came of it: {steps}.",
        ),
        When(
            "steered",
            "Do its steps and send them in step_manifest: {steps}. "
            "When it is over, the artifact wr.loop_control says so (decision: stop).",
        ),
        "Do its steps and send them in step_manifest: {steps}. "
        "If the loop is over, send the variables that end it.",
    ),
    Code.CHECKPOINT_NOT_FOUND: (
        "Send one of these as checkpoint_id: {checkpoints}.",
        "Go on: this activity has no checkpoints.",
    ),
    Code.CHECKPOINT_NOT_ACTIVE: ("Answer one that is pending: {pending}.", GO_ON),
    Code.CHECKPOINT_NOT_YIELDED: GO_ON,
    Code.LOOP_NOT_FOUND: GO_ON,
    Code.CHILD_RUNNING: GO_ON,
    Code.CHECKPOINT_ALREADY_ACTIVE: RESOLVE_FIRST,
    Code.CHECKPOINT_STILL_ACTIVE: RESOLVE_FIRST,
    Code.OPTION_NOT_FOUND: "Send one of these as option_id: {options}.",
    Code.RESOLUTION_MODE: "Send exactly one of them.",
    Code.TOO_FAST: "Present the checkpoint to the user, then respond with the user's choice.",
    Code.TIMER_RUNNING: f"Wait, or ask the user. {ASK_THE_USER}",
    Code.NOT_AUTO_ADVANCING: ASK_THE_USER,
    Code.NOT_CONDITIONAL: ASK_THE_USER,
    Code.CONDITION_HOLDS: ASK_THE_USER,
    Code.USER_MUST_DECIDE: (
        "Respond with option_id '{decided}'.",
        When("rejected", "Do what the user says about it, then call again: the user is asked once more."),
        When("address", AT_ADDRESS),
        When("shows_address", f"Send step '{{step}}' in step_manifest: {BY_ADDRESS}"),
        INBOX,
    ),
}


def in_words(refusal: Refusal, actions: Table, messages: Table = MESSAGES) -> Words:
    """Put a refusal into the words of a surface; what only the user answers is answered in the inbox."""
    text = sentence(refusal, messages)
    if activity := refusal.about.get("first") or refusal.about.get("decided_exit"):
        return Words(text, f"Call next_activity with activity_id '{activity}' first.")
    # A question that nobody has put yet is in no inbox on session: its worker yields it first.
    is_inbox = only_the_user_answers(refusal) and refusal.code is not Code.GATE_UNANSWERED
    return Words(text, INBOX if is_inbox else said(actions, refusal))


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
