"""The parameters of the tools that only the gated surface has."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from interlock.surfaces.parameters import Find, Params, RequestId
from interlock.surfaces.shared.session_params import Agent, Full, Note, Reask, StepManifest, Variables


class StartSession(Params, frozen=True):
    workflow_id: Annotated[str, Meta(description="Always, except with find")] | None = None
    session_token: Annotated[str, Meta(description="Inherit this session")] | None = None
    agent_id: Agent | None = None
    find: Find | None = None
    requestId: RequestId | None = None


class GetCheckpoint(Params, frozen=True):
    session_token: str
    activity_id: str
    checkpoint_id: str
    step_manifest: StepManifest | None = None
    variables: Variables | None = None
    reask: Reask | None = None


class RespondCheckpoint(Params, frozen=True):
    session_token: str
    checkpoint_id: str
    option_id: str | None = None
    auto_advance: bool = False
    condition_not_met: bool = False
    note: Note | None = None
    step_manifest: StepManifest | None = None
    variables: Variables | None = None


class GetSkills(Params, frozen=True):
    session_token: str
    full: Full = False


class GetResource(Params, frozen=True):
    session_token: str
    resource_index: Annotated[str, Meta(description="03, or workflow/03")]
    full: Full = False
