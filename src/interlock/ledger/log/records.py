"""The events about the log itself: sessions, nodes, attempts, outputs, observations, calls.

Together with the events of `core` they are everything; all other rows can be rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from interlock.core.run.channels import Channel
from interlock.core.run.events import Event
from interlock.core.run.notices import Notice
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Preferences
from interlock.core.run.reasons import Blocker
from interlock.core.values import Json

EdgeKind = Literal["root", "acked_step", "checkpoint"]
AttemptOutcome = Literal["advanced", "blocked", "noted"]
Cause = Literal["started", "advanced", "non_tip_advance", "noted"]


class SessionEvent(Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    """The base of every event about the log."""


class SessionCreated(SessionEvent, frozen=True, tag="session_created"):
    """A session with the user's terms at its start, which hold for all its runs (rule 29)."""

    owner: str
    title: str
    at: int
    surface: str
    parent_session: str | None = None
    imported_from: str | None = None
    preferences: Preferences = Preferences()
    policy: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"


class SessionTitled(SessionEvent, frozen=True, tag="session_titled"):
    """The work has a name now: the session was called after its workflow until its run said more."""

    title: str


class NodeCreated(SessionEvent, frozen=True, tag="node_created"):
    """A node and the edge that led to it. `awaiting` is the gate or input that the run waits for there.

    `leads` says that the node becomes the tip of its run and the head of its session, `held` that agents
    can do nothing there before a question is answered.
    """

    node: int
    parent: int | None
    edge: EdgeKind
    cause: Cause
    awaiting: str = ""
    leads: bool = True
    held: bool = False


class AdvanceRecorded(SessionEvent, frozen=True, tag="advance_recorded"):
    """An attempt and what came of it; the response by its digest, the request by its own."""

    node: int
    attempt: int
    outcome: AttemptOutcome
    request: str
    response: str
    child: int | None = None
    successor: int | None = None
    blockers: tuple[Blocker, ...] = ()
    kept: Mapping[str, Json] = {}
    notices: tuple[Notice, ...] = ()
    surface: str = "execution"
    awaiting: str = ""


class OutputAppended(SessionEvent, frozen=True, tag="node_output_appended"):
    """Notes or an artifact, with the node and attempt they came with; node -1 is the session itself."""

    node: int
    attempt: int
    channel: Literal["recap", "artifact"]
    step: str
    notes: str = ""
    artifact: Mapping[str, Json] = {}


class ObservationRecorded(SessionEvent, frozen=True, tag="observation_recorded"):
    key: Literal["git_branch", "git_head_sha", "repo_root"]
    value: str
    confidence: Literal["low", "med", "high"] = "high"


class DecisionRecorded(SessionEvent, frozen=True, tag="decision_recorded"):
    """The user's own answer, given outside the agent's call and used by its next one (rule 26)."""

    node: int
    gate: str
    option: str
    channel: Channel
    shown: str
    at: int
    note: str = ""


class CallTraced(SessionEvent, frozen=True, tag="call_traced"):
    """One call of a session tool. No parameter that could hold a token is kept."""

    tool: str
    agent: str
    at: int
    ms: float
    ok: bool
    activity: str | None = None
    visit: int = 0
    error: str = ""
    warnings: tuple[str, ...] = ()
    about: Mapping[str, Json] = {}


class SessionImported(SessionEvent, frozen=True, tag="session_imported"):
    """The session came from a bundle: what it says up to this event was checked for form, not for truth."""

    owner: str
    at: int
    up_to: int


class HeadMoved(SessionEvent, frozen=True, tag="head_moved"):
    """A call took up another run of the session than the one advanced last."""

    run: int
    node: int


class RepairRecorded(SessionEvent, frozen=True, tag="repair_recorded"):
    """What a repair cut off, kept elsewhere by this digest."""

    at: int
    cut_events: int
    kept_as: str
    reason: str


class ResponseRestored(SessionEvent, frozen=True, tag="response_restored"):
    """A lost response that a repair rendered again, by its new digest; an empty one stays lost."""

    node: int
    attempt: int
    response: str


LogEntry: TypeAlias = (
    SessionCreated
    | SessionTitled
    | NodeCreated
    | AdvanceRecorded
    | OutputAppended
    | ObservationRecorded
    | DecisionRecorded
    | CallTraced
    | SessionImported
    | HeadMoved
    | RepairRecorded
    | ResponseRestored
    | Event
)
