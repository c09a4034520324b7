"""Prompts as an agent reads them: fragments whose condition holds, variables filled in (rule 32)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from interlock.core.definition.conditions import Scope, describe, holds, unset_in
from interlock.core.definition.expressions import CHECKS, EXPRESSION, PATH, root, variables_in
from interlock.core.definition.program import Plan
from interlock.core.definition.quoting import most_of_each, on_one_line, quoted
from interlock.core.definition.workflow import (
    TERMINAL,
    Approvers,
    Capability,
    Effect,
    Fragment,
    Gate,
    Need,
    Option,
    Step,
    UserInput,
)
from interlock.core.run.state import CapabilityStatus, Remark, RunState
from interlock.core.values import Json, Missing

_EITHER = re.compile(rf"\{{(?:\{{\s*{PATH}\s*\}}\}}|(?<![{{$]\{{){PATH}\}}(?!\}}))")
_PLAIN = re.compile(r"[^\"\\\n\r]*")  # what cannot end a quoted string
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,40}")
MOST_FILLED = 200
MOST_STORED = 200

AUTO_LINE = "Full-auto: resolve {which} from context and by stated assumptions; write both into your notes."
FOR_THE_USER = "Only the user can answer this, before the work:"
PREFERRED: Mapping[Capability, str] = {
    "delegation": "Delegate to subagents if you can. If you cannot, do the parts one after the other and "
    "report it (artifact wr.capability_observation, capability delegation, status unavailable).",
    "web_browsing": "Look things up on the web where it helps. If you cannot, work from what you have and "
    "report it (artifact wr.capability_observation, capability web_browsing, status unavailable).",
}
UNAVAILABLE: Mapping[Capability, str] = {
    "delegation": "Delegation was found to be unavailable in this run: do the parts one after the other.",
    "web_browsing": "Web browsing was found to be unavailable in this run: work from what you have, "
    "and say in your notes what you could not check.",
}
DISABLED: Mapping[Capability, str] = {
    "delegation": "Do not delegate to subagents: this workflow is to be done without it.",
    "web_browsing": "Do not browse the web: this workflow is to be done without it.",
}
CHECKED = "When this step is done, the server itself runs these checks; one that fails holds the step:"
CLAIMED = "Not run by the server, because the project defines no such check; what you report is your claim:"
OPTIONAL = "This step is optional: do it if it helps here."
UNASKED = "Only the user could answer this, and nobody is asked in this mode; state what you assume:"


def render(fragments: tuple[Fragment, ...], scope: Scope) -> str:
    """Join the fragments that apply, with the variables filled in, and name what unset ones pass over."""
    texts = (
        fragment.text if holds(fragment.when, scope) else _passed_over(fragment, scope)
        for fragment in fragments
    )
    return interpolate("\n\n".join(text for text in texts if text), scope)


def _passed_over(fragment: Fragment, scope: Scope) -> str:
    unset = unset_in(fragment.when, scope)
    if fragment.name is None or not unset:
        return ""
    missing = ", ".join(f"'{variable}'" for variable in unset)
    return f"- {fragment.name} is passed over: nobody has set {missing} ({describe(fragment.when)})."


def interpolate(text: str, scope: Scope) -> str:
    """Replace `{{a.b}}`; an unset variable is shown as unset, any other expression stays as written."""
    return _interpolated(text, scope, lambda _, value: value)


def question_text(text: str, scope: Scope) -> str:
    """Fill the variables into a text that the user reads: each value marked, on one line, and bounded.

    Results of checks have no marks: the server has written them, and no agent can.
    """
    most = most_of_each(len(variables_in(text)))

    def written(path: str, value: str) -> str:
        return on_one_line(value, most) if root(path) == CHECKS else quoted(value, most)

    return _interpolated(text, scope, written)


def _interpolated(text: str, scope: Scope, written: Callable[[str, str], str]) -> str:
    if not variables_in(text):
        return text

    def shown(match: re.Match[str]) -> str:
        value = scope.value(match[1])
        if isinstance(value, Missing):
            return f"[{'unset' if scope.lacks(match[1]) else 'not known'}: {match[1]}]"
        return written(match[1], text_of(value))

    return EXPRESSION.sub(shown, text)


def filled(text: str, scope: Scope) -> str:
    """Fill the variables that have a short value into the text of a file; the rest stays as written."""

    def shown(match: re.Match[str]) -> str:
        line = _short_value(match[1] or match[2], scope)
        return match[0] if line is None else line

    return _EITHER.sub(shown, text)


def filling(text: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield the variables that are filled into the text of a file, each once, with their values."""
    for path in dict.fromkeys(match[1] or match[2] for match in _EITHER.finditer(text)):
        if (line := _short_value(path, scope)) is not None:
            yield path, line


def _short_value(path: str, scope: Scope) -> str | None:
    """Return a variable as one line that can stand within quotes; None if it is unset or another thing."""
    value = scope.value(path)
    if not isinstance(value, (str, int, float)):
        return None
    line = text_of(value)
    return line if len(line) <= MOST_FILLED and _PLAIN.fullmatch(line) else None


def filled_value(value: Json, scope: Scope) -> Json:
    """Fill the variables into every text of a value."""
    if isinstance(value, str):
        return filled(value, scope)
    if isinstance(value, (list, tuple)):
        return [filled_value(member, scope) for member in value]
    if isinstance(value, Mapping):
        return {name: filled_value(member, scope) for name, member in value.items()}
    return value


