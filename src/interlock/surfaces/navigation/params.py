"""The parameters of the twenty tools. Ids are matched against their patterns first (rule 39)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from interlock.core.values import Json
from interlock.surfaces.strict_params import Params, RequestId

WorkflowId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=128)]
Id = Annotated[str, Meta(max_length=256)]
SkillId = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*(/[A-Za-z0-9][A-Za-z0-9-]*)?$", max_length=128)
]
Index = Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9-]*$", max_length=128)]
State = Annotated[str, Meta(description="Opaque; copy it whole from the last response.", max_length=512)]
Variables = Annotated[dict[str, Json], Meta(description="Facts for conditions. Merged; null deletes.")]
Action = Literal["complete_step", "respond_to_checkpoint", "transition", "advance_loop"]


class NavStart(Params, frozen=True):
    workflow_id: WorkflowId
    initial_variables: Variables | None = None
    parent_state: (
        Annotated[str, Meta(description="State of the run that triggers this one.", max_length=512)] | None
    ) = None
    requestId: RequestId | None = None


class NavState(Params, frozen=True):
    state: State


class NavAction(Params, frozen=True):
    state: State
    action: Action
    step_id: Id | None = None
    checkpoint_id: Id | None = None
    option_id: Annotated[str, Meta(max_length=256)] | None = None
    note: Annotated[str, Meta(description="The user's words with a response.", max_length=2048)] | None = None
    activity_id: Id | None = None
    loop_id: Id | None = None
    loop_items: Annotated[list[Json], Meta(description="What a forEach loop goes through.")] | None = None
    variables: Variables | None = None
    output: (
        Annotated[
            dict[str, Json],
            Meta(description="Result of a step: notesMarkdown and/or artifacts [{kind, …}] where asked for."),
        ]
        | None
    ) = None


class OfWorkflow(Params, frozen=True):
    workflow_id: WorkflowId


class OfActivity(Params, frozen=True):
    workflow_id: WorkflowId
    activity_id: Id


class OfCheckpoint(Params, frozen=True):
    workflow_id: WorkflowId
    activity_id: Id
    checkpoint_id: Id


class ValidateTransition(Params, frozen=True):
    workflow_id: WorkflowId
    from_activity: Id
    to_activity: Id


class GetActivity(Params, frozen=True):
    activity_id: Id


class ListSkills(Params, frozen=True):
    workflow_id: WorkflowId | None = None


class GetSkill(Params, frozen=True):
    skill_id: SkillId
    workflow_id: WorkflowId | None = None


class OfIndex(Params, frozen=True):
    workflow_id: WorkflowId
    index: Index | int
