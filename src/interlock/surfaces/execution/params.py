"""The parameters of the seven tools. Every agent reads their descriptions, so each word earns its place."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from interlock.core.values import Json
from interlock.surfaces.parameters import ASK_AGAIN, Params, Reason, RequestId

Context = Annotated[
    dict[str, Json],
    Meta(
        description="External facts for conditions and loops. Merged; null: unknown. Not for progress notes."
    ),
]
Output = Annotated[
    dict[str, Json],
    Meta(
        description="Durable result: notesMarkdown (short recap) and/or artifacts "
        "[{kind, …}] where the step asks for them."
    ),
]
SessionToken = Annotated[str, Meta(description="From start_session (sst.v1.…).")]


class InspectWorkflow(Params, frozen=True):
    workflowId: str
    mode: Literal["metadata", "preview"] = "preview"


class StartWorkflow(Params, frozen=True):
    workflowId: str
    context: Context | None = None
    sessionToken: SessionToken | None = None
    requestId: RequestId | None = None


MOST_WAIT_SECONDS = 55
WaitSeconds = Annotated[
    int,
    Meta(ge=0, le=MOST_WAIT_SECONDS, description="Where the user must decide: wait this long for it."),
]


class ContinueWorkflow(Params, frozen=True):
    stateToken: Annotated[str, Meta(description="Exactly as returned (st.v1.…).")]
    ackToken: (
        Annotated[str, Meta(description="Advance: the step is done. Omit to only read again.")] | None
    ) = None
    context: Context | None = None
    reask: Annotated[dict[str, Json], Meta(description=ASK_AGAIN)] | None = None
    output: Output | None = None
    waitSeconds: WaitSeconds | None = None
    abandon: (
        Annotated[Reason, Meta(description="With ackToken: give up the run for good, and why.")] | None
    ) = None


class CheckpointWorkflow(Params, frozen=True):
    output: Output
    stateToken: str | None = None
    checkpointToken: Annotated[str, Meta(description="Of a start or a read (chk.v1.…).")] | None = None
    sessionToken: SessionToken | None = None


class StartSession(Params, frozen=True):
    title: Annotated[str, Meta(description="What this work is about.", max_length=200)] | None = None
    requestId: RequestId | None = None


class ResumeSession(Params, frozen=True):
    query: Annotated[str, Meta(description="Words about the work.", max_length=256)] | None = None
    resumeRef: Annotated[str, Meta(description="Session or run id, or its unambiguous beginning.")] | None = (
        None
    )
