"""The source types of what a step hands in: contracts, rules for its notes, and assessments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from interlock.authoring.filetypes.field_types import Camel, NonEmpty, RawCondition
from interlock.core.definition.workflow import RuleKind
from interlock.core.values import Json


class OutputContract(Camel, frozen=True):
    """The older form of an output: a contract by name."""

    contract_ref: NonEmpty
    """The same as `output.contractRef`."""
    required: bool = True
    """The same as `output.required`."""


class OutputSource(Camel, frozen=True):
    """What a step must hand in: a known contract, or a schema of its own with an example."""

    contract_ref: str | None = None
    """A built-in contract by name; of an unknown one only the artifact's `kind` is checked."""
    kind: str | None = None
    """The artifact's `kind`. If absent: the schema's constant for `kind`, else the example's, else the step's
    id."""
    schema: Mapping[str, Json] | None = None
    """A JSON Schema that the artifact must match."""
    example: Json = None
    """An artifact that passes; the prompt and every refusal show it, with `kind` added."""
    hints: tuple[str, ...] | str = ()
    """Advice on the output that the prompt shows; never enforced."""
    required: bool = True
    """Whether the step needs the artifact; an optional one is checked only when it is sent."""


class RuleSource(Camel, frozen=True):
    """One check on what a step hands in."""

    type: RuleKind
    """What the rule checks: `contains` uses `value`, `regex` uses `pattern` and `flags`, `length` uses `min`
    and `max`, `schema` uses `schema`."""
    message: str = ""
    """What the output must satisfy, in words; shown in the prompt and when the rule fails."""
    value: str = ""
    """`contains`: the text that must occur; case counts."""
    pattern: str = ""
    """`regex`: the pattern that must be found, in RE2 syntax; look-around runs under a time limit."""
    flags: str = ""
    """`regex`: any of the letters `i` (ignore case), `m` (`^` and `$` match at lines) and `s` (a dot matches
    a newline)."""
    min: int | None = None
    """`length`: the least number of characters."""
    max: int | None = None
    """`length`: the greatest number of characters."""
    schema: Mapping[str, Json] = {}
    """`schema`: a JSON Schema; the output is parsed as JSON and must match it."""
    condition: RawCondition = None
    """The rule counts only while this condition holds."""


class Consequence(Camel, frozen=True):
    """What follows from a level of an assessment."""

    class When(Camel, frozen=True):
        """The level that has a consequence."""

        any_equals_level: NonEmpty
        """The consequence follows if any dimension has this level."""
        for_assessment: str | None = None
        """The assessment that is looked at; all assessments of the step if absent."""

    class Then(Camel, frozen=True):
        """What a level demands before the step can pass."""

        guidance: NonEmpty
        """What the agent has to do first; the step is refused with this text."""
        kind: Literal["require_followup"] = "require_followup"
        """The only kind: the step stays pending until an assessment without that level is sent."""

    when: When
    """The level that has a consequence."""
    effect: Then
    """The consequence."""


class Dimension(Camel, frozen=True):
    """One thing that an assessment rates."""

    id: NonEmpty
    """The key of the dimension in the artifact."""
    levels: Annotated[tuple[NonEmpty, ...], Meta(min_length=1)]
    """The levels that the agent chooses from."""
    purpose: str = ""
    """What the dimension measures; part of the artifact's schema."""
    required: bool = True
    """`false`: the assessment may leave it out."""


class AssessmentSource(Camel, frozen=True):
    """A rating that steps report as an artifact."""

    id: NonEmpty
    """The name that `assessmentRefs` of steps use."""
    dimensions: Annotated[tuple[Dimension, ...], Meta(min_length=1)]
    """What is rated, each with its levels."""
    purpose: str = ""
    """Documentation only: what the assessment is for."""
