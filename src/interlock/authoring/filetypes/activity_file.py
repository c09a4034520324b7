"""The source types of activity workflows: the head file, its activities, and what they hold."""

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
    Recommended,
    TriggerSource,
    VariableSource,
    Word,
)
from interlock.core.values import Json


class SkillsSource(Camel, frozen=True):
    primary: str | None = None
    supporting: tuple[str, ...] = ()


class BranchSource(Camel, frozen=True):
    id: Word
    label: str | None = None
    condition: Json = None
    transition_to: str | None = None
    is_default: bool = False


class DecisionSource(Camel, frozen=True):
    id: Word
    branches: Annotated[tuple[BranchSource, ...], Meta(min_length=1)]
    name: str | None = None
    description: str | None = None


class TransitionSource(Camel, frozen=True):
    to: Word
    condition: Json = None
    is_default: bool = False


class ArtifactSource(Camel, frozen=True):
    id: Word
    name: Word
    location: str | None = None
    description: str | None = None
    action: Literal["create", "update"] | None = None


class ActivityLoopSource(Camel, frozen=True):
    id: Word
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
    id: Word
    name: Word
    version: Word = "1.0.0"
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
    id: Word
    name: Word
    activation_variable: Word
    description: str | None = None
    recognition: tuple[str, ...] = ()
    skip_activities: tuple[str, ...] = ()
    defaults: Mapping[str, Json] = {}
    resource: str | None = None


class ActivityWorkflowSource(Camel, frozen=True):
    id: Word
    version: Word
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
    artifact_locations: Mapping[str, Json] = {}
    skills: SkillsSource | tuple[str, ...] | None = None
    execution_model: Json = None
    assessments: tuple[AssessmentSource, ...] = ()
    function_definitions: tuple[FunctionSource, ...] = ()
    recommended_preferences: Recommended | None = None
    about: str | None = None
    min_server_version: str | None = None
