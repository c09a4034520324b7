"""The parameters of the tools that only the session surface has."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from interlock.surfaces.parameters import Find, Params, RequestId
from interlock.surfaces.shared.session_params import Agent, Full, Note, Reask, StepManifest, Variables

Handle = Annotated[str, Meta(description="From yield_checkpoint; or send session_token")]


class StartSession(Params, frozen=True):
    agent_id: Agent
    workflow_id: Annotated[str, Meta(description="Default meta; not needed with session_token")] | None = None
    parent_session_token: str | None = None
    session_token: Annotated[str, Meta(description="Inherit this session")] | None = None
    find: Find | None = None
    requestId: RequestId | None = None


class GetActivity(Params, frozen=True):
    session_token: str
    full: Full = False


class YieldCheckpoint(Params, frozen=True):
    session_token: str
    checkpoint_id: str
    iteration: Annotated[int, Meta(ge=1, description="Of its loop, from 1")] | None = None
    step_manifest: StepManifest | None = None
    variables: Variables | None = None
    reask: Reask | None = None


class ResumeCheckpoint(Params, frozen=True):
    session_token: str
    variables: Variables | None = None


class PresentCheckpoint(Params, frozen=True):
    checkpoint_handle: Handle | None = None
    session_token: str | None = None


class RespondCheckpoint(Params, frozen=True):
    checkpoint_handle: Handle | None = None
    session_token: str | None = None
    option_id: str | None = None
    auto_advance: bool = False
    condition_not_met: bool = False
    note: Note | None = None
    variables: Variables | None = None


class GetResource(Params, frozen=True):
    session_token: str
    resource_id: Annotated[str, Meta(description="03, or workflow/03")]
    full: Full = False