def text_of(value: Json) -> str:
    """A value as text: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def step_prompt(plan: Plan, state: RunState, step: Step) -> str:
    """Return the instruction of a step, with what the user said about the round before."""
    scope = plan.scope(state.variables)
    parts = [render(step.prompt, scope) or interpolate(step.description or step.title, scope)]
    parts += checks_text(step)
    parts += _capability_lines(plan.workflow.capabilities, state.capabilities)
    asked = [need for need in step.user_input if is_asked(state, need)]
    assumed = [need for need in step.user_input if need not in asked]
    for heading, needs in ((FOR_THE_USER, asked), (UNASKED, assumed)):
        if needs:
            parts.append("\n".join([heading, *(f"- {user_question(need, scope)}" for need in needs)]))
    if not step.required:
        parts.append(OPTIONAL)
    if not state.preferences.guided:
        parts.append(AUTO_LINE.format(which="all other questions" if asked else "questions"))
    if state.replies.remark is not None:
        parts.append(remark_text(state.replies.remark))
    return "\n\n".join(parts)


def is_asked(state: RunState, need: UserInput) -> bool:
    """Say whether the mode asks the user for what only the user can give; else it is assumed (rule 28)."""
    return state.preferences.guided or not (state.preferences.never_stops or need.is_assumable)


def checks_text(step: Step) -> list[str]:
    """Say which commands the server runs when the step is done, and what it has only the agent's word for."""
    run = [f"- {check.id}: `{check.run}`" for check in step.checks if check.run]
    claimed = ", ".join(check.id for check in step.checks if not check.run)
    lines = ["\n".join((CHECKED, *run))] if run else []
    return [*lines, f"{CLAIMED} {claimed}."] if claimed else lines


def _capability_lines(
    declared: Mapping[Capability, Need], observed: Mapping[Capability, CapabilityStatus]
) -> Iterator[str]:
    """Yield how to use what the workflow prefers, disables, or was found to lack."""
    for capability, need in declared.items():
        if need == "disabled":
            yield DISABLED[capability]
        elif observed.get(capability) == "unavailable":
            yield UNAVAILABLE[capability]
        elif need == "preferred":
            yield PREFERRED[capability]


def effect_text(effect: Effect) -> str:
    """What choosing an option does, in a few words; empty if it does nothing."""
    done = [f"{name} = {stored(value)}" for name, value in effect.set_variables.items()]
    if effect.transition_to == TERMINAL:
        done.append("ends the workflow")
    elif effect.transition_to is not None:
        done.append(f"goes to {effect.transition_to}")
    if effect.skip_activities:
        done.append(f"skips {', '.join(effect.skip_activities)}")
    return "; ".join(done)


def stored(value: Json) -> str:
    """Return what an effect stores, for the user; a single word cannot pass for another effect."""
    text = text_of(value)
    return text if _WORD.fullmatch(text) else quoted(text, MOST_STORED)


def rendered_option(option: Option, scope: Scope) -> Option:
    """Return an option as the user reads it, with the real values in its effect.

    An effect that needs an unset variable stores nothing.
    """
    effect = replace(
        option.effect,
        set_variables={
            name: interpolate(value, scope) if isinstance(value, str) else value
            for name, value in option.effect.set_variables.items()
            if not unset_in_effect(value, scope)
        },
    )
    description = question_text(option.description, scope) if option.description else None
    return replace(option, label=question_text(option.label, scope), description=description, effect=effect)


def unset_in_effect(value: Json, scope: Scope) -> tuple[str, ...]:
    """Name the variables that the value of an effect needs and nobody has set; it then stores nothing."""
    paths = variables_in(value) if isinstance(value, str) else ()
    return tuple(path for path in paths if isinstance(scope.value(path), Missing))


def remark_text(remark: Remark) -> str:
    """Return what the user said with the last decision, for the work that follows from it."""
    option = f" ({remark.option})" if remark.option else ""
    return f"The user's note at '{remark.gate}'{option}: {remark.note}"


def user_question(need: UserInput, scope: Scope) -> str:
    """What only the user can give to a step, in one line."""
    choice = f" ({' or '.join(option.id for option in need.options)})" if need.options else ""
    return f"{interpolate(need.question, scope)}{choice}"


def approvers_text(rule: Approvers, default: str | None) -> str:
    """Say who decides a gate, and by when (rule 27a)."""
    many = f"{rule.at_least} of " if rule.at_least > 1 else ""
    starter = ", not by whoever started the run" if rule.not_by_starter else ""
    text = f"Decided by {many}{', '.join(rule.by)}{starter}. Nobody else's answer counts."
    if rule.within_ms is None:
        return text
    then = f"; then by {rule.escalate_to} too" if rule.escalate_to else f"; then `{default}` is taken"
    return f"{text} Within {duration(rule.within_ms)}{then if rule.escalate_to or default else ''}."


def duration(milliseconds: int) -> str:
    """Write a time as files do: a number and a unit."""
    units = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000))
    whole = (f"{milliseconds // size}{unit}" for unit, size in units if milliseconds % size == 0)
    return next(whole, f"{milliseconds / 1000:g}s")


def gate_prompt(gate: Gate, scope: Scope) -> str:
    """A gate's question with its options and what each does, for an agent that must ask the user."""
    lines = [question_text(gate.message, scope), ""]
    for option in (rendered_option(option, scope) for option in gate.options):
        about = f": {option.description}" if option.description else ""
        effect = f" (effect: {effect})" if (effect := effect_text(option.effect)) else ""
        lines.append(f"- `{option.id}` {option.label}{about}{effect}")
    if gate.decide is not None:
        return "\n".join([*lines, "", approvers_text(gate.decide, gate.default_option)])
    if not gate.blocking and gate.default_option is not None:
        seconds = (gate.auto_advance_ms or 0) / 1000
        lines += ["", f"Without an answer within {seconds:g} s, `{gate.default_option}` is taken."]
    return "\n".join(lines)
