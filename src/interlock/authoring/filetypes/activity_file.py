"""The source types of activity workflows: the head file, its activities and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from interlock.authoring.filetypes.step_file import (
    ActionSource,
    AssessmentSource,
    Camel,
    FunctionSource,
    Iterations,
    NonEmpty,
    Recommended,
    TriggerSource,
    VariableSource,
)
from interlock.core.values import Json


class SkillsSource(Camel, frozen=True):
    """The skills of a workflow or an activity, by id."""

    primary: str | None = None
    supporting: tuple[str, ...] = ()


class BranchSource(Camel, frozen=True):
    """One branch of a decision."""

    id: NonEmpty
    label: str | None = None
    condition: Json = None
    transition_to: str | None = None
    is_default: bool = False


class DecisionSource(Camel, frozen=True):
    """A choice among exits that the server makes from the variables."""

    id: NonEmpty
    branches: Annotated[tuple[BranchSource, ...], Meta(min_length=1)]
    name: str | None = None
    description: str | None = None


class TransitionSource(Camel, frozen=True):
    """An exit of an activity."""

    to: NonEmpty
    condition: Json = None
    is_default: bool = False


class ArtifactSource(Camel, frozen=True):
    """A file that an activity creates or updates."""

    id: NonEmpty
    name: NonEmpty
    location: str | None = None
    description: str | None = None
    action: Literal["create", "update"] | None = None


class LocationSource(Camel, frozen=True):
    """A folder for artifacts."""

    path: NonEmpty
    description: str | None = None
    gitignored: bool = False


class ActivityLoopSource(Camel, frozen=True):
    """A loop of an activity file."""

    id: NonEmpty
    type: Literal["forEach", "while", "doWhile"]
    name: str | None = None
    description: str | None = None
    variable: str | None = None
    over: str | None = None
    condition: Json = None
    max_iterations: Iterations = 100
    break_condition: Json = None
    steps: tuple[Json, ...] = ()
    activities: tuple[str, ...] = ()


class ActivitySource(Camel, frozen=True):
    """A stage of the work, with its own steps, checkpoints and transitions."""

    id: NonEmpty
    name: NonEmpty
    version: NonEmpty = "1.0.0"
    description: str | None = None
    problem: str | None = None
    recognition: tuple[str, ...] = ()
    skills: SkillsSource | None = None
    steps: tuple[Json, ...] = ()
    checkpoints: tuple[Json, ...] = ()
    decisions: tuple[DecisionSource, ...] = ()
    loops: tuple[Json, ...] = ()
    transitions: tuple[TransitionSource, ...] = ()
    triggers: tuple[TriggerSource, ...] | TriggerSource | None = None
    entry_actions: tuple[ActionSource, ...] = ()
    exit_actions: tuple[ActionSource, ...] = ()
    artifacts: tuple[ArtifactSource, ...] = ()
    artifact_prefix: Json = None
    outcome: tuple[str, ...] = ()
    context_to_preserve: tuple[str, ...] = field(default=(), name="context_to_preserve")
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    required: bool = True
    estimated_time: str | None = None


class ModeSource(Camel, frozen=True):
    """A variant of a workflow that a variable switches on."""

    id: NonEmpty
    name: NonEmpty
    activation_variable: NonEmpty
    description: str | None = None
    recognition: tuple[str, ...] = ()
    skip_activities: tuple[str, ...] = ()
    defaults: Mapping[str, Json] = {}
    resource: str | None = None


class ActivityWorkflowSource(Camel, frozen=True):
    """The head of an activity workflow: what holds for all of its activities."""

    id: NonEmpty
    version: NonEmpty
    title: str | None = None
    name: str | None = None
    description: str = ""
    author: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    variables: tuple[VariableSource, ...] = ()
    initial_activity: str | None = None
    activities: tuple[Json, ...] = ()
    activities_dir: str | None = None
    modes: tuple[ModeSource, ...] = ()
    artifact_locations: Mapping[str, NonEmpty | LocationSource] = {}
    skills: SkillsSource | tuple[str, ...] | None = None
    execution_model: Json = None
    assessments: tuple[AssessmentSource, ...] = ()
    function_definitions: tuple[FunctionSource, ...] = ()
    recommended_preferences: Recommended | None = None
    about: str | None = None
    min_server_version: str | None = None
