"""The source types of activity workflows: the head file, its activities and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from interlock.authoring.filetypes.field_types import (
    KEPT,
    Camel,
    Iterations,
    NonEmpty,
    RawActivities,
    RawCondition,
    RawGates,
    RawItems,
    RawLoops,
)
from interlock.authoring.filetypes.output_source import AssessmentSource
from interlock.authoring.filetypes.prompt_source import FunctionSource
from interlock.authoring.filetypes.step_file import Recommended, VariableSource
from interlock.authoring.filetypes.step_source import ActionSource, TriggerSource
from interlock.core.values import Json


class SkillsSource(Camel, frozen=True):
    """The skills of a workflow or an activity, by id."""

    primary: str | None = None
    """The skill that an agent reads first."""
    supporting: tuple[str, ...] = ()
    """Further skills. Of an activity only; the workflow's are not read."""


class BranchSource(Camel, frozen=True):
    """One branch of a decision."""

    id: NonEmpty
    """Names the branch."""
    label: str | None = None
    """What people read; the id if absent."""
    condition: RawCondition = None
    """The branch applies while this condition holds."""
    transition_to: str | None = None
    """The activity to go to; a branch without one decides nothing."""
    is_default: bool = False
    """Applies if no branch with a condition does; only for a branch without a condition."""


class DecisionSource(Camel, frozen=True):
    """A choice among exits that the server makes from the variables."""

    id: NonEmpty
    """Names the decision."""
    branches: Annotated[tuple[BranchSource, ...], Meta(min_length=1)]
    """The branches in order; the first that applies and has a target decides."""
    name: str | None = None
    """The heading; the id if absent."""
    description: str | None = None
    """What is decided."""


class TransitionSource(Camel, frozen=True):
    """An exit of an activity."""

    to: NonEmpty
    """The id of an activity; `__terminal__`, `end-workflow` and `workflow-end` end the run."""
    condition: RawCondition = None
    """The transition is open while this condition holds."""
    is_default: bool = False
    """Taken if no condition holds. If none is marked, the first without a condition is."""


class ArtifactSource(Camel, frozen=True):
    """A file that an activity creates or updates."""

    id: NonEmpty
    """Names the artifact."""
    name: NonEmpty
    """The file's name."""
    location: str | None = None
    """A name in the workflow's `artifactLocations`."""
    description: str | None = None
    """What the file holds."""
    action: Literal["create", "update"] | None = None
    """Whether the activity creates or updates the file."""


class LocationSource(Camel, frozen=True):
    """A folder for artifacts."""

    path: NonEmpty
    """The folder; may name variables as `{name}`."""
    description: str | None = None
    """What is kept there."""
    gitignored: bool = False
    """Whether git leaves the folder out."""


class ActivityLoopSource(Camel, frozen=True):
    """A loop of an activity file."""

    id: NonEmpty
    """Names the loop within its activity; two loops of one id are an error."""
    type: Literal["forEach", "while", "doWhile"]
    """The kind of loop."""
    name: str | None = None
    """The heading; the id if absent."""
    description: str | None = None
    """A summary."""
    variable: str | None = None
    """`forEach`: the variable that holds the item; `currentItem` if absent."""
    over: str | None = None
    """`forEach`: the variable that holds the list. It is read once, on arrival."""
    condition: RawCondition = None
    """`while` and `doWhile` repeat while it holds."""
    max_iterations: Iterations = 100
    """The most iterations, 1 to 1000. A loop that would go on is left, and a warning gap is recorded."""
    break_condition: RawCondition = None
    """The loop is left if this condition holds at the end of an iteration."""
    steps: RawItems = ()
    """What is repeated: steps, gates and loops in order."""
    loops: RawLoops = ()
    """Loops within this one, before or after `steps` as the file has them."""
    checkpoints: RawGates = ()
    """Gates of each iteration, placed as those of an activity are."""
    activities: tuple[str, ...] = ()
    """Ids of activities whose steps, loops and checkpoints follow `steps` in each iteration; their
    transitions are ignored."""


