"""The source types of step workflows, and of the steps, gates and loops that activity files share.

One type serves JSON, YAML and TOON; conditions stay raw because there are two dialects of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from interlock.core.definition.checks import CHECK_SECONDS
from interlock.core.definition.workflow import (
    ActionKind,
    Capability,
    Need,
    NonAssumable,
    RuleKind,
    UserOnlyReason,
)
from interlock.core.run.preferences import Autonomy, RiskPolicy
from interlock.core.values import Json

# A text that is too long is only a warning, so the lengths are notes in the schema and not constraints.
NonEmpty = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": 128})]
Line = Annotated[str, Meta(extra_json_schema={"maxLength": 512})]
Role = Annotated[str, Meta(extra_json_schema={"maxLength": 1024})]
About = Annotated[str, Meta(extra_json_schema={"maxLength": 4096})]
Duration = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,4}(s|m|h|d)$")]
Iterations = Annotated[int, Meta(ge=1, le=1000)]


class Camel(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of the source types: fields are camelCase in files."""


class FunctionSource(Camel, frozen=True):
    """A procedure in words that several prompts share."""

    name: NonEmpty
    definition: NonEmpty
    parameters: Json = None
    scope: Literal["workflow", "loop", "step"] | None = None


class CallSource(Camel, frozen=True):
    """A call of a function."""

    name: NonEmpty
    args: Mapping[str, Json] = {}


class PromptBlocks(Camel, frozen=True):
    """The sections of a prompt; each is a prompt text, or an object whose entries become lines."""

    goal: Json = None
    constraints: Json = None
    procedure: Json = None
    output_required: Json = None
    verify: Json = None


class FragmentSource(Camel, frozen=True):
    """A text that is part of a prompt only while its condition holds."""

    text: NonEmpty
    id: str = ""
    when: Json = None


class TemplateCall(Camel, frozen=True):
    """A call of a template, which is expanded in place when the workflow is compiled."""

    template_id: NonEmpty
    args: Mapping[str, str | int | float | bool] = {}


class OutputContract(Camel, frozen=True):
    """The older form of an output: a contract by name."""

    contract_ref: NonEmpty
    required: bool = True


class OutputSource(Camel, frozen=True):
    """What a step must hand in: a known contract, or a schema of its own with an example."""

    contract_ref: str | None = None
    kind: str | None = None
    schema: Mapping[str, Json] | None = None
    example: Json = None
    hints: tuple[str, ...] | str = ()
    required: bool = True


class RuleSource(Camel, frozen=True):
    """One check on what a step hands in."""

    type: RuleKind
    message: str = ""
    value: str = ""
    pattern: str = ""
    flags: str = ""
    min: int | None = None
    max: int | None = None
    schema: Mapping[str, Json] = {}
    condition: Json = None


class Consequence(Camel, frozen=True):
    """What follows from a level of an assessment."""

    class When(Camel, frozen=True):
        """The level that has a consequence."""

        any_equals_level: NonEmpty
        for_assessment: str | None = None

    class Then(Camel, frozen=True):
        """What a level demands before the step can pass."""

        guidance: NonEmpty
        kind: Literal["require_followup"] = "require_followup"

    when: When
    effect: Then


class Dimension(Camel, frozen=True):
    """One thing that an assessment rates."""

    id: NonEmpty
    levels: Annotated[tuple[NonEmpty, ...], Meta(min_length=1)]
    purpose: str = ""
    required: bool = True


class AssessmentSource(Camel, frozen=True):
    """A rating that steps report as an artifact."""

    id: NonEmpty
    dimensions: Annotated[tuple[Dimension, ...], Meta(min_length=1)]
    purpose: str = ""


class UserInputSource(Camel, frozen=True):
    """Something that only the user can give."""

    reason: UserOnlyReason
    question: NonEmpty
    key: str | None = None
    non_assumable: NonAssumable | None = None


