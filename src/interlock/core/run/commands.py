"""Commands to a run, in the imperative. Time, ids and policy arrive in them; the core has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.checks import CommandCheck
from interlock.core.run.channels import Channel, Strength
from interlock.core.run.events import CheckRan
from interlock.core.run.output import Output
from interlock.core.run.polls import Approver
from interlock.core.run.preferences import (
    DECISIONS,
    ENFORCEMENT,
    DecisionPolicy,
    Enforcement,
    Preferences,
    SessionTerms,
)
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json, Variables


class DueCheck(Struct, frozen=True):
    """A check that must be run for an item, by its instance, before the outcome of a command counts.

    One that a gate shows has run before: unless the project's files have the digest `valid_for`, it is run
    `again`.
    """

    key: str
    check: CommandCheck
    definition: str
    again: bool = False
    valid_for: str = ""


class CheckResult(Struct, frozen=True):
    """What came of a check that was due; None if the earlier result still holds."""

    due: DueCheck
    ran: CheckRan | None


class Terms(Struct, frozen=True):
    """The user's terms for decisions: who may answer gates, how strictly, how fast.

    `asks_by` is the channel by which the user can be asked during the call: by a form the answer comes back
    with it, by `inbox` the user is only shown where to answer.
    """

    decisions: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    min_response_ms: int = 3000
    asks_by: Channel | None = None

    @property
    def weakest(self) -> Strength:
        """The weakest channel whose answers count."""
        return self.decisions if self.decisions in ("client", "user") else "agent"

    @property
    def takes_reports(self) -> bool:
        """Whether an agent may report what the user decided."""
        return self.weakest == "agent"

    @property
    def asks_by_form(self) -> bool:
        """Whether the user is asked through a client that can show a form."""
        return self.decisions in ("auto", "client")

    def within(self, session: SessionTerms) -> Terms:
        """Return these terms, tightened by those of the session (rule 29)."""
        return replace(
            self,
            decisions=min(self.decisions, session.policy, key=DECISIONS.index),
            enforcement=min(self.enforcement, session.enforcement, key=ENFORCEMENT.index),
        )


class Decision(Struct, frozen=True):
    """An answer to a gate, and the channel that it came by."""

    option: str
    channel: Channel
    client: str = ""
    note: str = ""


class Claim(Struct, frozen=True):
    """A step that a worker says it has done, with its output."""

    step: str
    output: Output


class StartRun(Struct, frozen=True):
    """Begin a run; `activity` is one that stands for itself, in place of the workflow's first.

    `passed` is what a parent passes on, `inherited` what of it no agent may write (rule 35).
    """

    policy: SurfacePolicy
    now: int
    workflow_hash: str
    source: str
    preferences: Preferences
    variables: Variables = {}
    terms: Terms = Terms()
    activity: str | None = None
    passed: Variables = {}
    inherited: tuple[str, ...] = ()
    by: str = ""


class AcknowledgeStep(Struct, frozen=True):
    """Close the pending item. `decisions` are the user's own answers, by the digest of their question.

    `declined` are the digests of questions that the user was asked for this call and did not answer,
    `checked` what came of the checks that the core asked for. `reports` says whether a bare acknowledgement
    counts as the agent's report of a confirmation. Here and in other commands, `reask` are new values of what
    a question owns, which is then asked again (rule 26), and `abandons` lets go of the children that still
    run (rule 35).
    """

    policy: SurfacePolicy
    now: int
    terms: Terms
    output: Output = Output()
    variables: Variables = {}
    step: str | None = None
    decisions: Mapping[str, Decision] = {}
    declined: tuple[str, ...] = ()
    checked: tuple[CheckResult, ...] = ()
    reports: bool = True
    client: str = ""
    abandons: bool = False
    reask: Variables = {}


class EnterActivity(Struct, frozen=True):
    """Leave the current activity, its steps claimed, and enter the target."""

    policy: SurfacePolicy
    now: int
    terms: Terms
    target: str
    claims: tuple[Claim, ...] = ()
    claimed_condition: str | None = None
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}
    declined: tuple[str, ...] = ()
    checked: tuple[CheckResult, ...] = ()
    client: str = ""
    abandons: bool = False
    reask: Variables = {}


class OpenCheckpoint(Struct, frozen=True):
    policy: SurfacePolicy
    now: int
    terms: Terms
    gate: str
    agent: str = ""
    iteration: int | None = None
    claims: tuple[Claim, ...] = ()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}
    declined: tuple[str, ...] = ()
    checked: tuple[CheckResult, ...] = ()
    client: str = ""
    reask: Variables = {}


class ResolveCheckpoint(Struct, frozen=True):
    """Answer a gate in exactly one of three ways (rule 24).

    `claims` are the steps before a gate that is walked to.
    """

    policy: SurfacePolicy
    now: int
    terms: Terms
    channel: Channel
    gate: str | None = None
    option: str | None = None
    auto_advance: bool = False
    condition_not_met: bool = False
    agent: str = ""
    client: str = ""
    note: str = ""
    claims: tuple[Claim, ...] = ()
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}
    declined: tuple[str, ...] = ()
    checked: tuple[CheckResult, ...] = ()
    abandons: bool = False
    reask: Variables = {}


class Approve(Struct, frozen=True):
    """Answer an open gate that named people decide, as one of them (rule 27a)."""

    policy: SurfacePolicy
    now: int
    channel: Channel
    approver: Approver
    gate: str
    shown: str
    option: str
    note: str = ""
    checked: tuple[CheckResult, ...] = ()


class Escalate(Struct, frozen=True):
    """Let the group that a gate names answer too: its approvers did not decide in time (rule 27a)."""

    policy: SurfacePolicy
    now: int
    gate: str
    shown: str


class ResumeWorker(Struct, frozen=True):
    policy: SurfacePolicy
    now: int
    agent: str
    variables: Variables = {}
    reask: Variables = {}
    terms: Terms = Terms()


class AdvanceLoop(Struct, frozen=True):
    policy: SurfacePolicy
    now: int
    terms: Terms
    loop: str
    items: tuple[Json, ...] | None = None
    variables: Variables = {}
    abandons: bool = False
    reask: Variables = {}
    decisions: Mapping[str, Decision] = {}


class StartChild(Struct, frozen=True):
    """Record that a child of another workflow begins under this run (rule 35)."""

    workflow: str
    session: str
    variables: Variables = {}


class ReturnChild(Struct, frozen=True):
    """Record that a triggered child has ended, with what it returns to its parent (rule 35)."""

    workflow: str
    session: str
    completed: bool
    variables: Variables = {}


class AbandonRun(Struct, frozen=True):
    """Give the run up, wherever it stands; an open gate does not prevent it (rule 35).

    The variables that came with it are not taken, and the answer says so.
    """

    now: int
    channel: Channel
    by: str = ""
    reason: str = ""
    variables: Variables = {}


class ResolveGap(Struct, frozen=True):
    """Close a gap, also of a run that has ended; whoever sends it has made sure that the gap is open."""

    channel: Channel
    gap: int
    summary: str


Answerable: TypeAlias = AcknowledgeStep | EnterActivity | OpenCheckpoint | ResolveCheckpoint
Checkable: TypeAlias = Answerable | Approve  # whose outcome may need checks, or show what came of them
Command: TypeAlias = (
    StartRun
    | AcknowledgeStep
    | EnterActivity
    | OpenCheckpoint
    | ResolveCheckpoint
    | Approve
    | Escalate
    | ResumeWorker
    | AdvanceLoop
    | StartChild
    | ReturnChild
    | AbandonRun
    | ResolveGap
)