class ActivitySource(Camel, frozen=True):
    """A stage of the work, with its own steps, checkpoints and transitions."""

    id: NonEmpty
    """Names the activity within the workflow; what `transitionTo` and `to` refer to."""
    name: NonEmpty
    """The name that people read."""
    version: NonEmpty = "1.0.0"
    """Three numbers such as `1.2.0`."""
    description: str | None = None
    """What happens in the activity."""
    problem: str | None = None
    """The need that it serves; shown where an activity is chosen."""
    recognition: tuple[str, ...] = ()
    """Goals in a user's words that the activity fits; `navigation` lists them."""
    skills: SkillsSource | tuple[str, ...] | None = None
    """The skills for this activity."""
    steps: RawItems = ()
    """Steps, gates and loops in order. A text alone is the id of a step that is written in
    `activities/<activity>/<id>.md`."""
    checkpoints: RawGates = ()
    """Gates: each is asked before the step whose `checkpoint` names it, else where the compiler puts it;
    `validate` says where."""
    decisions: tuple[DecisionSource, ...] = ()
    """Choices that the server makes from the variables when the activity is done."""
    loops: RawLoops = ()
    """Loops that follow the steps."""
    transitions: tuple[TransitionSource, ...] = ()
    """Where the activity leads; without any, the run ends after it."""
    triggers: tuple[TriggerSource, ...] | TriggerSource | None = None
    """Child workflows that the agent starts in this activity; one object or a list."""
    entry_actions: tuple[ActionSource, ...] = ()
    """What happens when the activity is entered."""
    exit_actions: tuple[ActionSource, ...] = ()
    """What happens when the activity is left."""
    artifacts: tuple[ArtifactSource, ...] = ()
    """Files that the activity creates or updates; shown to agents."""
    artifact_prefix: Json = None
    """Ignored; the prefix is the number in the name of the activity's file."""
    outcome: tuple[str, ...] = ()
    """What is true when the activity is done; shown to agents."""
    context_to_preserve: tuple[str, ...] = field(default=(), name="context_to_preserve")
    """What later activities need from this one; shown to agents."""
    rules: tuple[str, ...] = ()
    """Rules for this activity; shown to agents."""
    notes: tuple[str, ...] = ()
    """Further remarks; shown to agents."""
    required: bool = True
    """Whether the activity belongs to every run; shown to agents."""
    estimated_time: str | None = None
    """How long it takes, such as `10-20 min`; shown to agents."""


class ModeSource(Camel, frozen=True):
    """A variant of a workflow that a variable switches on."""

    id: NonEmpty
    """Names the mode."""
    name: NonEmpty
    """The name that people read."""
    activation_variable: NonEmpty
    """The variable that switches the mode on while it is `true`."""
    description: str | None = None
    """What the mode is for."""
    recognition: tuple[str, ...] = ()
    """Phrases in a user's request that ask for the mode; shown to agents."""
    skip_activities: tuple[str, ...] = ()
    """Activities to skip while the mode is on: whatever leads to one goes to its default transition instead.
    """
    defaults: Mapping[str, Json] = {}
    """Values for variables that agents are shown with the mode; the server does not set them."""
    resource: str | None = None
    """A resource that explains the mode: its number, or `workflow/NN`."""


class ActivityWorkflowSource(Camel, frozen=True):
    """The head of an activity workflow: what holds for all of its activities."""

    id: NonEmpty
    """Lower-case letters, digits and hyphens, up to 128 characters, without a namespace."""
    version: NonEmpty
    """Three numbers such as `1.2.0`."""
    title: str | None = None
    """The name that people read. Every workflow has `title` or `name`."""
    name: str | None = None
    """The same as `title`, which takes precedence."""
    description: str = ""
    """What the workflow achieves, in one or two sentences."""
    author: str | None = None
    """Who wrote it."""
    category: str | None = None
    """The category in lists; the first tag if absent, else `general`."""
    tags: tuple[str, ...] = ()
    """Words to find the workflow by."""
    rules: tuple[str, ...] = ()
    """Rules for the whole run; shown at its start."""
    variables: tuple[VariableSource, ...] = ()
    """The variables that conditions read."""
    initial_activity: str | None = None
    """Where a run begins. If absent, it begins with the one activity that no other leads to; if none leads to
    another, the first question of a run is which one to enter."""
    activities: RawActivities = ()
    """Activities that are not files of the folder: references such as `other/02-review.yaml`, or whole
    activities. Names of files without a number give their order."""
    activities_dir: str | None = None
    """The folder of the activity files; `activities` if absent."""
    modes: tuple[ModeSource, ...] = ()
    """Variants of the workflow that skip activities."""
    artifact_locations: Mapping[str, NonEmpty | LocationSource] = {}
    """Folders for artifacts by name: a path, or an object; shown to agents."""
    skills: SkillsSource | tuple[str, ...] | None = None
    """The skills for the whole workflow, or a list whose first entry is the primary one."""
    execution_model: Annotated[Json, KEPT] = None
    """Not interpreted; the `gated` surface returns it with the workflow."""
    assessments: tuple[AssessmentSource, ...] = ()
    """Assessments that steps refer to."""
    function_definitions: tuple[FunctionSource, ...] = ()
    """Functions that every step may name."""
    recommended_preferences: Recommended | None = None
    """How far the author would let a run go by itself."""
    about: str | None = None
    """A longer description for people."""
    min_server_version: str | None = None
    """The oldest server that can run the workflow; on an older one it is an error."""
