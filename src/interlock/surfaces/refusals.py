"""Refusals as sentences, in the words that all surfaces share: activity, step, checkpoint, option, loop.

No sentence names a tool; what to do next is in each surface's own table, its `errors` module.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json
from interlock.surfaces.shared.sentences import Table, When, said

REPORT = (
    "Nothing was changed, and the same call is refused again; other calls work. "
    "Tell the user to report it, with what `interlock verify` says about the session."
)
INBOX = "Tell the user to open the inbox (interlock inbox), and end your turn."
BY_FORM = "the client then asks the user."
BY_ADDRESS = "the client then shows the user the address of the question, and you end your turn."
AT_ADDRESS = "The client has shown the user the address of the question: end your turn."


def only_the_user_answers(refusal: Refusal) -> bool:
    """Say whether the question behind the refusal waits in the inbox and is shown nowhere else (rule 27)."""
    return bool(refusal.about.get("inbox")) and refusal.code is not Code.USER_MUST_DECIDE


class Words(Struct, frozen=True):
    """A refusal in the words of one surface."""

    message: str
    next_action: str


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


MISSING = ("Step '{step}' cannot be claimed: {reason}", "{reason}")
UNANSWERED: tuple[str | When, ...] = (
    "{to}{path}",
    When("step", "Must respond to checkpoint before completing steps"),
    "{to}{count} unresolved checkpoint(s) on activity '{activity}'.",
)
ACTIVE = "{to}Active checkpoint '{checkpoint}'{round} on activity '{activity}'."
NOT_PENDING = (
    When("ahead", "Checkpoint '{checkpoint}' is not reached yet: other things come before it."),
    "Checkpoint '{checkpoint}' is not pending. Pending checkpoints: [{pending}]",
    When("count", "Checkpoint '{checkpoint}' is not pending. Pending checkpoints: []"),
    "Checkpoint '{checkpoint}' is not reached: its condition is false, or its loop has passed it.",
)
# Texts that the documents quote are kept word for word.
MESSAGES: Table = {
    Code.RUN_FINISHED: "The workflow is completed.",
    Code.RUN_ABANDONED: "The run was {abandoned}.",
    Code.DECISION_PENDING: (*UNANSWERED, ACTIVE),
    Code.GATE_UNANSWERED: (
        *UNANSWERED,
        "{to}Checkpoint '{checkpoint}'{round} must be answered first: {question}",
    ),
    Code.NO_ACTIVITY: "No activity has been entered yet.",
    Code.ACTIVITY_NOT_FOUND: "Activity not found: {target}",
    Code.ACTIVITY_NOT_COMPLETE: "Activity '{activity}' is not complete",
    Code.INVALID_TRANSITION: (
        "No valid transition to '{target}'. Valid: {valid}",
        "No valid transition to '{target}'. Valid: none",
    ),
    Code.STEP_NOT_FOUND: "Step not found: {step}",
    Code.STEP_NOT_PENDING: "Step '{step}' is not pending",
    Code.STEP_ALREADY_COMPLETE: "Step '{step}' is already complete",
    Code.INPUT_REQUIRED: (
        "Activity '{activity}' would claim more than {limit} events in one call.",
        *MISSING,
    ),
    Code.OUTPUT_REQUIRED: MISSING,
    Code.LOOP_ITEMS_REQUIRED: MISSING,
    Code.REASK_IMPOSSIBLE: MISSING,
    Code.CHECK_FAILED: MISSING,
    Code.CHECKED_AGAIN: MISSING,
    Code.VARIABLES_TOO_LARGE: "The run's variables would have {bytes} bytes; at most {most} are kept.",
    Code.GUARD_REFUSED: "Interlock's guard refused this: {detail} ({invariant}).",
    Code.CHECKPOINT_NOT_FOUND: "Checkpoint not found: {checkpoint} in activity {activity}",
    Code.CHECKPOINT_NOT_ACTIVE: (*NOT_PENDING, "No checkpoint is active."),
    Code.CHECKPOINT_ALREADY_ACTIVE: (
        "Cannot yield checkpoint '{requested}': "
        "Checkpoint '{checkpoint}' is already active and awaiting orchestrator resolution."
    ),
    Code.CHECKPOINT_ALREADY_ANSWERED: (
        "Checkpoint '{checkpoint}' is already answered: {option}",
        "Checkpoint '{checkpoint}' is already answered: dismissed",
    ),
    Code.CHECKPOINT_STILL_ACTIVE: (
        "Cannot resume: Checkpoint '{checkpoint}' is still active and has not been resolved by the "
        "orchestrator."
    ),
    Code.CHECKPOINT_NOT_YIELDED: (
        "Cannot resume: a checkpoint is resumed by the agent that yielded it ({yielded_by}).",
        "Cannot resume: no yielded checkpoint waits to be resumed.",
    ),
    Code.OPTION_NOT_FOUND: (
        "Invalid option '{option}' for checkpoint '{checkpoint}'. Valid options: [{options}]"
    ),
    Code.RESOLUTION_MODE: "Exactly one of option_id, auto_advance, or condition_not_met must be provided.",
    Code.TOO_FAST: (
        "Checkpoint response too fast ({waited} minimum). "
        "Present the checkpoint to the user before responding."
    ),
    Code.NOT_AUTO_ADVANCING: (
        When(
            "blocking",
            "Cannot auto-advance blocking checkpoint '{checkpoint}'. "
            "Blocking checkpoints require an explicit option_id from the user.",
        ),
        "Cannot auto-advance checkpoint '{checkpoint}': missing defaultOption or autoAdvanceMs.",
    ),
    Code.TIMER_RUNNING: (
        "Auto-advance timer not elapsed for checkpoint '{checkpoint}' ({waited}). "
        "Wait for the full autoAdvanceMs ({minimum_ms}ms) before auto-advancing."
    ),
    Code.NOT_CONDITIONAL: (
        "Cannot dismiss checkpoint '{checkpoint}': it has no condition field. "
        "Only conditional checkpoints can be dismissed with condition_not_met."
    ),
    Code.CONDITION_HOLDS: "Cannot dismiss checkpoint '{checkpoint}': its condition holds ({condition}).",
    Code.USER_MUST_DECIDE: (
        *MISSING,
        "The user has decided checkpoint '{checkpoint}': {decided}",
        When("asked", "The user was asked and has not answered checkpoint '{checkpoint}'."),
        "Checkpoint '{checkpoint}' waits for the user's own decision.",
    ),
    Code.CHILD_RUNNING: "The run waits for its child: {children}.",
    Code.LOOP_NOT_FOUND: "Loop '{loop}' is not waiting to be advanced",
    Code.ROUND_DUE: "Round {iteration} of loop '{loop}' is due: {condition}.",
}
# What to do about a check that has failed, was not run, or was run again.
AFTER_CHECKS: Table = {
    Code.CHECK_FAILED: (
        When("for_user", "Tell the user, and end your turn. Then send the same call again."),
        "Correct what the check finds, then send the same call again: the server runs it again.",
    ),
    Code.CHECKED_AGAIN: "Show the user the checkpoint as it is now, and send the answer to it.",
}


def sentence(refusal: Refusal, messages: Table = MESSAGES) -> str:
    """Say why the command was refused, and which of its variables were not taken."""
    reason, about = said(messages, refusal), refusal.about
    also = list(refusal.notices.messages)
    if isinstance(done := about.get("claimed"), (list, tuple)) and done:
        also.insert(0, f"Recorded as done: {', '.join(map(str, done))}.")
    if target := about.get("decided_exit"):
        also.insert(0, f"The answered checkpoint leads to '{target}', where nothing more is needed.")
    if also and not reason.endswith((".", "?", "!")):
        reason += "."
    return " ".join([reason, *also])
