"""The state of a run: small and bounded, so that the ten-thousandth step costs what the tenth did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from interlock.core.definition.workflow import Capability
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json

Status = Literal["in_progress", "complete", "complete_with_gaps"]
CapabilityStatus = Literal["unknown", "available", "unavailable"]
LoopDecision = Literal["continue", "stop"]


class Frame(Struct, frozen=True, omit_defaults=True):
    """A loop that the run is inside of. Its items are frozen at entry; `limited` says that they were cut."""

    loop: str
    iteration: int = 0
    total: int | None = None
    items: tuple[Json, ...] = ()
    limited: bool = False


class OpenGate(Struct, frozen=True, omit_defaults=True):
    """A question that was asked and waits for its answer."""

    key: str
    gate: str
    opened_at: int
    agent: str = ""


class Resolution(Struct, frozen=True, omit_defaults=True):
    """An answer, and the agent who asked: one that it has yet to resume from, or the last it did."""

    key: str
    gate: str
    option: str | None
    agent: str = ""


class RunState(Struct, frozen=True, omit_defaults=True):
    """Everything that decides what happens next; the history is in the log.

    `next_key` is the operation that comes next in the activity's program; `children` are the sessions that
    were triggered and have not returned, with their workflows.
    """

    activity: str | None = None
    visit: int = 0
    next_key: str = ""
    entered_at: int = 0
    frames: tuple[Frame, ...] = ()
    variables: Mapping[str, Json] = {}
    answers: Mapping[str, str] = {}
    done: tuple[str, ...] = ()
    open: OpenGate | None = None
    resolution: Resolution | None = None
    resumed: Resolution | None = None
    exit_to: str | None = None
    left_to: str | None = None
    skipped: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    steer: LoopDecision | None = None
    preferences: Preferences = Preferences()
    capabilities: Mapping[Capability, CapabilityStatus] = {}
    children: Mapping[str, str] = {}
    gaps: int = 0
    status: Status = "in_progress"
    finished_at: int | None = None

    @property
    def finished(self) -> bool:
        return self.status != "in_progress"


def instance(state: RunState, item_id: str) -> str:
    """The key of an item in its loops: `outer@0/inner@2::step`, or the bare id outside loops (rule 37)."""
    path = "/".join(f"{frame.loop}@{frame.iteration}" for frame in state.frames)
    return f"{path}::{item_id}" if path else item_id
