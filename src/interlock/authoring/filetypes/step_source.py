"""The source types of a step and its parts, which step files and activity files share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from interlock.authoring.filetypes.field_types import (
    KEPT,
    Camel,
    Name,
    NonEmpty,
    RawCondition,
    RawConfirmation,
    RawCriteria,
    RawPrompt,
    Role,
)
from interlock.authoring.filetypes.output_source import Consequence, OutputContract, OutputSource
from interlock.authoring.filetypes.prompt_source import (
    CallSource,
    FragmentSource,
    FunctionSource,
    PromptBlocks,
    TemplateCall,
)
from interlock.core.definition.checks import CHECK_SECONDS
from interlock.core.definition.workflow import ActionKind, Capability, NonAssumable, UserOnlyReason
from interlock.core.values import Json


class UserInputSource(Camel, frozen=True):
    """Something that only the user can give."""

    reason: UserOnlyReason
    """Why only the user can give it."""
    question: NonEmpty
    """The question as the user reads it."""
    key: str | None = None
    """The variable that holds the answer; the step can be acknowledged once it is set. Without a key the
    answer is a decision called `<step id>:<reason>`."""
    non_assumable: NonAssumable | None = None
    """Why the choice must not be assumed. Outside guided mode a `needs_user_choice` without this is assumed,
    and the assumption is recorded."""


class ExpectationSource(Camel, frozen=True):
    """What a check must bring."""

    exit: Annotated[int, Meta(ge=0, le=255)] = 0
    """The exit status."""
    stdout: str = ""
    """A text that the output has."""
    files: tuple[NonEmpty, ...] = ()
    """Files of the project that are there afterwards."""


class CheckSource(Camel, frozen=True):
    """A command that the server runs before the step is done."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    """Names the check; texts show its result as `{{checks.ID}}`."""
    run: NonEmpty
    """The command, split into words as a shell would and run without one."""
    folder: NonEmpty = field(default=".", name="in")
    """The folder within the project to run it in."""
    timeout: Annotated[int, Meta(ge=1, le=3600)] = CHECK_SECONDS
    """Seconds until it is ended."""
    expect: ExpectationSource = ExpectationSource()
    """What must come of it."""
    when: RawCondition = None
    """The check is not run while this condition is false."""


class ActionSource(Camel, frozen=True):
    """What happens when a step is done, or when an activity is entered or left."""

    action: ActionKind
    """`set` writes a variable; the others are instructions that the agent reads."""
    target: str | None = None
    """The variable that `set` writes, or what another action is about."""
    message: str | None = None
    """What the agent reads beside the action."""
    value: Json | UnsetType = UNSET
    """The value that the server writes for `set`. Without one, the prompt asks the agent to produce the
    variable, and a missing variable is a warning."""
    description: str | None = None
    """Stands in for `message` where that is absent."""
    condition: RawCondition = None
    """The server carries out `set` only while this condition holds."""


class TriggerSource(Camel, frozen=True):
    """A child workflow."""

    workflow: NonEmpty
    """The id of the workflow to start as a child."""
    description: str | None = None
    """Why it is started; shown to the agent."""
    pass_context: tuple[str, ...] = ()
    """Names of the variables whose values the child starts with."""


class Delegation(Camel, frozen=True):
    """One part of a parallel step."""

    workflow_id: NonEmpty
    """The workflow or routine that the agent delegates."""
    args: Mapping[str, Json] = {}
    """Arguments for it, which the prompt shows as JSON."""
    goal: str | None = None
    """What it is to achieve; shown to the agent."""
    context_mapping: Mapping[str, Json] = {}
    """What it is given of the context, which the prompt shows as JSON."""
    allowed_tools: tuple[str, ...] = ()
    """The only tools that it may use; shown to the agent."""
    run_condition: RawCondition = None
    """It is shown as part of the step only while this condition holds."""
    model_tier: str | None = None
    """The kind of model to use; shown to the agent."""


class StepSource(Camel, frozen=True):
    """One piece of work for the agent."""

    id: NonEmpty
    """Names the step within its activity: up to 128 letters, digits, `_`, `.` and `-`. A second step of the
    same id is a warning and becomes `id#2`."""
    type: Literal["step", "parallel"] = "step"
    """May be left out; `parallel` is a step that the agent delegates in parts."""
    title: Name | None = None
    """The heading, up to 128 characters. Every step has `title` or `name`."""
    name: Name | None = None
    """The same as `title`, which takes precedence; activity files use this field."""
    description: str | None = None
    """A summary; it is the prompt of a step without `prompt` and `promptBlocks`."""
    prompt: RawPrompt = None
    """What the agent is to do: text, or a list of texts and parts that are joined."""
    prompt_blocks: PromptBlocks | None = None
    """What the agent is to do, in sections; they follow `prompt` if both are given."""
    template_call: TemplateCall | None = None
    """Replaces this step by the steps of a template; their ids are `<id>.<template step>`."""
    prompt_fragments: tuple[FragmentSource, ...] = ()
    """Texts that are added to the prompt while their condition holds."""
    agent_role: Role | None = None
    """The role that the agent takes in this step instead of the workflow's; the first line of the prompt."""
    guidance: tuple[NonEmpty, ...] = ()
    """Advice that the prompt lists after the instruction."""
    ask_for_files: bool = False
    """Adds a line to the prompt: ask the user for the files that the step needs."""
    require_confirmation: RawConfirmation = False
    """`true`, or a condition: after the step the user says `proceed` or `revise`. An object with `kind` may
    hold the `condition`."""
    run_condition: RawCondition = None
    """The step is skipped while this condition is false."""
    condition: RawCondition = None
    """The same as `runCondition`, which takes precedence; activity files use this field."""
    validation_criteria: RawCriteria = None
    """What the step's notes (or, without notes, its artifacts as JSON) must satisfy: a list of rules, a tree
    of `and`, `or` and `not`, or one pattern."""
    has_validation: bool | None = None
    """Accepted for files of other servers; ignored."""
    output_contract: OutputContract | None = None
    """The older form of `output` with a `contractRef`."""
    output: OutputSource | None = None
    """The artifact that the step must hand in."""
    assessment_refs: tuple[str, ...] = ()
    """Assessments of the workflow that the step must report as artifacts of kind `wr.assessment`."""
    assessment_consequences: tuple[Consequence, ...] = ()
    """Levels of these assessments that do not let the step pass."""
    user_input: tuple[UserInputSource, ...] = ()
    """What only the user can give; the step waits for it."""
    checks: tuple[NonEmpty | CheckSource, ...] = ()
    """Commands that the server runs when the step is done, and the names of checks that a project defines in
    `.interlock/checks.yaml`. One that fails holds the step."""
    function_definitions: tuple[FunctionSource, ...] = ()
    """Functions that only this step knows."""
    function_calls: tuple[CallSource, ...] = ()
    """Functions that the step calls; the prompt shows their definitions."""
    function_references: tuple[str, ...] = ()
    """Functions that the step mentions, as `name` or `name()`; the prompt shows their definitions."""
    parallel_delegations: tuple[Delegation, ...] = ()
    """With `type: parallel`: what the agent hands out."""
    synthesis: Json = None
    """With `type: parallel`: how the agent brings the results together."""
    skill: str | None = None
    """The skill that the agent uses for this step; the prompt names it."""
    skill_args: Mapping[str, Json] = {}
    """Arguments for the skill; shown with the step."""
    skill_args_as_documented: Mapping[str, Json] = field(default_factory=dict, name="skill_args")
    """The same as `skillArgs`, which takes precedence; activity files use this field."""
    checkpoint: str | None = None
    """The checkpoint of the same activity that is asked right before this step."""
    actions: tuple[ActionSource, ...] = ()
    """What happens when the step is done."""
    triggers: tuple[TriggerSource, ...] | TriggerSource = ()
    """Child workflows that the agent starts in this step; one object or a list."""
    sets: tuple[NonEmpty, ...] = ()
    """Variables that the step sets. One that a condition reads or another item shows is required when the
    step is done."""
    required: bool = True
    """Whether the step has to be done. One that is not may be passed over, also if it declares an output."""
    probes: Capability | None = None
    """The capability that this step tries out: the run goes on once it was observed to work."""
    notes_optional: Annotated[bool | None, KEPT] = None
    """Without notes the step is done and no gap is recorded."""
    audit: Annotated[Json, KEPT] = None
    """How the agent reads its work again when it is done; the prompt shows it, and nothing enforces it."""
    verification: Annotated[Json, KEPT] = None
    """How the agent verifies its work when it is done; the prompt shows it. The server runs `checks` only."""
    model_tier: Annotated[str | None, KEPT] = None
    """Not interpreted; the `lookup` surface passes it on as `modelHint`."""
