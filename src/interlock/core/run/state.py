"""The state of a run: small and bounded, so that the ten-thousandth step costs what the tenth did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from interlock.core.definition.workflow import Capability
from interlock.core.hashing import digest_of
from interlock.core.run.channels import Channel
from interlock.core.run.polls import Poll
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Preferences, SessionTerms
from interlock.core.run.reasons import Severity
from interlock.core.values import Json

Status = Literal["in_progress", "complete", "complete_with_gaps", "abandoned"]
CapabilityStatus = Literal["unknown", "available", "unavailable"]
LoopDecision = Literal["continue", "stop"]

MOST_KNOWN_OUTPUTS = 2  # of a step in a loop, so that the state stays small


class Frame(Struct, frozen=True, omit_defaults=True):
    """A loop that the run is inside of. Its items are frozen at entry; `limited` says that they were cut.

    `steered` says that decisions of its steps steer it; `outer` is what was decided before for an outer one.
    `asked` says that a question was put or answered in its current round.
    """

    loop: str
    iteration: int = 0
    total: int | None = None
    items: tuple[Json, ...] = ()
    limited: bool = False
    steered: bool = False
    outer: LoopDecision | None = None
    asked: bool = False


class OpenGate(Struct, frozen=True, omit_defaults=True):
    """A gate whose question was put and waits for its answer: its digest and its text as they were recorded.

    `agent` is the worker that yielded it.
    """

    key: str
    gate: str
    opened_at: int
    shown: str
    text: str
    agent: str = ""


class Resolution(Struct, frozen=True, omit_defaults=True):
    """The answer to a question that an agent has yielded."""

    key: str
    gate: str
    option: str | None


class Reported(Struct, frozen=True, omit_defaults=True, array_like=True):
    """The outputs of a step that this visit has brought: how many, a digest over all, those of the newest.

    Those that were claimed are remembered to the end of the visit; rounds that were acknowledged, until no
    loop runs any more.
    """

    count: int = 0
    digest: str = ""
    newest: tuple[str, ...] = ()
    claimed: bool = False

    def with_output(self, output: str, *, claimed: bool) -> Reported:
        """Return this with the digest of one more output."""
        over_all = digest_of(f"{self.digest}{output}".encode())[-10:]
        newest = (*self.newest, output)[-MOST_KNOWN_OUTPUTS:]
        return Reported(self.count + 1, over_all, newest, self.claimed or claimed)

    def repeated_by(self, outputs: Sequence[str]) -> int:
        """Count the outputs at the beginning that were brought before: all of them, or the last few."""
        again = Reported()
        for output in outputs[: self.count]:
            again = again.with_output(output, claimed=self.claimed)
        if again == self:
            return self.count
        lengths = range(min(len(self.newest), len(outputs)), 0, -1)
        return next((some for some in lengths if tuple(outputs[:some]) == self.newest[-some:]), 0)


class Remark(Struct, frozen=True, omit_defaults=True):
    """What the user said with a decision; the work that follows is told it."""

    gate: str
    option: str | None
    note: str


class Owner(Struct, frozen=True, omit_defaults=True):
    """A question that owns variables, by root: its instance, and the visit in which that was asked.

    `undo` are the values before its answer set them, null for none, until something else writes them.
    """

    key: str
    visit: int
    roots: tuple[str, ...] = ()
    undo: Mapping[str, Json] = {}


class Chosen(Struct, frozen=True, array_like=True):
    """The last answer to a question, and the channel that it came by; empty if it was dismissed."""

    option: str
    channel: Channel


class Abandonment(Struct, frozen=True, omit_defaults=True):
    """Who gave up the run, by which channel, and why. By channel `server` it is the parent of a child."""

    channel: str
    at: int
    by: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """Say it in words that follow 'The run was'."""
        whom = {"agent": "its agent", "server": "its parent"}.get(self.channel, f"the user, {self.channel}")
        named = f" ({self.by})" if self.by else ""
        return f"abandoned by {whom}{named}: {self.reason or 'no reason was given'}"


class KnownGap(Struct, frozen=True, omit_defaults=True):
    """A gap on the run's path, by its number there; `resolved` says how it was closed later.

    What was decided without the user is the `users`: only a channel of strength `user` closes it.
    """

    number: int
    severity: Severity
    summary: str
    resolved: str = ""
    users: bool = False

    @property
    def text(self) -> str:
        """The gap in a line."""
        whose = ", for the user to resolve" if self.users and self.severity != "info" else ""
        closed = f", resolved: {self.resolved}" if self.resolved else whose
        return f"Gap {self.number} ({self.severity}{closed}): {self.summary}"


class LastCheck(Struct, frozen=True, array_like=True):
    """The last result of a check: the digest of its definition, of the files that it holds for, if it passed.

    The files changed while it ran if that digest is empty.
    """

    definition: str
    tree: str
    passed: bool


class RunState(Struct, frozen=True, omit_defaults=True):
    """Everything that decides what happens next; the history is in the log.

    `next_key` is the operation that comes next in the activity's program; `children` are the sessions that
    were triggered and have not returned, with their workflows. `answered` counts the questions that were
    answered in this visit, so that a token can say which of the answers its bearer has seen. `shown` is
    what questions own because they show or read it, `decided` what their answers have set (rule 26), by
    activity and gate; `declined` the questions that the user was asked and did not answer, on any branch
    of the run, with the channel (rule 27); `polls` what approvers have answered so far, on any branch too;
    `started_by` the principal who started the run; `waived` the gates that advisory enforcement let pass,
    `passed` those that a false condition did, which are judged again (rule 23). `yielded` are the answers
    that agents have yet to resume from, `resumed` the last that they did, by agent; `reported` are the
    outputs that came with claims or for a round of a loop, by step, and `unreported` the steps that were
    claimed without one (rule 14). `policy` and `enforcement` are the user's terms for the session, copied
    at its start (rule 29). `gaps` counts the open ones that keep the run from ending `complete`,
    `gaps_ever` all; `gap_list` holds the newest. `chosen` is the last answer to each question, for an
    agent that has lost its memory. `inherited` are the variables of a child that questions of its parent
    own (rule 35). `asked` are the questions of steps that were put and wait, by instance, with their digests.
    `path` are the activities that led here, without those that the run
    has gone back over; `unanswered` is what was left out of them, by activity. `abandoned` says who gave
    the run up; the position stays where that happened.
    """

    activity: str | None = None
    visit: int = 0
    next_key: str = ""
    entered_at: int = 0
    frames: tuple[Frame, ...] = ()
    variables: Mapping[str, Json] = {}
    answers: Mapping[str, str] = {}
    answered: int = 0
    decided: Mapping[str, Owner] = {}
    shown: Mapping[str, Owner] = {}
    inherited: tuple[str, ...] = ()
    asked: Mapping[str, str] = {}
    chosen: Mapping[str, Chosen] = {}
    declined: Mapping[str, Channel] = {}
    polls: Mapping[str, Poll] = {}
    started_by: str = ""
    waived: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    open: OpenGate | None = None
    yielded: Mapping[str, Resolution] = {}
    resumed: Mapping[str, Resolution] = {}
    reported: Mapping[str, Reported] = {}
    unreported: tuple[str, ...] = ()
    remark: Remark | None = None
    exit_to: str | None = None
    left_to: str | None = None
    skipped: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    unanswered: Mapping[str, tuple[str, ...]] = {}
    steer: LoopDecision | None = None
    preferences: Preferences = Preferences()
    policy: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    capabilities: Mapping[Capability, CapabilityStatus] = {}
    checks: Mapping[str, LastCheck] = {}
    children: Mapping[str, str] = {}
    gaps: int = 0
    gaps_ever: int = 0
    gap_list: tuple[KnownGap, ...] = ()
    status: Status = "in_progress"
    finished_at: int | None = None
    abandoned: Abandonment | None = None

    @property
    def finished(self) -> bool:
        return self.status != "in_progress"

    @property
    def active(self) -> OpenGate | None:
        """The open question that a worker has yielded: what the document of `session` calls active."""
        return self.open if self.open is not None and self.open.agent else None

    @property
    def agent_resolves_gaps(self) -> bool:
        """Whether one of the open gaps can be closed by an agent."""
        return any(not (gap.users or gap.resolved or gap.severity == "info") for gap in self.gap_list)

    @property
    def terms(self) -> SessionTerms:
        """The user's terms at this node."""
        return SessionTerms(self.preferences, self.policy, self.enforcement)

    def declined_by(self, key: str) -> Channel | None:
        """Return the channel by which the user declined this question of the current activity, if at all."""
        return self.declined.get(f"{self.activity}/{key}")

    def poll(self, opened: OpenGate) -> Poll:
        """Return what approvers have answered to an open question since it was put in these words."""
        poll = self.polls.get(f"{self.activity}/{opened.key}")
        is_its = poll is not None and (poll.shown, poll.since) == (opened.shown, opened.opened_at)
        return poll if poll is not None and is_its else Poll(opened.shown, opened.opened_at)

    def has_report(self, step: str) -> bool:
        """Say whether a step's output came with a claim, or the step was acknowledged by itself (rule 14)."""
        return step in self.reported or (step in self.done and step not in self.unreported)


def instance(state: RunState, item_id: str) -> str:
    """The key of an item in its loops: `outer@0/inner@2::step`, or the bare id outside loops (rule 37)."""
    path = "/".join(f"{frame.loop}@{frame.iteration}" for frame in state.frames)
    return f"{path}::{item_id}" if path else item_id


def question_path(state: RunState, gate: str) -> str:
    """The key of a gate in its activity, whichever round it is asked in."""
    return f"{state.activity or ''}/{gate}"


def waits_alike(before: RunState, after: RunState) -> bool:
    """Say whether a run waits for the same thing in two states."""
    return all(
        getattr(before, name) == getattr(after, name)
        for name in ("activity", "visit", "next_key", "frames", "answers", "done", "open", "status")
    )
