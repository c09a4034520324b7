"""What happened, in the past tense. Events carry all that `evolve` needs, so that replay decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from interlock.core.definition.workflow import Capability
from interlock.core.run.channels import OF_CHANNEL, Channel
from interlock.core.run.polls import ApproverAnswer
from interlock.core.run.preferences import Autonomy, DecisionPolicy, Enforcement, Preferences, SessionTerms
from interlock.core.run.reasons import Blocker, Category, Severity
from interlock.core.run.state import Abandonment, CapabilityStatus, LoopDecision
from interlock.core.values import Json

Resolved = Literal["chosen", "auto_advanced", "dismissed", "assumed", "given"]  # given: a user input
Ended = Literal["exited", "timed_out", "not_started", "cancelled"]
LeftBecause = Literal[
    "finished", "condition", "break", "limit", "stopped", "undecided", "empty", "passed", "claimed", "gap"
]


class RunEvent(Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    """The base of every event of a run."""


class RunStarted(RunEvent, frozen=True, tag="run_started"):
    workflow_id: str
    workflow_hash: str
    source: str
    preferences: Preferences
    at: int
    surface: str = "execution"
    policy: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    inherited: tuple[str, ...] = ()  # what the parent passes on and its agent may not write
    by: str = ""  # the principal who started it


class TermsApplied(RunEvent, frozen=True, tag="terms_applied"):
    """The terms of this command and those after it, and the channel by which the user can be asked."""

    decisions: DecisionPolicy
    enforcement: Enforcement
    autonomy: Autonomy
    asks_by: Channel | None = None


class ContextSet(RunEvent, frozen=True, tag="context_set"):
    """Variables were written; `by` is the step that is declared to set what a question owns (rule 26)."""

    delta: Mapping[str, Json]
    source: Literal["parent", "initial", "agent_delta", "reask"] = "agent_delta"
    by: str = ""


class ActivityEntered(RunEvent, frozen=True, tag="activity_entered"):
    activity: str
    visit: int
    next: str
    at: int
    sets: Mapping[str, Json] = {}
    before: str = ""  # the first activity of the path that the run goes back before


class ActivityLeft(RunEvent, frozen=True, tag="activity_left"):
    activity: str
    to: str
    via: Literal["option", "decision", "transition", "default", "end", "closed", "claim", "jump", "gap"]
    condition: str = ""
    skipping: tuple[str, ...] = ()
    sets: Mapping[str, Json] = {}
    unset: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()  # the gates and steps that it requires and that were left out


class StepCompleted(RunEvent, frozen=True, tag="step_completed"):
    key: str
    step: str
    next: str
    claimed: bool = False
    sets: Mapping[str, Json] = {}
    output: str = ""  # the digest of what came with a claim, or for a round of a loop
    brought: tuple[str, ...] = ()  # what came of that which the step requires: kinds of artifacts, names
    artifacts: Mapping[str, Mapping[str, Json]] = {}  # what texts quote of the artifacts that it handed in


class StepReported(RunEvent, frozen=True, tag="step_reported"):
    """An output came for a step that this call did not complete: before its turn, or late."""

    step: str
    output: str


class StepSkipped(RunEvent, frozen=True, tag="step_skipped"):
    key: str
    step: str
    next: str
    condition: str
    unset: tuple[str, ...] = ()


class QuestionShown(RunEvent, frozen=True, tag="question_shown"):
    """A question as it was put: its text, the digest that an answer must name, the roots that it owns.

    `at` is when it was first put in these words, `surface` where, `agent` the worker that yielded it.
    `input` says that it is a step's own question, which leaves the step pending. `unset` are the variables
    that its texts lack, in never-stop mode only: elsewhere a question is whole. `until` is when its approvers
    should have decided, `remind_ms` how often they are reminded.
    """

    key: str
    gate: str
    at: int
    shown: str
    question: str
    roots: tuple[str, ...] = ()
    surface: str = ""
    agent: str = ""
    input: bool = False
    unset: tuple[str, ...] = ()
    until: int = 0
    remind_ms: int = 0


class GateResolved(RunEvent, frozen=True, tag="gate_resolved"):
    """The decision record of rule 26: the question as it was shown, answer, channel, client, time.

    `roots` are the variables that the question shows, reads or sets; `binds` says that it owns them and what
    the answer `sets` (rule 26). `restores` undoes what the earlier answer to the gate had set. `unset` are
    variables that an effect lacked, `unfit` those whose value has another type than is declared.
    """

    key: str
    gate: str
    how: Resolved
    at: int
    channel: Channel
    shown: str
    question: str = ""
    options: tuple[str, ...] = ()
    option: str | None = None
    client: str = ""
    note: str = ""
    agent: str = ""
    next: str | None = None
    sets: Mapping[str, Json] = {}
    transition_to: str | None = None
    skip_activities: tuple[str, ...] = ()
    resumable: bool = False
    roots: tuple[str, ...] = ()
    binds: bool = False
    unset: tuple[str, ...] = ()
    restores: Mapping[str, Json] = {}
    unfit: tuple[str, ...] = ()


class QuestionDeclined(RunEvent, frozen=True, tag="question_declined"):
    """The user was asked and did not answer: from now on no weaker channel does (rule 27)."""

    key: str
    gate: str
    shown: str
    at: int
    channel: Channel
    client: str = ""


class ApprovalGiven(RunEvent, frozen=True, tag="approval_given"):
    """One of the people who decide a gate has answered; enough equal answers decide it (rule 27a)."""

    key: str
    gate: str
    shown: str
    approval: ApproverAnswer


class QuestionEscalated(RunEvent, frozen=True, tag="question_escalated"):
    """The approvers of a gate did not decide in time; from now on the members of `to` count as well."""

    key: str
    gate: str
    shown: str
    to: str
    at: int


class GatePassed(RunEvent, frozen=True, tag="gate_passed"):
    key: str
    gate: str
    next: str
    because: Literal["answered", "condition", "optional", "mode", "advisory"]
    condition: str = ""
    unset: tuple[str, ...] = ()


class GateResumed(RunEvent, frozen=True, tag="gate_resumed"):
    key: str
    gate: str
    agent: str


class LoopEntered(RunEvent, frozen=True, tag="loop_entered"):
    loop: str
    next: str
    total: int | None = None
    items: tuple[Json, ...] = ()
    sets: Mapping[str, Json] = {}
    limited: bool = False
    steered: bool = False


class LoopIterated(RunEvent, frozen=True, tag="loop_iterated"):
    loop: str
    iteration: int
    next: str
    sets: Mapping[str, Json] = {}


class LoopLeft(RunEvent, frozen=True, tag="loop_left"):
    """A loop was left or passed by; `sets` are the names of outer loops, which hold again (rule 30)."""

    loop: str
    next: str
    because: LeftBecause
    iterations: int = 0
    unset: tuple[str, ...] = ()
    sets: Mapping[str, Json] = {}


class LoopSteered(RunEvent, frozen=True, tag="loop_steered"):
    decision: LoopDecision


class CapabilityObserved(RunEvent, frozen=True, tag="capability_observed"):
    capability: Capability
    status: CapabilityStatus
    strong: bool
    provenance: Mapping[str, Json] = {}


class CheckRan(RunEvent, frozen=True, tag="check_ran"):
    """The server ran a check for a step, or again for a gate that shows it: `key` is the instance of either.

    `definition` is the digest of what was run, and who trusted that is `trusted_by`. `at` is when it ended.
    `output` is the end of what it printed, `output_digest` that of the whole. `head` is the git commit, the
    trees are digests of the project's files before and after. `folder` is within the project. `reason` says
    why it has not passed.
    """

    key: str
    check: str
    definition: str
    argv: tuple[str, ...]
    folder: str
    ended: Ended
    at: int
    passed: bool = False
    exit: int | None = None
    duration_ms: int = 0
    output: str = ""
    output_digest: str = ""
    head: str = ""
    tree_before: str = ""
    tree_after: str = ""
    reason: str = ""
    trusted_by: str = ""

    @property
    def tree(self) -> str:
        """The files that the result is valid for; empty if they changed while it ran, or are not known."""
        return self.tree_after if self.tree_before == self.tree_after else ""

    @property
    def is_trusted(self) -> bool:
        """Whether it was allowed by a channel of the user: `trusted_by` is channel and principal."""
        return OF_CHANNEL.get(self.trusted_by.partition(":")[0]) == "user"

    @property
    def line(self) -> str:
        """The result as questions and prompts show it: nothing in it is an agent's, or changes by itself."""
        on = f"on files {self.tree[7:15]}" if self.tree else "while files changed"
        on = on if self.tree_before or self.tree_after else "on files that cannot be compared"
        what = " ".join(self.argv) if self.ended != "not_started" else self.reason
        if self.ended != "not_started":
            what = f"run by the server {on}: {what}, {self.outcome}"
        return f"{'passed' if self.passed else 'FAILED'} ({what})"

    @property
    def outcome(self) -> str:
        """How it ended, in a few words."""
        return f"exit {self.exit}" if self.ended == "exited" else self.ended.replace("_", " ")


