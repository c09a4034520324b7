"""Parameters that both session surfaces share. Every agent reads their descriptions: each word counts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from interlock.core.values import Json
from interlock.surfaces.parameters import ASK_AGAIN, Params, Reason

Variables = Annotated[
    dict[str, Json],
    Meta(description="Merged into the session's variables, kept even if refused; null: unknown"),
]
Reask = Annotated[dict[str, Json], Meta(description=ASK_AGAIN)]
Note = Annotated[str, Meta(max_length=2048, description="What the user said, in their words")]
Full = Annotated[bool, Meta(description="Whole, though you were sent it before")]
Agent = Annotated[str, Meta(min_length=1, max_length=128)]


class StepDone(Struct, frozen=True):
    """What a manifest says of a step. Manifests are advisory: more fields than these are not an error."""

    step_id: str
    output: Json = ""


class ActivityDone(Struct, frozen=True):
    """What a manifest says of an activity."""

    activity_id: str
    outcome: str = ""
    transition_condition: str | None = None


StepManifest = Annotated[
    list[StepDone],
    Meta(
        description="Steps done in the activity being left, in order; output: text, or {artifacts: [{kind}]}"
    ),
]


class WithToken(Params, frozen=True):
    session_token: str


class GetWorkflow(Params, frozen=True):
    session_token: str
    summary: bool = True
    full: Full = False


class NextActivity(Params, frozen=True):
    session_token: str
    activity_id: Annotated[str, Meta(description="From transitions; __terminal__ ends the workflow")]
    transition_condition: str | None = None
    step_manifest: StepManifest | None = None
    activity_manifest: list[ActivityDone] | None = None
    variables: Variables | None = None
    abandon: Annotated[Reason, Meta(description="With __terminal__: give up the run, and why")] | None = None


class GetSessionSkill(Params, frozen=True):
    session_token: str
    step_id: str | None = None
    skill_id: Annotated[str, Meta(description="Instead: a supporting skill of the activity")] | None = None
    full: Full = False


class GetTrace(Params, frozen=True):
    session_token: str
    trace_tokens: list[str] | None = None
