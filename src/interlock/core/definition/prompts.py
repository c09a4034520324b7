"""Prompts as an agent reads them: fragments whose condition holds, variables filled in (rule 32)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.workflow import Capability, Fragment, Gate, Need, Step
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json, Missing

_EXPRESSION = re.compile(r"\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")

AUTO_LINE = "Full-auto: resolve questions from context and by stated assumptions; write both into your notes."
SEQUENTIAL = (
    "Delegate to subagents if you can. If you cannot, do the parts one after the other and report it "
    "(artifact wr.capability_observation, capability delegation, status unavailable)."
)


def render(fragments: tuple[Fragment, ...], scope: Scope) -> str:
    """Join the fragments that apply, with the variables filled in."""
    return interpolate(
        "\n\n".join(fragment.text for fragment in fragments if holds(fragment.when, scope)), scope
    )


def interpolate(text: str, scope: Scope) -> str:
    """Replace `{{a.b}}`; an unset variable is shown as unset, any other expression stays as written."""

    def shown(match: re.Match[str]) -> str:
        value = scope.value(match[1])
        return f"[unset: {match[1]}]" if isinstance(value, Missing) else text_of(value)

    return _EXPRESSION.sub(shown, text)


def text_of(value: Json) -> str:
    """A value as text: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def step_prompt(
    step: Step, scope: Scope, preferences: Preferences, capabilities: Mapping[Capability, Need]
) -> str:
    """The whole instruction of a step."""
    parts = [render(step.prompt, scope) or interpolate(step.description or step.title, scope)]
    if capabilities.get("delegation") == "preferred":
        parts.append(SEQUENTIAL)
    if not preferences.guided:
        parts.append(AUTO_LINE)
    return "\n\n".join(parts)


def gate_prompt(gate: Gate, scope: Scope) -> str:
    """A gate's question with its options, for an agent that must ask the user."""
    lines = [interpolate(gate.message, scope), ""]
    for option in gate.options:
        about = f": {option.description}" if option.description else ""
        lines.append(f"- `{option.id}` {option.label}{about}")
    return "\n".join(lines)
