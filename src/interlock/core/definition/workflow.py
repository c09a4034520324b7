"""The compiled workflow: one model for step workflows and activity workflows.

A step workflow is an activity workflow with one activity. Steps, gates and loops of an activity are
one ordered list of items; `program` flattens it for running. Everything here is hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from interlock.core.definition.checks import ONLY_CLAIMED, CommandCheck
from interlock.core.definition.conditions import Condition, variables_of
from interlock.core.definition.dialects import INTERLOCK, WORKFLOW_SERVER, WORKRAIL, Dialect
from interlock.core.definition.expressions import CHECKS, root, variables_in
from interlock.core.json_schema import example_of, template_of
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json

Capability = Literal["delegation", "web_browsing"]
Need = Literal["required", "preferred", "disabled"]
Kind = Literal["workflow", "routine"]
Form = Literal["steps", "activities"]
LoopKind = Literal["while", "until", "for", "forEach", "doWhile"]
RuleKind = Literal["contains", "regex", "length", "schema"]
ActionKind = Literal["log", "validate", "set", "emit", "message"]
DocumentKind = Literal["workflow", "activity", "skill", "resource", "template"]
UserOnlyReason = Literal[
    "needs_user_secret_or_token",
    "needs_user_account_access",
    "needs_user_artifact",
    "needs_user_choice",
    "needs_user_approval",
    "needs_user_environment_action",
]
NonAssumable = Literal[
    "preference_tradeoff",
    "scope_boundary",
    "irreversible_action",
    "external_side_effect",
    "policy_or_compliance",
]

TERMINAL = "__terminal__"
END_WORDS = (TERMINAL, "end-workflow", "workflow-end")  # ends only where no activity has that id (rule 21)


class Value(Struct, frozen=True, omit_defaults=True):
    """The base of every compiled value: immutable, and silent about defaults in its JSON."""


class Fragment(Value, frozen=True):
    """A piece of a prompt, shown when its condition holds; `part` is the field of its own that it was.

    What has a `name` is named where an unset variable leaves it out (rule 20).
    """

    text: str
    when: Condition | None = None
    part: Literal["role", "guidance"] | None = None
    name: str | None = None


class Contract(Value, frozen=True):
    """A required artifact: its kind, its schema, and an example that passes.

    `fixed` are the members of the example that the step decides, and not the agent.
    """

    ref: str
    artifact: str
    schema: Mapping[str, Json] = {}
    example: Json = None
    required: bool = True
    known: bool = True
    followups: tuple[Followup, ...] = ()
    fixed: tuple[str, ...] = ()

    @property
    def shown_example(self) -> Json:
        """The author's example, else one that fits the schema, with placeholders; None if none was found.

        It shows the legal values of a choice, and not one of them: an agent would send it as it stands.
        """
        example = example_of(self.schema, self.artifact) if self.example is None else self.example
        return template_of(self.schema, example, self.fixed)


class Followup(Value, frozen=True):
    """An assessment level that is not good enough to go on, and what to do about it."""

    level: str
    guidance: str
    assessment: str | None = None


class Rule(Value, frozen=True, tag="rule"):
    """One check on the text of a step's output."""

    kind: RuleKind
    message: str
    value: str = ""
    pattern: str = ""
    flags: str = ""
    minimum: int | None = None
    maximum: int | None = None
    schema: Mapping[str, Json] = {}
    condition: Condition | None = None


class AllRules(Value, frozen=True, tag="all"):
    rules: tuple[Criteria, ...]


class AnyRule(Value, frozen=True, tag="any"):
    rules: tuple[Criteria, ...]


class NotRule(Value, frozen=True, tag="not"):
    rule: Criteria


Criteria: TypeAlias = Rule | AllRules | AnyRule | NotRule


class UserInput(Value, frozen=True):
    """Something that only the user can give (rule 28)."""

    reason: UserOnlyReason
    question: str
    key: str | None = None
    non_assumable: NonAssumable | None = None

    @property
    def is_approval(self) -> bool:
        """Say whether the user approves or rejects it."""
        return self.reason == "needs_user_approval"

    @property
    def is_secret(self) -> bool:
        """Say whether it is a secret, which is never taken: the answer says whether the agent can use it."""
        return self.reason == "needs_user_secret_or_token"

    @property
    def options(self) -> tuple[Option, ...]:
        """What the user chooses from, the one that lets the step be done first; nothing for free text."""
        if self.is_approval:
            return APPROVAL
        return PROVISION if self.is_secret else ()

    @property
    def accepted(self) -> str:
        """The option that lets the step be done; nothing for free text."""
        return self.options[0].id if self.options else ""

    @property
    def is_assumable(self) -> bool:
        """Say whether it is a choice that may be assumed outside guided mode."""
        return self.reason == "needs_user_choice" and self.non_assumable is None


