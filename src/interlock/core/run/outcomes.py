"""What comes of a command: events and what is awaited next, or a refusal that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from interlock.core.definition.conditions import Scope
from interlock.core.definition.prompts import question_text
from interlock.core.definition.workflow import Gate, Loop, Step
from interlock.core.guard.audit import Audit
from interlock.core.run.channels import Channel
from interlock.core.run.commands import DueCheck
from interlock.core.run.events import Event
from interlock.core.run.notices import NO_NOTICES, Notices
from interlock.core.run.questions import Question, Unanswered
from interlock.core.run.reasons import Blocker
from interlock.core.run.state import Abandonment, RunState
from interlock.core.values import Json, Variables


class NeedStep(Struct, frozen=True):
    """The agent must do this step. `asks` are those of its own questions that wait for the user (rule 28)."""

    key: str
    step: Step
    asks: tuple[str, ...] = ()


class NeedAnswer(Struct, frozen=True):
    """This gate must be answered. `confirms` is the step whose confirmation it is."""

    key: str
    gate: Gate
    opened_at: int
    confirms: Step | None = None


class NeedInput(Struct, frozen=True):
    """Variables are missing that only the agent can supply.

    A `loop` lacks its list, a `gate` what its question shows; without either the exit is undecided. The
    `example` has the shape of what to send, with placeholders for the values.
    """

    subject: str
    variables: tuple[str, ...]
    message: str
    example: Variables = {}
    loop: Loop | None = None
    gate: Gate | None = None


class NeedLoop(Struct, frozen=True):
    """The loop waits to be started or advanced by hand (navigation)."""

    loop: Loop
    iteration: int
    total: int | None
    needs_items: bool = False


class Exit(Struct, frozen=True):
    """An exit of an activity. `open` says whether it can be taken now.

    `reads` are the variables of its condition, `unset` those that the agent states by taking it; `decided`
    says that values which were set in the run close it, `closed_by` names a gate that would have opened it.
    """

    to: str
    open: bool
    condition: str = ""
    reads: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    expected: bool = False
    decided: bool = False
    closed_by: str = ""


class NeedExit(Struct, frozen=True):
    """The activity is done; the agent takes one of its exits (session, gated, navigation)."""

    exits: tuple[Exit, ...]


class NeedEntry(Struct, frozen=True):
    """No activity has been entered yet."""

    initial: str | None


class Done(Struct, frozen=True):
    """The run has ended."""


class RunChecks(Struct, frozen=True):
    """These checks must run first: the same command is then decided again with their results."""

    checks: tuple[DueCheck, ...]


Awaited: TypeAlias = NeedStep | NeedAnswer | NeedInput | NeedLoop | NeedExit | NeedEntry | Done


class PendingLine(Struct, frozen=True):
    """What a run waits for, in one line."""

    kind: Literal["step", "decision", "input", "choice", "nothing"]
    id: str
    title: str


def pending_line(need: Awaited, scope: Scope) -> PendingLine:
    """Describe in one line what a run waits for, with the variables in force (rule 32)."""
    match need:
        case NeedStep():
            return PendingLine("step", need.step.id, question_text(need.step.title, scope))
        case NeedAnswer():
            return PendingLine("decision", need.gate.id, question_text(need.gate.name, scope))
        case NeedInput():
            return PendingLine("input", need.subject, need.message)
        case NeedLoop():
            return PendingLine("choice", need.loop.id, question_text(need.loop.title, scope))
        case NeedExit() | NeedEntry():
            return PendingLine("choice", "way", "the next activity")
        case Done():
            return PendingLine("nothing", "", "")
        case _:
            assert_never(need)


class Decided(Struct, frozen=True):
    """Events to record, the state they lead to, and what the run waits for then.

    Where something blocks, `unanswered` are the questions of which an answer alone is missing, `unchecked`
    the checks of which the result is. `audit` is what the guard has learned, once it has judged the events.
    """

    events: tuple[Event, ...]
    state: RunState
    awaited: Awaited
    blockers: tuple[Blocker, ...] = ()
    notices: Notices = NO_NOTICES
    unanswered: tuple[Unanswered, ...] = ()
    unchecked: tuple[DueCheck, ...] = ()
    audit: Audit | None = None


class Ask(Struct, frozen=True):
    """The user must be asked first: the same command is then decided again with the answers (rule 27).

    By `elicitation` an answer comes back with the call. By `inbox` the user is only told where to answer.
    """

    questions: tuple[Question, ...]
    by: Channel = "elicitation"


class Code(StrEnum):
    """Why a command was refused: a closed set, shown on the wire as it is or under a surface's own name."""

    RUN_FINISHED = "RUN_FINISHED"
    RUN_ABANDONED = "RUN_ABANDONED"
    DECISION_PENDING = "DECISION_PENDING"
    GATE_UNANSWERED = "GATE_UNANSWERED"
    NO_ACTIVITY = "NO_ACTIVITY"
    ACTIVITY_NOT_FOUND = "ACTIVITY_NOT_FOUND"
    ACTIVITY_NOT_COMPLETE = "ACTIVITY_NOT_COMPLETE"
    INVALID_TRANSITION = "INVALID_TRANSITION"
    STEP_NOT_FOUND = "STEP_NOT_FOUND"
    STEP_NOT_PENDING = "STEP_NOT_PENDING"
    STEP_ALREADY_COMPLETE = "STEP_ALREADY_COMPLETE"
    OUTPUT_REQUIRED = "OUTPUT_REQUIRED"
    INPUT_REQUIRED = "INPUT_REQUIRED"
    CHECKPOINT_NOT_FOUND = "CHECKPOINT_NOT_FOUND"
    CHECKPOINT_NOT_ACTIVE = "CHECKPOINT_NOT_ACTIVE"
    CHECKPOINT_ALREADY_ACTIVE = "CHECKPOINT_ALREADY_ACTIVE"
    CHECKPOINT_ALREADY_ANSWERED = "CHECKPOINT_ALREADY_ANSWERED"
    CHECKPOINT_STILL_ACTIVE = "CHECKPOINT_STILL_ACTIVE"
    CHECKPOINT_NOT_YIELDED = "CHECKPOINT_NOT_YIELDED"
    OPTION_NOT_FOUND = "OPTION_NOT_FOUND"
    RESOLUTION_MODE = "RESOLUTION_MODE"
    TOO_FAST = "TOO_FAST"
    NOT_AUTO_ADVANCING = "NOT_AUTO_ADVANCING"
    TIMER_RUNNING = "TIMER_RUNNING"
    NOT_CONDITIONAL = "NOT_CONDITIONAL"
    CONDITION_HOLDS = "CONDITION_HOLDS"
    USER_MUST_DECIDE = "USER_MUST_DECIDE"
    CHILD_RUNNING = "CHILD_RUNNING"
    LOOP_NOT_FOUND = "LOOP_NOT_FOUND"
    ROUND_DUE = "ROUND_DUE"
    LOOP_ITEMS_REQUIRED = "LOOP_ITEMS_REQUIRED"
    VARIABLES_TOO_LARGE = "VARIABLES_TOO_LARGE"
    REASK_IMPOSSIBLE = "REASK_IMPOSSIBLE"
    GUARD_REFUSED = "GUARD_REFUSED"
    CHECK_FAILED = "CHECK_FAILED"
    CHECKED_AGAIN = "CHECKED_AGAIN"


class Refusal(Struct, frozen=True):
    """Nothing was changed. Each surface turns code and data into its own sentence and next action (rule 40).

    `about` holds the names and values that the code is about; `kept` is recorded all the same, and `notices`
    say what of the call was not. `unanswered` are the questions of which an answer alone is missing,
    `unchecked` the checks of which the result is.
    """

    code: Code
    about: Mapping[str, Json] = {}
    kept: tuple[Event, ...] = ()
    notices: Notices = NO_NOTICES
    unanswered: tuple[Unanswered, ...] = ()
    unchecked: tuple[DueCheck, ...] = ()


def run_abandoned(how: Abandonment) -> Refusal:
    """Refuse whatever would change a run that was given up."""
    return Refusal(Code.RUN_ABANDONED, {"abandoned": how.text, "at": how.at})
