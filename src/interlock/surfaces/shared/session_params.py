"""Parameters that both session surfaces share. Every agent reads their descriptions: each word counts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from interlock.core.values import Json
from interlock.surfaces.strict_params import Params

Variables = Annotated[
    dict[str, Json],
    Meta(description="Merged into the session's variables, kept even if refused; null deletes"),
]
Known = Annotated[str, Meta(description="Digest you hold; the same is answered 'unchanged'")]
Agent = Annotated[str, Meta(min_length=1, max_length=128)]


class StepDone(Params, frozen=True):
    step_id: str
    output: Json = ""


class ActivityDone(Params, frozen=True):
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


class NextActivity(Params, frozen=True):
    session_token: str
    activity_id: Annotated[str, Meta(description="From transitions; __terminal__ ends the workflow")]
    transition_condition: str | None = None
    step_manifest: StepManifest | None = None
    activity_manifest: list[ActivityDone] | None = None
    variables: Variables | None = None


class GetTrace(Params, frozen=True):
    session_token: str
    trace_tokens: list[str] | None = None
