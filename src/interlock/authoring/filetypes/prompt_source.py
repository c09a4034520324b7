"""The source types of prompts: functions, blocks, fragments and template calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from interlock.authoring.filetypes.field_types import Camel, NonEmpty, RawBlock, RawCondition
from interlock.core.values import Json


class FunctionSource(Camel, frozen=True):
    """A procedure in words that several prompts share."""

    name: NonEmpty
    """The name by which steps call or reference the function."""
    definition: NonEmpty
    """What the function does, in words; the prompt of each step that names it shows this."""
    parameters: Json = None
    """Parameters to print after the name: a list of names, or of objects with `name`."""
    scope: Literal["workflow", "loop", "step"] | None = None
    """Documentation only; a function is known where it is defined and below."""


class CallSource(Camel, frozen=True):
    """A call of a function."""

    name: NonEmpty
    """A function that the workflow, an enclosing loop or the step defines."""
    args: Mapping[str, Json] = {}
    """Documentation only; the arguments are neither checked nor shown."""


class PromptBlocks(Camel, frozen=True):
    """The sections of a prompt; each is a prompt text, or an object whose entries become lines."""

    goal: RawBlock = None
    """What the step is to achieve."""
    constraints: RawBlock = None
    """What the agent must respect."""
    procedure: RawBlock = None
    """How to go about it."""
    output_required: RawBlock = None
    """What to hand in; each key of an object is required."""
    verify: RawBlock = None
    """What to check before handing in."""


class FragmentSource(Camel, frozen=True):
    """A text that is part of a prompt only while its condition holds."""

    text: NonEmpty
    """The text of the fragment."""
    id: str = ""
    """Documentation only: a name for the fragment."""
    when: RawCondition = None
    """The fragment is part of the prompt only while this condition holds."""


class TemplateCall(Camel, frozen=True):
    """A call of a template, which is expanded in place when the workflow is compiled."""

    template_id: NonEmpty
    """The name of a built-in template."""
    args: Mapping[str, str | int | float | bool] = {}
    """Values for the `{name}` placeholders of the template; those without a default are required."""