class ExpectationSource(Camel, frozen=True):
    """What a check must bring."""

    exit: Annotated[int, Meta(ge=0, le=255)] = 0
    stdout: str = ""
    files: tuple[NonEmpty, ...] = ()


class CheckSource(Camel, frozen=True):
    """A command that the server runs before the step is done."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    run: NonEmpty
    folder: NonEmpty = field(default=".", name="in")
    timeout: Annotated[int, Meta(ge=1, le=3600)] = CHECK_SECONDS
    expect: ExpectationSource = ExpectationSource()
    when: Json = None


class ActionSource(Camel, frozen=True):
    """What happens when a step is done, or when an activity is entered or left."""

    action: ActionKind
    target: str | None = None
    message: str | None = None
    value: Json | UnsetType = UNSET
    description: str | None = None
    condition: Json = None


class TriggerSource(Camel, frozen=True):
    """A child workflow."""

    workflow: NonEmpty
    description: str | None = None
    pass_context: tuple[str, ...] = ()


class Delegation(Camel, frozen=True):
    """One part of a parallel step."""

    workflow_id: NonEmpty
    args: Mapping[str, Json] = {}
    goal: str | None = None
    context_mapping: Mapping[str, Json] = {}
    allowed_tools: tuple[str, ...] = ()
    run_condition: Json = None
    model_tier: str | None = None


class StepSource(Camel, frozen=True):
    """One piece of work for the agent."""

    id: NonEmpty
    type: Literal["step", "parallel"] = "step"
    title: Name | None = None
    name: Name | None = None
    description: str | None = None
    prompt: Json = None
    prompt_blocks: PromptBlocks | None = None
    template_call: TemplateCall | None = None
    prompt_fragments: tuple[FragmentSource, ...] = ()
    agent_role: Role | None = None
    guidance: tuple[NonEmpty, ...] = ()
    ask_for_files: bool = False
    require_confirmation: Json = False
    run_condition: Json = None
    condition: Json = None
    validation_criteria: Json = None
    has_validation: bool | None = None
    output_contract: OutputContract | None = None
    output: OutputSource | None = None
    assessment_refs: tuple[str, ...] = ()
    assessment_consequences: tuple[Consequence, ...] = ()
    user_input: tuple[UserInputSource, ...] = ()
    checks: tuple[NonEmpty | CheckSource, ...] = ()
    function_definitions: tuple[FunctionSource, ...] = ()
    function_calls: tuple[CallSource, ...] = ()
    function_references: tuple[str, ...] = ()
    parallel_delegations: tuple[Delegation, ...] = ()
    synthesis: Json = None
    skill: str | None = None
    skill_args: Mapping[str, Json] = {}
    skill_args_as_documented: Mapping[str, Json] = field(default_factory=dict, name="skill_args")
    checkpoint: str | None = None
    actions: tuple[ActionSource, ...] = ()
    triggers: tuple[TriggerSource, ...] | TriggerSource = ()
    sets: tuple[NonEmpty, ...] = ()
    required: bool = True
    probes: Capability | None = None
    notes_optional: bool | None = None
    audit: Json = None
    verification: Json = None
    model_tier: str | None = None


class EffectSource(Camel, frozen=True):
    """What choosing an option does."""

    set_variable: Mapping[str, Json] = {}
    transition_to: str | None = None
    skip_activities: tuple[str, ...] = ()


class OptionSource(Camel, frozen=True):
    """An answer to a gate."""

    id: NonEmpty
    label: str | None = None
    description: str | None = None
    effect: EffectSource = EffectSource()


class ThenSource(Camel, frozen=True):
    """What follows where the approvers of a gate do not decide in time: one of the two."""

    escalate: NonEmpty | None = None
    option: NonEmpty | None = None


def milliseconds(duration: str) -> int:
    """Return a duration as the core counts it."""
    units = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(duration[:-1]) * units[duration[-1]]


class DecideSource(Camel, frozen=True):
    """Who decides a gate, and by when."""

    by: Annotated[tuple[NonEmpty, ...], Meta(min_length=1)]
    at_least: Annotated[int, Meta(ge=1)] = 1
    not_by: Literal["starter"] | None = None
    within: Duration | None = None
    remind: Duration | None = None
    then: ThenSource | None = None


class GateSource(Camel, frozen=True):
    """A question that holds the run until it is answered."""

    id: NonEmpty
    message: NonEmpty
    options: Annotated[tuple[OptionSource, ...], Meta(min_length=1)]
    type: Literal["gate", "checkpoint"] = "gate"
    name: str | None = None
    condition: Json = None
    prerequisite: str | None = None
    required: bool = True
    blocking: bool | None = None
    default_option: str | None = None
    auto_advance_ms: Annotated[int, Meta(ge=1)] | None = None
    checks: tuple[NonEmpty | CheckSource, ...] = ()
    decide: DecideSource | None = None


class ConditionSource(Camel, frozen=True):
    """Where the decision to repeat a loop comes from."""

    kind: Literal["artifact_contract", "context_variable"]
    contract_ref: str | None = None
    loop_id: str | None = None
    condition: Json = None


class LoopConfig(Camel, frozen=True):
    """The kind of a loop and what steers it."""

    type: Literal["while", "until", "for", "forEach", "doWhile"]
    max_iterations: Iterations | None = None
    condition: Json = None
    condition_source: ConditionSource | None = None
    break_condition: Json = None
    count: int | str | None = None
    items: str | None = None
    iteration_var: str | None = None
    item_var: str | None = None
    index_var: str | None = None


class LoopSource(Camel, frozen=True):
    """A bounded repetition of steps, gates and loops."""

    id: NonEmpty
    loop: LoopConfig
    body: Json
    type: Literal["loop"] = "loop"
    title: Name | None = None
    name: Name | None = None
    description: str | None = None
    run_condition: Json = None
    require_confirmation: Json = False
    function_definitions: tuple[FunctionSource, ...] = ()


class Recommended(Camel, frozen=True):
    """How far the author would let a run go by itself."""

    recommended_autonomy: Autonomy = "guided"
    recommended_risk_policy: RiskPolicy = "conservative"


class ReferenceSource(Camel, frozen=True):
    """A document that the workflow relies on."""

    id: NonEmpty
    title: str = ""
    source: str = ""
    purpose: str = ""
    authoritative: bool = False
    resolve_from: str | None = None


class VariableSource(Camel, frozen=True):
    """A variable that conditions and prompts read."""

    name: NonEmpty
    type: Literal["string", "number", "boolean", "array", "object"] | UnsetType = UNSET
    description: str | None = None
    default_value: Json | UnsetType = UNSET
    required: bool = False


class FeatureUse(Camel, frozen=True):
    """A built-in feature with settings of its own."""

    id: NonEmpty
    config: Mapping[str, Json] = {}


class StepWorkflowSource(Camel, frozen=True):
    """A step workflow: one ordered list of steps, gates and loops."""

    id: NonEmpty
    name: Name
    version: NonEmpty
    steps: Annotated[tuple[Json, ...], Meta(min_length=1)]
    description: Line = ""
    kind: Literal["workflow", "routine"] | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    author: str | None = None
    about: About | None = None
    examples: tuple[str, ...] = ()
    agent_role: Role | None = None
    preconditions: tuple[str, ...] = ()
    clarification_prompts: tuple[str, ...] = ()
    meta_guidance: tuple[str, ...] = ()
    function_definitions: tuple[FunctionSource, ...] = ()
    recommended_preferences: Recommended | None = None
    capabilities: Mapping[Capability, Need] = {}
    features: tuple[NonEmpty | FeatureUse, ...] = ()
    assessments: tuple[AssessmentSource, ...] = ()
    references: tuple[ReferenceSource, ...] = ()
    variables: tuple[VariableSource, ...] = ()
    extension_points: Json = None
    model_tier: str | None = None
    metrics_profile: str | None = None
    min_server_version: str | None = None
    validated_against_spec_version: Json = None
