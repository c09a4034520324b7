"""The source types of the head of a step workflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from interlock.authoring.filetypes.field_types import KEPT, About, Camel, Line, Name, NonEmpty, RawItems, Role
from interlock.authoring.filetypes.output_source import AssessmentSource
from interlock.authoring.filetypes.prompt_source import FunctionSource
from interlock.core.definition.workflow import Capability, Need
from interlock.core.run.preferences import Autonomy, RiskPolicy
from interlock.core.values import Json


class Recommended(Camel, frozen=True):
    """How far the author would let a run go by itself."""

    recommended_autonomy: Autonomy = "guided"
    """How far a run should go without the user, from `guided` to `full_auto_stop_on_user_deps` to
    `full_auto_never_stop`. A run that starts beyond this gets a warning; the user's mode stays in force."""
    recommended_risk_policy: RiskPolicy = "conservative"
    """How missing capabilities are treated: `conservative` stops, `balanced` warns of unproven ones,
    `aggressive` warns of all. A run that starts beyond this gets a warning; the user's mode stays in force.
    """


class ReferenceSource(Camel, frozen=True):
    """A document that the workflow relies on."""

    id: NonEmpty
    """Names the reference; a name that begins with `wr.refs.` is a built-in text."""
    title: str = ""
    """What it is called."""
    source: str = ""
    """Where it is found; a name that begins with `wr.refs.` is a built-in text."""
    purpose: str = ""
    """What it is good for."""
    authoritative: bool = False
    """Whether it decides where texts disagree."""
    resolve_from: str | None = None
    """What the source is relative to."""


class VariableSource(Camel, frozen=True):
    """A variable that conditions and prompts read."""

    name: NonEmpty
    """The name that conditions, prompts and effects use."""
    type: Literal["string", "number", "boolean", "array", "object"] | UnsetType = UNSET
    """The type of its values: others are converted or refused. Without it, any value is taken."""
    description: str | None = None
    """What it means and which values it can have."""
    default_value: Json | UnsetType = UNSET
    """The value that comparisons and prompts see while nobody has set the variable; `exists` does not see it.
    """
    required: bool = False
    """Says that the value comes from outside, so that the validator does not look for a step that sets it."""
    values: Annotated[tuple[str | int | float | bool, ...], Meta(min_length=1)] = ()
    """The only values that it can have: others are refused, whoever sends them. Without it, all of its type
    can be."""


class FeatureUse(Camel, frozen=True):
    """A built-in feature with settings of its own."""

    id: NonEmpty
    """The name of a built-in feature."""
    config: Mapping[str, Json] = {}
    """Values for the settings that the feature has; those left out keep their default."""


class StepWorkflowSource(Camel, frozen=True):
    """A step workflow: one ordered list of steps, gates and loops."""

    id: NonEmpty
    """`namespace.name` in lower case, up to 128 characters; `wr` is reserved. An id without a dot is a
    warning."""
    name: Name
    """The name that people read, up to 128 characters."""
    version: NonEmpty
    """Three numbers such as `1.2.0`."""
    steps: Annotated[RawItems, Meta(min_length=1)]
    """Steps, gates and loops in the order in which a run meets them. In a folder, a text alone is the id of a
    step that is written in `steps/<id>.md`."""
    description: Line = ""
    """What the workflow achieves, in one or two sentences of up to 512 characters."""
    kind: Literal["workflow", "routine"] | None = None
    """`routine` is a part that others delegate to. If absent: `routine` for ids whose name begins with
    `routine-` and for files in a folder `routines`, else `workflow`."""
    category: str | None = None
    """The category in lists; the first tag if absent, else `general`."""
    tags: tuple[str, ...] = ()
    """Words to find the workflow by."""
    author: str | None = None
    """Who wrote it."""
    about: About | None = None
    """A longer description for people, up to 4096 characters."""
    examples: Annotated[tuple[str, ...], KEPT] = ()
    """Not interpreted; kept and shown to agents that read the whole workflow."""
    agent_role: Role | None = None
    """The role that the agent takes in every step; the first line of each prompt."""
    preconditions: tuple[str, ...] = ()
    """What must be true before the run; shown at its start as 'Before you begin'."""
    clarification_prompts: tuple[str, ...] = ()
    """Questions to settle first; shown at the start of the run as 'Clarify first'."""
    meta_guidance: tuple[str, ...] = ()
    """Rules for the whole run; shown at its start as 'Throughout'."""
    function_definitions: tuple[FunctionSource, ...] = ()
    """Functions that every step may name."""
    recommended_preferences: Recommended | None = None
    """How far the author would let a run go by itself."""
    capabilities: Mapping[Capability, Need] = {}
    """What the agent must be able to do: `delegation`, `web_browsing`. `required` adds a first step that
    tries it out; `preferred` tells the agent how to do without; `disabled` tells it not to."""
    features: tuple[NonEmpty | FeatureUse, ...] = ()
    """Built-in features; each adds lines to the prompt blocks of every step that has some. Named by its id,
    or as `{id, config}` where the feature has settings."""
    assessments: tuple[AssessmentSource, ...] = ()
    """Assessments that steps refer to."""
    references: tuple[ReferenceSource, ...] = ()
    """Documents that the workflow relies on; part of its hash."""
    variables: tuple[VariableSource, ...] = ()
    """The variables that conditions read."""
    extension_points: Annotated[Json, KEPT] = None
    """Not interpreted; kept and shown to agents that read the whole workflow."""
    model_tier: Annotated[str | None, KEPT] = None
    """Not interpreted; kept and shown to agents that read the whole workflow."""
    metrics_profile: Annotated[str | None, KEPT] = None
    """Not interpreted; kept and shown to agents that read the whole workflow."""
    min_server_version: str | None = None
    """The oldest server that can run the workflow; on an older one it is an error."""
    validated_against_spec_version: Annotated[Json, KEPT] = None
    """Not interpreted; kept and shown to agents that read the whole workflow."""