class Action(Value, frozen=True):
    """What an activity file asks for at a step, at entry or at exit. Only `set` concerns the server."""

    action: ActionKind
    target: str | None = None
    message: str | None = None
    value: Json = None
    has_value: bool = False
    description: str | None = None
    condition: Condition | None = None

    @property
    def assigns(self) -> str | None:
        """The variable that the server sets; None if it sets none."""
        return self.target if self.action == "set" and self.has_value else None

    @property
    def produces(self) -> str | None:
        """The variable whose value the agent must produce; None if it must produce none."""
        return self.target if self.action == "set" and not self.has_value else None


class Trigger(Value, frozen=True):
    """A child workflow that a step or an activity starts."""

    workflow: str
    description: str | None = None
    pass_context: tuple[str, ...] = ()


class Step(Value, frozen=True, tag="step"):
    """One unit of work for the agent; `inferred` are the variables that its text was taken to set.

    `hands_in` names what its output must bring beside contracts: `notes`, `artifacts`, or a name of its own.
    """

    id: str
    title: str
    prompt: tuple[Fragment, ...] = ()
    description: str | None = None
    condition: Condition | None = None
    confirm: bool | Condition = False
    contracts: tuple[Contract, ...] = ()
    criteria: Criteria | None = None
    user_input: tuple[UserInput, ...] = ()
    hints: tuple[str, ...] = ()
    hands_in: tuple[str, ...] = ()
    checks: tuple[CommandCheck, ...] = ()
    notes_optional: bool = False
    actions: tuple[Action, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    required: bool = True
    skill: str | None = None
    skill_args: Mapping[str, Json] = {}
    probes: Capability | None = None
    provenance: str | None = None
    inferred: tuple[str, ...] = ()
    extra: Mapping[str, Json] = {}

    def input_id(self, need: UserInput) -> str:
        """The name under which the user's answer to one of its own questions is recorded."""
        alike = [it for it in self.user_input if it.key is None and it.reason == need.reason]
        number = next((number for number, it in enumerate(alike, 1) if it is need), 1)
        return need.key or f"{self.id}:{need.reason}{f'-{number}' if number > 1 else ''}"

    def sets(self, root: str) -> bool:
        """Say whether the step is declared to set a variable, or its text was taken to say so (rule 19)."""
        declared = (action.produces.partition(".")[0] for action in self.actions if action.produces)
        return root in self.inferred or root in declared

    def shown_paths(self) -> Iterator[str]:
        """Yield the paths that its texts interpolate."""
        for fragment in self.prompt:
            yield from variables_in(fragment.text)
        for need in self.user_input:
            yield from variables_in(need.question)
        yield from variables_in(f"{self.title} {self.description or ''}")

    @property
    def requires_output(self) -> bool:
        """Say whether the step cannot be done without something that the agent or the user gives."""
        is_checked = bool(self.hands_in) or self.criteria is not None or bool(self.user_input)
        return is_checked or any(contract.required for contract in self.contracts)

    @property
    def wants_notes(self) -> bool:
        """Say whether notes are asked for: the file requires nothing else, and does not waive them."""
        contracts = any(contract.required for contract in self.contracts)
        requires = contracts or self.hands_in or self.checks or self.criteria is not None
        return not (self.notes_optional or requires)

    @property
    def asks(self) -> tuple[str, ...]:
        """What a run stops for at the step, in words."""
        confirms = "the user confirms it" if self.confirm is True else "the user may have to confirm it"
        return (*(["asks the user"] if self.user_input else ()), *([confirms] if self.may_confirm else ()))

    @property
    def may_confirm(self) -> bool:
        """True if a confirmation can follow the step; its condition may say no at run time."""
        return self.confirm is not False


class Effect(Value, frozen=True):
    """What choosing an option does."""

    set_variables: Mapping[str, Json] = {}
    transition_to: str | None = None
    skip_activities: tuple[str, ...] = ()


class Option(Value, frozen=True):
    id: str
    label: str
    description: str | None = None
    effect: Effect = Effect()


class Approvers(Value, frozen=True):
    """Who decides a gate: names and groups, how many of them must agree, and what follows after a time."""

    by: tuple[str, ...]
    at_least: int = 1
    not_by_starter: bool = False
    within_ms: int | None = None
    remind_ms: int | None = None
    escalate_to: str | None = None


APPROVAL = (Option("approve", "Approve"), Option("reject", "Reject"))
PROVISION = (
    Option("provided", "Provided", "The agent can use it where it is kept; a note can say where"),
    Option("refused", "Refused", "The agent does not get it"),
)


class Gate(Value, frozen=True, tag="gate"):
    """A checkpoint: a question with options that must be answered before work goes on.

    It is asked before the step that it is bound to, unless `place` says where the compiler put it (rule 23).
    """

    id: str
    name: str
    message: str
    options: tuple[Option, ...]
    condition: Condition | None = None
    required: bool = True
    blocking: bool = True
    default_option: str | None = None
    auto_advance_ms: int | None = None
    bound_to: str | None = None
    place: str = ""
    decide: Approvers | None = None
    extra: Mapping[str, Json] = {}

    def option(self, option_id: str) -> Option | None:
        return next((option for option in self.options if option.id == option_id), None)

    def text_paths(self) -> Iterator[str]:
        """Yield the paths that the texts of its question interpolate."""
        yield from variables_in(self.name)
        yield from variables_in(self.message)
        for option in self.options:
            yield from variables_in(option.label)
            yield from variables_in(option.description or "")

    def shown_paths(self) -> Iterator[str]:
        """Yield the paths that its question interpolates: in its texts, and in what its options set."""
        yield from self.text_paths()
        for option in self.options:
            for value in option.effect.set_variables.values():
                yield from variables_in(value) if isinstance(value, str) else ()

    @property
    def only_sets(self) -> frozenset[str]:
        """The variables that its answers set, and that neither its question shows nor its condition reads."""
        seen = {root(path) for path in (*self.shown_paths(), *variables_of(self.condition))}
        return self.decides - seen

    @property
    def decides(self) -> frozenset[str]:
        """The variables that its answers set."""
        return frozenset(root(name) for option in self.options for name in option.effect.set_variables)


class Loop(Value, frozen=True, tag="loop"):
    """A bounded repetition of items. `steered` loops go by the `loop_control` decision of a step."""

    id: str
    title: str
    kind: LoopKind
    body: tuple[Item, ...]
    max_iterations: int = 100
    run_condition: Condition | None = None
    condition: Condition | None = None
    break_condition: Condition | None = None
    count: int | str | None = None
    items: str | None = None
    item_var: str | None = None
    index_var: str | None = None
    iteration_var: str | None = None
    steered: bool = False
    description: str | None = None
    activities: tuple[str, ...] = ()
    extra: Mapping[str, Json] = {}

    def variables(self) -> tuple[str, str, str]:
        """The names under which iteration, index and item are known inside the loop."""
        return (
            self.iteration_var or "currentIteration",
            self.index_var or "currentIndex",
            self.item_var or "currentItem",
        )

    def shown_paths(self) -> Iterator[str]:
        """Yield the paths that its texts interpolate, and those that it repeats over."""
        yield from variables_in(f"{self.title} {self.description or ''}")
        yield from self.repeats_over

    @property
    def repeats_over(self) -> tuple[str, ...]:
        """The paths of the list that it goes through, and of the number that it counts to."""
        return tuple(path for path in (self.items, self.count) if isinstance(path, str))


Item: TypeAlias = Step | Gate | Loop


class Transition(Value, frozen=True):
    to: str
    condition: Condition | None = None
    default: bool = False


class Branch(Value, frozen=True):
    id: str
    label: str
    condition: Condition | None = None
    to: str | None = None
    default: bool = False


class DecisionPoint(Value, frozen=True):
    """An automatic choice among branches, made from the variables."""

    id: str
    name: str
    branches: tuple[Branch, ...]
    description: str | None = None


class Artifact(Value, frozen=True):
    """A file that an activity creates or updates."""

    id: str
    name: str
    location: str | None = None
    description: str | None = None
    action: Literal["create", "update"] | None = None


class Activity(Value, frozen=True):
    """A stage of the work: its items in order, and its transitions."""

    id: str
    name: str
    items: tuple[Item, ...] = ()
    version: str = "1.0.0"
    description: str | None = None
    problem: str | None = None
    recognition: tuple[str, ...] = ()
    primary_skill: str | None = None
    supporting_skills: tuple[str, ...] = ()
    decisions: tuple[DecisionPoint, ...] = ()
    transitions: tuple[Transition, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    entry_actions: tuple[Action, ...] = ()
    exit_actions: tuple[Action, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    artifact_prefix: str | None = None
    outcome: tuple[str, ...] = ()
    context_to_preserve: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    required: bool = True
    estimated_time: str | None = None
    document: str | None = None
    extra: Mapping[str, Json] = {}

    def gates(self) -> Iterator[Gate]:
        return (item for item in walk(self.items) if isinstance(item, Gate))

    def steps(self) -> Iterator[Step]:
        return (item for item in walk(self.items) if isinstance(item, Step))

    def gate(self, gate_id: str) -> Gate | None:
        return next((gate for gate in self.gates() if gate.id == gate_id), None)

    def step(self, step_id: str) -> Step | None:
        return next((step for step in self.steps() if step.id == step_id), None)


SINGLE_VALUES = ("string", "number", "integer", "boolean")


class Variable(Value, frozen=True):
    """A declared variable; `typed` says that its file states the type, which its values then have.

    `values` are the only ones that it can have; without them it can have all of its type.
    """

    name: str
    type: str = "string"
    typed: bool = False
    description: str | None = None
    default: Json = None
    has_default: bool = False
    required: bool = False
    values: tuple[str | int | float | bool, ...] = ()


class ActivityMode(Value, frozen=True):
    """A mode of an activity file: a boolean variable, the activities it skips, and its defaults (rule 29)."""

    id: str
    name: str
    activation_variable: str
    description: str | None = None
    recognition: tuple[str, ...] = ()
    skip_activities: tuple[str, ...] = ()
    defaults: Mapping[str, Json] = {}
    resource: str | None = None


class Document(Value, frozen=True):
    """A text that belongs to the workflow, by digest: raw activity files, skills, resources, templates.

    `ref` is what people write to get it: a skill's id, or a resource's two-digit index. A borrowed skill
    names its `owner`.
    """

    kind: DocumentKind
    ref: str
    id: str
    digest: str
    title: str = ""
    version: str = ""
    format: Literal["toon", "md"] = "toon"
    owner: str = ""


class Workflow(Value, frozen=True):
    """A whole workflow, fully expanded: the thing that a run is pinned to.

    `declares_sets` says that its files are our own and declare what their steps set.
    """

    id: str
    name: str
    description: str
    version: str
    activities: tuple[Activity, ...]
    form: Form = "steps"
    kind: Kind = "workflow"
    initial: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    author: str | None = None
    rules: tuple[str, ...] = ()
    preconditions: tuple[str, ...] = ()
    clarifications: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    modes: tuple[ActivityMode, ...] = ()
    recommended: Preferences | None = None
    capabilities: Mapping[Capability, Need] = {}
    primary_skill: str | None = None
    supporting_skills: tuple[str, ...] = ()
    artifact_locations: Mapping[str, Json] = {}
    about: str | None = None
    references: tuple[Mapping[str, Json], ...] = ()
    min_server_version: str | None = None
    documents: tuple[Document, ...] = ()
    declares_sets: bool = False
    extra: Mapping[str, Json] = {}
    schema: int = field(default=1)

    @property
    def dialect(self) -> Dialect:
        """The family that its files belong to: ours, or one that was written for another server."""
        if self.declares_sets:
            return INTERLOCK
        return WORKFLOW_SERVER if self.form == "activities" else WORKRAIL

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills for the whole workflow, the primary one first."""
        return (*([self.primary_skill] if self.primary_skill else ()), *self.supporting_skills)

    def activity(self, activity_id: str | None) -> Activity | None:
        return next((activity for activity in self.activities if activity.id == activity_id), None)

    def defaults(self) -> dict[str, Json]:
        """The declared defaults, which lie beneath the variables (rule 20), and checks that have not run."""
        declared = {variable.name: variable.default for variable in self.variables if variable.has_default}
        unrun: dict[str, Json] = {check.id: ONLY_CLAIMED for check in self.checks()}
        return {**declared, CHECKS: unrun} if unrun else declared

    def checks(self) -> Iterator[CommandCheck]:
        """Yield the checks of all steps; those with one id are alike."""
        return (check for activity in self.activities for step in activity.steps() for check in step.checks)

    def inputs(self) -> tuple[Variable, ...]:
        """Return what a user may give at the start: single values without a default that no gate sets."""
        gates = (gate for activity in self.activities for gate in activity.gates())
        decided = {name for gate in gates for option in gate.options for name in option.effect.set_variables}
        return tuple(
            variable
            for variable in self.variables
            if variable.type in SINGLE_VALUES and not variable.has_default and variable.name not in decided
        )

    def has_target(self, target: str) -> bool:
        """Say whether a transition can lead there: to an activity or to the end."""
        return target in END_WORDS or self.activity(target) is not None

    def is_end(self, target: str) -> bool:
        return target in END_WORDS and self.activity(target) is None


def walk(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield items in order, the bodies of loops after their head."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from walk(item.body)


def rewritten(items: Iterable[Item], change: Callable[[Item], Iterable[Item]]) -> tuple[Item, ...]:
    """Return items with each replaced by what the change makes of it, those in a loop before the loop."""
    inner = (
        replace(item, body=rewritten(item.body, change)) if isinstance(item, Loop) else item for item in items
    )
    return tuple(new for item in inner for new in change(item))


def with_steps(items: Iterable[Item], change: Callable[[Step], Step]) -> tuple[Item, ...]:
    """Return items with each step changed, also in loops."""
    return rewritten(items, lambda item: (change(item) if isinstance(item, Step) else item,))