class GapRecorded(RunEvent, frozen=True, tag="gap_recorded"):
    severity: Severity
    category: Category
    detail: str
    summary: str
    key: str = ""


class GapResolved(RunEvent, frozen=True, tag="gap_resolved"):
    """A gap was closed after all; the summary says how. The gap itself stays in the log."""

    gap: int
    summary: str
    channel: Channel


class DivergenceRecorded(RunEvent, frozen=True, tag="divergence_recorded"):
    reason: str
    summary: str
    related_step: str | None = None


class PreferencesChanged(RunEvent, frozen=True, tag="preferences_changed"):
    """The user's terms changed at a node, or for what the session begins later; here are all of them."""

    effective: Preferences
    policy: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    channel: Channel = "cli"
    source: Literal["user", "workflow_recommendation", "system"] = "user"

    @classmethod
    def to(cls, terms: SessionTerms, channel: Channel) -> PreferencesChanged:
        """Return the change to these terms; by channel `server` nobody chose them."""
        source: Literal["user", "system"] = "system" if channel == "server" else "user"
        return cls(terms.preferences, terms.policy, terms.enforcement, channel, source)


class ValidationPerformed(RunEvent, frozen=True, tag="validation_performed"):
    key: str
    valid: bool
    blockers: tuple[Blocker, ...] = ()


