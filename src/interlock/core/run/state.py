"""The state of a run: small and bounded, so that the ten-thousandth step costs what the tenth did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.core.definition.workflow import Capability
from interlock.core.hashing import digest_of
from interlock.core.run.channels import Channel
from interlock.core.run.keys import instance_key, question_path
from interlock.core.run.polls import Poll
from interlock.core.run.preferences import Preferences, SessionTerms
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

    `agent` is the worker that yielded it, `replaces` the channel by which the user answered it before it was
    asked again, `surface` where it was put.
    """

    key: str
    gate: str
    opened_at: int
    shown: str
    text: str
    agent: str = ""
    replaces: Channel | None = None
    surface: str = ""


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


class Visit(Struct, frozen=True, omit_defaults=True):
    """One visit of an activity. Entering an activity begins a new one: nothing of an earlier visit counts.

    `next_key` is the operation that comes next in the activity's program, `frames` the loops around it.
    `done` are the steps that were acknowledged, `reported` the outputs that came with claims or for a round
    of a loop, by step, and `unreported` the steps that were claimed without one (rule 14). `open` is the
    question that the run waits at; `asked` are the questions of steps that were put and wait, with their
    digests. `answers` are by instance; `answered` counts them, so that a token can say which of them its
    bearer has seen. `waived` are the gates that advisory enforcement let pass, `passed` those that a false
    condition did, which are judged again (rule 23). `yielded` are the answers that agents have yet to resume
    from, `resumed` the last that they did, by agent. `triggered` are the workflows that children were started
    of.
    """

    activity: str | None = None
    number: int = 0
    entered_at: int = 0
    next_key: str = ""
    frames: tuple[Frame, ...] = ()
    steer: LoopDecision | None = None
    done: tuple[str, ...] = ()
    reported: Mapping[str, Reported] = {}
    unreported: tuple[str, ...] = ()
    open: OpenGate | None = None
    asked: Mapping[str, str] = {}
    answers: Mapping[str, str] = {}
    answered: int = 0
    waived: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    yielded: Mapping[str, Resolution] = {}
    resumed: Mapping[str, Resolution] = {}
    exit_to: str | None = None
    left_to: str | None = None
    triggered: tuple[str, ...] = ()

    @property
    def rounds(self) -> list[tuple[str, int]]:
        """The loops that the run is in, outer ones first, each with its round."""
        return [(frame.loop, frame.iteration) for frame in self.frames]


class Ownership(Struct, frozen=True, omit_defaults=True):
    """Which variables belong to questions: no agent changes them (rule 26).

    `shown` is what questions own because they show or read it, `decided` what their answers have set, by
    activity and gate; `inherited` are the variables of a child that questions of its parent own (rule 35).
    """

    shown: Mapping[str, Owner] = {}
    decided: Mapping[str, Owner] = {}
    inherited: tuple[str, ...] = ()


class Replies(Struct, frozen=True, omit_defaults=True):
    """What people have said to the questions of the run, in any visit.

    `chosen` is the last answer to each question, for an agent that has lost its memory. `declined` are the
    questions that the user was asked and did not answer, with the channel (rule 27), and `polls` what
    approvers have answered so far: both hold on every branch of the run. `remark` is the newest note, which
    the work that follows is told, and `notes` are those that came with the last answers, by question.
    """

    chosen: Mapping[str, Chosen] = {}
    declined: Mapping[str, Channel] = {}
    polls: Mapping[str, Poll] = {}
    remark: Remark | None = None
    notes: Mapping[str, str] = {}

    def note_on(self, gate: str) -> str:
        """Return what the user said with the last answer to a question; the newest note as a whole."""
        if self.remark is not None and self.remark.gate == gate:
            return self.remark.note
        return self.notes.get(gate, "")


class Route(Struct, frozen=True, omit_defaults=True):
    """The activities of the run: `path` led here, without those that it has gone back over.

    `unanswered` is what was left out of them, by activity; `skipped` are those that an answer took out.
    """

    path: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    unanswered: Mapping[str, tuple[str, ...]] = {}


class Gaps(Struct, frozen=True, omit_defaults=True):
    """What was left out of the run: `open` counts what keeps it from ending `complete`, `ever` everything."""

    open: int = 0
    ever: int = 0
    newest: tuple[KnownGap, ...] = ()


class RunState(Struct, frozen=True, omit_defaults=True):
    """Everything that decides what happens next; the history is in the log.

    `terms` are the user's for the session, copied at its start (rule 29). `children` are the sessions that
    were triggered and have not returned, with their workflows. `abandoned` says who gave the run up; the
    position stays where that happened.
    """

    visit: Visit = Visit()
    variables: Mapping[str, Json] = {}
    ownership: Ownership = Ownership()
    replies: Replies = Replies()
    route: Route = Route()
    terms: SessionTerms = SessionTerms(Preferences())
    capabilities: Mapping[Capability, CapabilityStatus] = {}
    checks: Mapping[str, LastCheck] = {}
    children: Mapping[str, str] = {}
    gaps: Gaps = Gaps()
    started_by: str = ""
    status: Status = "in_progress"
    finished_at: int | None = None
    abandoned: Abandonment | None = None

    @property
    def activity(self) -> str | None:
        return self.visit.activity

    @property
    def preferences(self) -> Preferences:
        return self.terms.preferences

    def under(self, preferences: Preferences) -> RunState:
        """Return this state with other preferences of the user."""
        return replace(self, terms=replace(self.terms, preferences=preferences))

    def within(self, **changes: object) -> RunState:
        """Return this state with something changed in its visit."""
        return replace(self, visit=replace(self.visit, **changes))

    @property
    def finished(self) -> bool:
        return self.status != "in_progress"

    @property
    def active(self) -> OpenGate | None:
        """The open question that a worker has yielded: what the document of `session` calls active."""
        return self.visit.open if self.visit.open is not None and self.visit.open.agent else None

    @property
    def agent_resolves_gaps(self) -> bool:
        """Whether one of the open gaps can be closed by an agent."""
        return any(not (gap.users or gap.resolved or gap.severity == "info") for gap in self.gaps.newest)

    def declined_by(self, key: str) -> Channel | None:
        """Return the channel by which the user declined this question of the current activity, if at all."""
        return self.replies.declined.get(question_path(self.activity, key))

    def replaced_by(self, key: str) -> Channel | None:
        """Return the channel by which the user answered this question before it was asked again, if so."""
        opened = self.visit.open
        return opened.replaces if opened is not None and opened.key == key else None

    def poll(self, opened: OpenGate) -> Poll:
        """Return what approvers have answered to an open question since it was put in these words."""
        poll = self.replies.polls.get(question_path(self.activity, opened.key))
        is_its = poll is not None and (poll.shown, poll.since) == (opened.shown, opened.opened_at)
        return poll if poll is not None and is_its else Poll(opened.shown, opened.opened_at)

    def has_report(self, step: str) -> bool:
        """Say whether a step's output came with a claim, or the step was acknowledged by itself (rule 14)."""
        return step in self.visit.reported or (step in self.visit.done and step not in self.visit.unreported)


def instance(state: RunState, item_id: str) -> str:
    """The key of an item in the rounds that the run is in."""
    return instance_key(state.visit.rounds, item_id)


def waits_alike(before: RunState, after: RunState) -> bool:
    """Say whether a run waits for the same thing in two states."""
    return before.status == after.status and all(
        getattr(before.visit, name) == getattr(after.visit, name)
        for name in ("activity", "number", "next_key", "frames", "answers", "done", "open")
    )
