"""The parameters of the twenty tools. Every agent reads their schemas: each byte counts.

Ids are only ever compared with ids that exist, and none of them reaches a path (rule 39).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from interlock.core.values import Json
from interlock.surfaces.parameters import ASK_AGAIN, Find, Params, RequestId

WorkflowId = str
State = Annotated[str, Meta(description="Of the last response, whole")]
Variables = Annotated[dict[str, Json], Meta(description="Merged; null: unknown")]
Action = Literal["complete_step", "respond_to_checkpoint", "transition", "advance_loop", "abandon"]


class NavStart(Params, frozen=True):
    workflow_id: WorkflowId | None = None
    initial_variables: Variables | None = None
    activity_id: Annotated[str, Meta(description="An independent activity to begin with")] | None = None
    parent_state: Annotated[str, Meta(description="Of the run that triggers this")] | None = None
    find: Find | None = None
    requestId: RequestId | None = None


class NavState(Params, frozen=True):
    state: State


class NavAction(Params, frozen=True):
    state: State
    action: Action
    step_id: str | None = None
    checkpoint_id: str | None = None
    option_id: str | None = None
    note: (
        Annotated[str, Meta(description="The user's words with a response; why you abandon", max_length=2048)]
        | None
    ) = None
    activity_id: str | None = None
    loop_id: str | None = None
    loop_items: Annotated[list[Json], Meta(description="What a forEach loop goes through.")] | None = None
    variables: Variables | None = None
    reask: Annotated[dict[str, Json], Meta(description=ASK_AGAIN)] | None = None
    output: (
        Annotated[
            dict[str, Json],
            Meta(description="Of a step: notesMarkdown and/or artifacts [{kind, …}]"),
        ]
        | None
    ) = None
    abandon_children: bool = False


class OfWorkflow(Params, frozen=True):
    workflow_id: WorkflowId


class OfActivity(Params, frozen=True):
    workflow_id: WorkflowId
    activity_id: str


class OfCheckpoint(Params, frozen=True):
    workflow_id: WorkflowId
    activity_id: str
    checkpoint_id: str


class ValidateTransition(Params, frozen=True):
    workflow_id: WorkflowId
    from_activity: str
    to_activity: str


class GetActivity(Params, frozen=True):
    activity_id: str


class ListSkills(Params, frozen=True):
    workflow_id: WorkflowId | None = None


class GetSkill(Params, frozen=True):
    skill_id: str
    workflow_id: WorkflowId | None = None


class OfIndex(Params, frozen=True):
    workflow_id: WorkflowId
    index: str | int