class ChildStarted(RunEvent, frozen=True, tag="child_started"):
    workflow: str
    session: str
    activity: str | None = None
    passed: Mapping[str, Json] = {}  # what the child begins with


class ChildReturned(RunEvent, frozen=True, tag="child_returned"):
    workflow: str
    session: str
    outcome: Literal["completed", "abandoned"]
    sets: Mapping[str, Json] = {}


class RunCompleted(RunEvent, frozen=True, tag="run_completed"):
    status: Literal["complete", "complete_with_gaps"]
    at: int


class RunAbandoned(RunEvent, frozen=True, tag="run_abandoned"):
    """The user, the agent or a parent gave the run up, on all its branches and for good (rule 35)."""

    channel: Channel
    at: int
    by: str = ""
    reason: str = ""

    @property
    def how(self) -> Abandonment:
        """Who gave it up, and why."""
        return Abandonment(self.channel, self.at, self.by, self.reason)


Event: TypeAlias = (
    RunStarted
    | TermsApplied
    | ContextSet
    | ActivityEntered
    | ActivityLeft
    | StepCompleted
    | StepReported
    | StepSkipped
    | QuestionShown
    | GateResolved
    | QuestionDeclined
    | ApprovalGiven
    | QuestionEscalated
    | GatePassed
    | GateResumed
    | LoopEntered
    | LoopIterated
    | LoopLeft
    | LoopSteered
    | CapabilityObserved
    | CheckRan
    | GapRecorded
    | GapResolved
    | DivergenceRecorded
    | PreferencesChanged
    | ValidationPerformed
    | ChildStarted
    | ChildReturned
    | RunCompleted
    | RunAbandoned
)
