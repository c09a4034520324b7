"""Refusals as sentences, in the words that all surfaces share: activity, step, checkpoint, option, loop.

No sentence names a tool; what to do next is in each surface's own table, its `errors` module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.prompts import text_of
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json

REPORT = (
    "Nothing was changed, and the same call is refused again; other calls work. "
    "Tell the user to report it, with what `interlock verify` says about the session."
)
INBOX = "Tell the user to open the inbox (interlock inbox)."


def only_the_user_answers(refusal: Refusal) -> bool:
    """Say whether the question behind the refusal is for the user alone (rule 27)."""
    return bool(refusal.about.get("inbox")) and refusal.code is not Code.USER_MUST_DECIDE


class Words(Struct, frozen=True):
    """A refusal in the words of one surface."""

    message: str
    next_action: str


def names(about: Mapping[str, Json], key: str) -> str:
    """Join the names that a refusal lists under a key."""
    values = about.get(key)
    return ", ".join(map(str, values)) if isinstance(values, (list, tuple)) else ""


def shape(about: Mapping[str, Json]) -> str:
    """Write the variables that a refusal asks for, with placeholders for their values."""
    example = about.get("example")
    return msgspec.json.encode(example).decode() if example else names(about, "variables")


_FIELDS: Mapping[Code, tuple[str, ...]] = {
    Code.RUN_ABANDONED: ("abandoned", "at"),
    Code.DECISION_PENDING: ("checkpoint", "activity", "iteration", "item"),
    Code.GATE_UNANSWERED: (
        "checkpoint",
        "instance",
        "iteration",
        "item",
        "pending",
        "left_out",
        "in_activity",
        "first",
    ),
    Code.ACTIVITY_NOT_FOUND: ("activities",),
    Code.INVALID_TRANSITION: ("valid",),
    Code.CHECKPOINT_NOT_FOUND: ("checkpoints",),
    Code.CHECKPOINT_NOT_ACTIVE: ("pending",),
    Code.CHECKPOINT_ALREADY_ACTIVE: ("checkpoint",),
    Code.CHECKPOINT_ALREADY_ANSWERED: ("checkpoint", "option", "instance"),
    Code.OPTION_NOT_FOUND: ("options",),
    Code.INPUT_REQUIRED: ("step", "variables", "example"),
    Code.OUTPUT_REQUIRED: ("step", "example", "examples"),
    Code.ROUND_DUE: ("loop", "iteration", "steps"),
    Code.REASK_IMPOSSIBLE: ("variables",),
    Code.GUARD_REFUSED: ("invariant", "detail"),
}


def fields(refusal: Refusal) -> dict[str, Json]:
    """Return the data of a refusal that an answer has beside its sentence: what a program may act on."""
    allowed = _FIELDS.get(refusal.code, ())
    return {name: value for name, value in refusal.about.items() if name in allowed}


def sentence(refusal: Refusal) -> str:
    """Say why the command was refused, and which of its variables were not taken."""
    reason = _sentence(refusal)
    also = list(refusal.notices.messages)
    if done := names(refusal.about, "claimed"):
        also.insert(0, f"Recorded as done: {done}.")
    if target := refusal.about.get("decided_exit"):
        also.insert(0, f"The answered checkpoint leads to '{target}', where nothing more is needed.")
    if also and not reason.endswith((".", "?", "!")):
        reason += "."
    return " ".join([reason, *also])


def after_checks(refusal: Refusal) -> str:
    """Say what to do about a check that has failed, was not run, or was run again."""
    if refusal.code is Code.CHECKED_AGAIN:
        return "Show the user the checkpoint as it is now, and send the answer to it."
    if refusal.about["for_user"]:
        return "Tell the user, and end your turn. Then send the same call again."
    return "Correct what the check finds, then send the same call again: the server runs it again."


def _sentence(refusal: Refusal) -> str:
    """Say why the command was refused; texts that the documents quote are kept word for word."""
    about = refusal.about
    gate = f"'{about.get('checkpoint')}'"
    match refusal.code:
        case Code.RUN_FINISHED:
            return "The workflow is completed."
        case Code.RUN_ABANDONED:
            return f"The run was {str(about['abandoned']).rstrip('.')}."
        case Code.DECISION_PENDING | Code.GATE_UNANSWERED:
            return _held(refusal)
        case Code.NO_ACTIVITY:
            return "No activity has been entered yet."
        case Code.ACTIVITY_NOT_FOUND:
            return f"Activity not found: {about['target']}"
        case Code.ACTIVITY_NOT_COMPLETE:
            return f"Activity '{about['activity']}' is not complete"
        case Code.INVALID_TRANSITION:
            return f"No valid transition to '{about['target']}'. Valid: {names(about, 'valid') or 'none'}"
        case Code.STEP_NOT_FOUND:
            return f"Step not found: {about['step']}"
        case Code.STEP_NOT_PENDING:
            return f"Step '{about['step']}' is not pending"
        case Code.STEP_ALREADY_COMPLETE:
            return f"Step '{about['step']}' is already complete"
        case Code.INPUT_REQUIRED if "limit" in about:
            return (
                f"Activity '{about['activity']}' would claim more than {about['limit']} events in one call."
            )
        case (
            Code.INPUT_REQUIRED
            | Code.OUTPUT_REQUIRED
            | Code.LOOP_ITEMS_REQUIRED
            | Code.REASK_IMPOSSIBLE
            | Code.CHECK_FAILED
            | Code.CHECKED_AGAIN
        ):
            return _missing(about)
        case Code.VARIABLES_TOO_LARGE:
            return f"The run's variables would have {about['bytes']} bytes; at most {about['most']} are kept."
        case Code.GUARD_REFUSED:
            return f"Interlock's guard refused this: {about['detail']} ({about['invariant']})."
        case Code.CHECKPOINT_NOT_FOUND:
            return f"Checkpoint not found: {about['checkpoint']} in activity {about['activity']}"
        case Code.CHECKPOINT_NOT_ACTIVE if "pending" in about:
            return f"Checkpoint {gate} is not pending. Pending checkpoints: [{names(about, 'pending')}]"
        case Code.CHECKPOINT_NOT_ACTIVE if "checkpoint" in about:
            return f"Checkpoint {gate} is not reached: its condition is false, or its loop has passed it."
        case Code.CHECKPOINT_NOT_ACTIVE:
            return "No checkpoint is active."
        case Code.CHECKPOINT_ALREADY_ACTIVE:
            text = f"Checkpoint {gate} is already active and awaiting orchestrator resolution."
            return f"Cannot yield checkpoint '{about['requested']}': {text}"
        case Code.CHECKPOINT_ALREADY_ANSWERED:
            return f"Checkpoint {gate} is already answered: {about['option'] or 'dismissed'}"
        case Code.CHECKPOINT_STILL_ACTIVE:
            text = "is still active and has not been resolved by the orchestrator."
            return f"Cannot resume: Checkpoint {gate} {text}"
        case Code.CHECKPOINT_NOT_YIELDED if about.get("yielded_by"):
            yielding = names(about, "yielded_by")
            return f"Cannot resume: a checkpoint is resumed by the agent that yielded it ({yielding})."
        case Code.CHECKPOINT_NOT_YIELDED:
            return "Cannot resume: no yielded checkpoint waits to be resumed."
        case Code.OPTION_NOT_FOUND:
            valid = names(about, "options")
            return f"Invalid option '{about['option']}' for checkpoint {gate}. Valid options: [{valid}]"
        case Code.RESOLUTION_MODE:
            return "Exactly one of option_id, auto_advance, or condition_not_met must be provided."
        case Code.TOO_FAST:
            return (
                f"Checkpoint response too fast ({_waited(about)} minimum). "
                "Present the checkpoint to the user before responding."
            )
        case Code.NOT_AUTO_ADVANCING if about.get("blocking"):
            text = "Blocking checkpoints require an explicit option_id from the user."
            return f"Cannot auto-advance blocking checkpoint {gate}. {text}"
        case Code.NOT_AUTO_ADVANCING:
            return f"Cannot auto-advance checkpoint {gate}: missing defaultOption or autoAdvanceMs."
        case Code.TIMER_RUNNING:
            text = f"Wait for the full autoAdvanceMs ({about['minimum_ms']}ms) before auto-advancing."
            return f"Auto-advance timer not elapsed for checkpoint {gate} ({_waited(about)}). {text}"
        case Code.NOT_CONDITIONAL:
            text = "Only conditional checkpoints can be dismissed with condition_not_met."
            return f"Cannot dismiss checkpoint {gate}: it has no condition field. {text}"
        case Code.CONDITION_HOLDS:
            return f"Cannot dismiss checkpoint {gate}: its condition holds ({about['condition']})."
        case Code.USER_MUST_DECIDE if "reason" in about:
            return _missing(about)
        case Code.USER_MUST_DECIDE if "decided" in about:
            return f"The user has decided checkpoint {gate}: {about['decided']}"
        case Code.USER_MUST_DECIDE if "asked" in about:
            return f"The user was asked and has not answered checkpoint {gate}."
        case Code.USER_MUST_DECIDE:
            return f"Checkpoint {gate} waits for the user's own decision."
        case Code.CHILD_RUNNING:
            return f"The run waits for its child: {names(about, 'children')}."
        case Code.LOOP_NOT_FOUND | Code.ROUND_DUE:
            return _loop(about)
        case _:
            assert_never(refusal.code)


def _held(refusal: Refusal) -> str:
    """Name the question that holds the run, and the transition that it prevents."""
    about = refusal.about
    if "left_out" in about:
        return f"Cannot transition to '{about['target']}': {_left_out(about)}"
    if "step" in about:
        return "Must respond to checkpoint before completing steps"
    if isinstance(pending := about.get("pending"), (list, tuple)):
        text = f"{len(pending)} unresolved checkpoint(s) on activity '{about['activity']}'."
    elif refusal.code is Code.DECISION_PENDING:
        text = f"Active checkpoint '{about['checkpoint']}'{_round(about)} on activity '{about['activity']}'."
    else:
        text = (
            f"Checkpoint '{about['checkpoint']}'{_round(about)} must be answered first: {about['question']}"
        )
    return f"Cannot transition to '{about['target']}': {text}" if "target" in about else text


def _left_out(about: Mapping[str, Json]) -> str:
    """Say what a jump would leave out."""
    left, activity = about["left_out"], about["in_activity"]
    match about["kind"]:
        case "choice":
            return f"checkpoint '{left}' decides it, and its answer does not lead there from '{activity}'."
        case "step":
            return f"a path to it passes step '{left}' of activity '{activity}', which is not done."
        case _:
            return f"a path to it passes checkpoint '{left}' of activity '{activity}', which is not answered."


def _round(about: Mapping[str, Json]) -> str:
    """Name the round of a loop that a refusal is about, and its item."""
    if "iteration" not in about:
        return ""
    item = f": {text_of(about['item'])}" if "item" in about else ""
    return f" (iteration {about['iteration']}{item})"


def _loop(about: Mapping[str, Json]) -> str:
    if "condition" not in about:
        return f"Loop '{about['loop']}' is not waiting to be advanced"
    return f"Round {about['iteration']} of loop '{about['loop']}' is due: {about['condition']}."


def _missing(about: Mapping[str, Json]) -> str:
    claim = f"Step '{about['step']}' cannot be claimed: " if "step" in about else ""
    return f"{claim}{about['reason']}"


def _waited(about: Mapping[str, Json]) -> str:
    elapsed, minimum = about["elapsed_ms"], about["minimum_ms"]
    assert isinstance(elapsed, int)
    assert isinstance(minimum, int)
    return f"{elapsed // 1000}s < {minimum / 1000:g}s"
