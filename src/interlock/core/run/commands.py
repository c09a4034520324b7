"""Commands to a run, in the imperative. Time, ids and policy arrive in them; the core has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from interlock.core.run.events import Channel
from interlock.core.run.output import Output
from interlock.core.run.preferences import Preferences
from interlock.core.run.surface_policy import SurfacePolicy
from interlock.core.values import Json, Variables

DecisionPolicy = Literal["auto", "user", "agent"]
Enforcement = Literal["strict", "advisory"]


class Terms(Struct, frozen=True):
    """The user's terms for decisions: who may answer gates, how strictly, how fast."""

    decisions: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    min_response_ms: int = 3000


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
    policy: SurfacePolicy
    now: int
    workflow_hash: str
    source: str
    preferences: Preferences
    variables: Variables = {}


class AcknowledgeStep(Struct, frozen=True):
    """Close the pending item. `decisions` are the user's own answers, by gate id or input key.

    `reports` says whether a bare acknowledgement counts as the agent's report of a confirmation.
    """

    policy: SurfacePolicy
    now: int
    terms: Terms
    output: Output = Output()
    variables: Variables = {}
    step: str | None = None
    decisions: Mapping[str, Decision] = {}
    reports: bool = True
    client: str = ""


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
    client: str = ""


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
    client: str = ""


class ResolveCheckpoint(Struct, frozen=True):
    """Answer a gate in exactly one of three ways (rule 24). `decisions` are the user's own answers."""

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
    variables: Variables = {}
    decisions: Mapping[str, Decision] = {}


class ResumeWorker(Struct, frozen=True):
    policy: SurfacePolicy
    now: int
    agent: str
    variables: Variables = {}


class AdvanceLoop(Struct, frozen=True):
    policy: SurfacePolicy
    now: int
    terms: Terms
    loop: str
    items: tuple[Json, ...] | None = None
    variables: Variables = {}


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


Command: TypeAlias = (
    StartRun
    | AcknowledgeStep
    | EnterActivity
    | OpenCheckpoint
    | ResolveCheckpoint
    | ResumeWorker
    | AdvanceLoop
    | StartChild
    | ReturnChild
)
