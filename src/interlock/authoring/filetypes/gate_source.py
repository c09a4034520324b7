"""The source types of a gate (`checkpoint` in files): its options, and who decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from interlock.authoring.filetypes.field_types import KEPT, Camel, Duration, NonEmpty, RawCondition
from interlock.authoring.filetypes.step_source import CheckSource
from interlock.core.values import Json


class EffectSource(Camel, frozen=True):
    """What choosing an option does."""

    set_variable: Mapping[str, Json] = {}
    """Variables to set, by name; `null` deletes one."""
    transition_to: str | None = None
    """The activity to go to at once, past what is left of this one; `__terminal__` ends the run."""
    skip_activities: tuple[str, ...] = ()
    """Activities to skip from now on: whatever leads to one goes to its default transition instead."""


class OptionSource(Camel, frozen=True):
    """An answer to a gate."""

    id: NonEmpty
    """What an answer names."""
    label: str | None = None
    """What the user reads; the id if absent."""
    description: str | None = None
    """A longer text beside the label."""
    effect: EffectSource = EffectSource()
    """What choosing the option does."""


class ThenSource(Camel, frozen=True):
    """What follows where the approvers of a gate do not decide in time: one of the two."""

    escalate: NonEmpty | None = None
    """A name or group that may answer as well from then on."""
    option: NonEmpty | None = None
    """The option that is taken then."""


class DecideSource(Camel, frozen=True):
    """Who decides a gate, and by when."""

    by: Annotated[tuple[NonEmpty, ...], Meta(min_length=1)]
    """Names and groups of principals (`interlock auth`). Only they answer the gate."""
    at_least: Annotated[int, Meta(ge=1)] = 1
    """How many different people must choose the same option; 1 if absent."""
    not_by: Literal["starter"] | None = None
    """`starter`: whoever started the run does not count."""
    within: Duration | None = None
    """How long they have from the showing of the question: a number of up to five digits, and `s`, `m`, `h`
    or `d`."""
    remind: Duration | None = None
    """How often they are reminded while it waits, in the same form."""
    then: ThenSource | None = None
    """What follows if they do not decide in time; needs `within`."""


class GateSource(Camel, frozen=True):
    """A question that holds the run until it is answered."""

    id: NonEmpty
    """Names the gate within its activity; two gates of one id are an error."""
    message: NonEmpty
    """The question as the user reads it."""
    options: Annotated[tuple[OptionSource, ...], Meta(min_length=1)]
    """The answers to choose from."""
    type: Literal["gate", "checkpoint"] = "gate"
    """`gate` and `checkpoint` mean the same; needed in `steps`, not in `checkpoints`."""
    name: str | None = None
    """A short title; the id if absent."""
    condition: RawCondition = None
    """The gate is passed over while this condition is false."""
    prerequisite: Annotated[str | None, KEPT] = None
    """What must have happened before, in words; shown and not evaluated."""
    required: bool = True
    """Whether an answer is needed. `execution` offers an optional gate, the other surfaces pass it over."""
    blocking: bool | None = None
    """Whether only an answer passes the gate. If absent: `false` where `defaultOption` and `autoAdvanceMs`
    are both given, else `true`."""
    default_option: str | None = None
    """The option that is taken when the time is over, and in never-stop mode without an answer."""
    auto_advance_ms: Annotated[int, Meta(ge=1)] | None = None
    """Milliseconds to wait for an answer; the next call after that takes `defaultOption`, unless the gate is
    blocking."""
    checks: tuple[NonEmpty | CheckSource, ...] = ()
    """Checks that must pass before the question is put, which shows them."""
    decide: DecideSource | None = None
    """Who decides the gate, and by when; nobody else's answer counts."""


def milliseconds(duration: str) -> int:
    """Return a duration as the core counts it."""
    units = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(duration[:-1]) * units[duration[-1]]
