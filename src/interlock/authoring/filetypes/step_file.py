"""The source types of step workflows, and of the steps, gates and loops that activity files share.

One type serves JSON, YAML and TOON; conditions stay raw here because two dialects write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from interlock.core.definition.workflow import ActionKind, Capability, Need, NonAssumable, UserOnlyReason
from interlock.core.run.preferences import Autonomy, RiskPolicy
from interlock.core.values import Json

# Lengths are advice: a text over them is a warning, so they are schema notes and not constraints.
Word = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": 128})]
Line = Annotated[str, Meta(extra_json_schema={"maxLength": 512})]
Role = Annotated[str, Meta(extra_json_schema={"maxLength": 1024})]
About = Annotated[str, Meta(extra_json_schema={"maxLength": 4096})]
Iterations = Annotated[int, Meta(ge=1, le=1000)]


class Camel(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of source types: files write camelCase."""


class FunctionSource(Camel, frozen=True):
    name: Word
    definition: Word
    parameters: Json = None
    scope: Literal["workflow", "loop", "step"] | None = None


class CallSource(Camel, frozen=True):
    name: Word
    args: Mapping[str, Json] = {}


class PromptBlocks(Camel, frozen=True):
    """Sections of a prompt; each is text, a list of texts, or parts."""

    goal: Json = None
    constraints: Json = None
    procedure: Json = None
    output_required: Json = None
    verify: Json = None


class FragmentSource(Camel, frozen=True):
    text: Word
    id: str = ""
    when: Json = None


class TemplateCall(Camel, frozen=True):
    template_id: Word
    args: Mapping[str, str | int | float | bool] = {}


class OutputContract(Camel, frozen=True):
    contract_ref: Word
    required: bool = True


class OutputSource(Camel, frozen=True):
    """What a step must hand over: a known contract, or a schema of its own with an example."""

    contract_ref: str | None = None
    kind: str | None = None
    schema: Mapping[str, Json] | None = None
    example: Json = None
    hints: tuple[str, ...] | str = ()
    required: bool = True


class Consequence(Camel, frozen=True):
    class When(Camel, frozen=True):
        any_equals_level: Word
        for_assessment: str | None = None

    class Then(Camel, frozen=True):
        guidance: Word
        kind: Literal["require_followup"] = "require_followup"

    when: When
    effect: Then


class Dimension(Camel, frozen=True):
    id: Word
    levels: Annotated[tuple[Word, ...], Meta(min_length=1)]
    purpose: str = ""


class AssessmentSource(Camel, frozen=True):
    id: Word
    dimensions: Annotated[tuple[Dimension, ...], Meta(min_length=1)]
    purpose: str = ""


class UserInputSource(Camel, frozen=True):
    reason: UserOnlyReason
    question: Word
    key: str | None = None
    non_assumable: NonAssumable | None = None


class ActionSource(Camel, frozen=True):
    action: ActionKind
    target: str | None = None
    message: str | None = None
    value: Json | UnsetType = UNSET
    description: str | None = None
    condition: Json = None


class TriggerSource(Camel, frozen=True):
    workflow: Word
    description: str | None = None
    pass_context: tuple[str, ...] = ()


class Delegation(Camel, frozen=True):
    workflow_id: Word
    args: Mapping[str, Json] = {}
    model_tier: str | None = None


class StepSource(Camel, frozen=True):
    id: Word
    type: Literal["step", "parallel"] = "step"
    title: Name | None = None
    name: Name | None = None
    description: str | None = None
    prompt: Json = None
    prompt_blocks: PromptBlocks | None = None
    template_call: TemplateCall | None = None
    prompt_fragments: tuple[FragmentSource, ...] = ()
    agent_role: Role | None = None
    guidance: tuple[Word, ...] = ()
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
    function_definitions: tuple[FunctionSource, ...] = ()
    function_calls: tuple[CallSource, ...] = ()
    function_references: tuple[str, ...] = ()
    parallel_delegations: tuple[Delegation, ...] = ()
    synthesis: Json = None
    skill: str | None = None
    skill_args: Mapping[str, Json] = {}
    checkpoint: str | None = None
    actions: tuple[ActionSource, ...] = ()
    triggers: tuple[TriggerSource, ...] = ()
    required: bool = True
    probes: Capability | None = None
    notes_optional: bool | None = None
    audit: Json = None
    verification: Json = None
    model_tier: str | None = None


class EffectSource(Camel, frozen=True):
    set_variable: Mapping[str, Json] = {}
    transition_to: str | None = None
    skip_activities: tuple[str, ...] = ()


class OptionSource(Camel, frozen=True):
    id: Word
    label: str | None = None
    description: str | None = None
    effect: EffectSource = EffectSource()


class GateSource(Camel, frozen=True):
    id: Word
    message: Word
    options: Annotated[tuple[OptionSource, ...], Meta(min_length=1)]
    type: Literal["gate", "checkpoint"] = "gate"
    name: str | None = None
    condition: Json = None
    prerequisite: str | None = None
    required: bool = True
    blocking: bool | None = None
    default_option: str | None = None
    auto_advance_ms: Annotated[int, Meta(ge=1)] | None = None


class ConditionSource(Camel, frozen=True):
    kind: Literal["artifact_contract", "context_variable"]
    contract_ref: str | None = None
    loop_id: str | None = None
    condition: Json = None


class LoopConfig(Camel, frozen=True):
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
    id: Word
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
    recommended_autonomy: Autonomy = "guided"
    recommended_risk_policy: RiskPolicy = "conservative"


class ReferenceSource(Camel, frozen=True):
    id: Word
    title: str = ""
    source: str = ""
    purpose: str = ""
    authoritative: bool = False
    resolve_from: str | None = None


class VariableSource(Camel, frozen=True):
    name: Word
    type: Literal["string", "number", "boolean", "array", "object"] = "string"
    description: str | None = None
    default_value: Json | UnsetType = UNSET
    required: bool = False


class StepWorkflowSource(Camel, frozen=True):
    id: Word
    name: Name
    version: Word
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
    features: tuple[str, ...] = ()
    assessments: tuple[AssessmentSource, ...] = ()
    references: tuple[ReferenceSource, ...] = ()
    variables: tuple[VariableSource, ...] = ()
    extension_points: Json = None
    model_tier: str | None = None
    metrics_profile: str | None = None
    min_server_version: str | None = None
    validated_against_spec_version: Json = None
