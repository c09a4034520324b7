"""Writes the prompt of a step: role, blocks and guidance. `{{var}}` stays for run time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.prompt_source import FunctionSource
from interlock.authoring.filetypes.step_source import Delegation, StepSource
from interlock.authoring.filetypes.type_check import type_name
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Fragment
from interlock.core.values import Json

ROLE = "Role: "
BLOCKS = (
    ("goal", "Goal"),
    ("constraints", "Constraints"),
    ("procedure", "Procedure"),
    ("output_required", "Output required"),
    ("verify", "Verify"),
)

SYNTHESIS = "Then bring their results together"

OUTPUT_FIELDS = {"notes": "notesMarkdown"}  # what files call it, and the field that agents send


def join(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def bullets(heading: str, lines: Iterable[str]) -> str:
    body = "\n".join(f"- {line}" for line in lines)
    return f"{heading}:\n{body}" if body else ""


def own_text(
    step: StepSource, features: Sequence[packs.FeaturePack], at: SourceLocation, report: Report
) -> str:
    """Return the step's own text, from its prompt and its blocks."""
    sections = [_flat_text(step.prompt, at / "prompt", report)]
    for name, heading in BLOCKS if step.prompt_blocks is not None else ():
        key = "outputRequired" if name == "output_required" else name
        lines = _block_lines(getattr(step.prompt_blocks, name), at / "promptBlocks" / key, report)
        for feature in features:
            lines.extend(getattr(feature, name, ()))
        if name != "goal" and len(lines) > 1:
            lines = [line if _has_bullet(line) else f"- {line}" for line in lines]
        if lines:
            sections.append(f"## {heading}\n" + "\n".join(lines))
    return join(sections)


def _has_bullet(line: str) -> bool:
    first_word = line.lstrip().split(" ", 1)[0]
    return first_word in ("-", "*", "•") or first_word.rstrip(".)").isdigit()


def _block_lines(raw: Json, at: SourceLocation, report: Report) -> list[str]:
    """Read a block: text, a list of texts or parts, or an object of named outputs."""
    match raw:
        case None:
            return []
        case str():
            return [raw]
        case Mapping():
            if raw.get("kind") in ("text", "ref"):
                return [_part_text(raw, at, report)]
            return [f"{OUTPUT_FIELDS.get(name, name)}: {_as_text(value)}" for name, value in raw.items()]
        case list():
            texts = [_flat_text(part, at / index, report) for index, part in enumerate(raw)]
            kinds = [part.get("kind") if isinstance(part, Mapping) else None for part in raw]
            is_one_text = "text" in kinds and None not in kinds  # else each entry is one of its own
            return ["".join(texts)] if is_one_text else texts
        case _:
            report.add("IL102", f"expected text or a list, got {type_name(raw)}", at)
            return []


def _flat_text(raw: Json, at: SourceLocation, report: Report) -> str:
    match raw:
        case None:
            return ""
        case str():
            return raw
        case Mapping():
            return _part_text(raw, at, report)
        case list():
            return "".join(_flat_text(part, at / index, report) for index, part in enumerate(raw))
        case _:
            report.add("IL102", f"expected text, got {type_name(raw)}", at)
            return ""


def _part_text(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> str:
    if not raw.keys() & {"kind", "text", "refId"}:  # a line of YAML with a colon that is not in quotes
        for name in raw:
            report.add("IL105", f"unknown field '{name[:40]}'", at.key(name), "put the line in quotes")
        return "\n".join(f"{name}: {_as_text(value)}" for name, value in raw.items())
    if raw.get("kind") != "ref":
        return str(raw.get("text", ""))
    ref = str(raw.get("refId", ""))
    pack = packs.references().get(ref)
    if pack is None:
        report.add("IL213", f"unknown reference '{ref}'", at / "refId", did_you_mean(ref, packs.references()))
        return ref
    return pack.text


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def functions(
    step: StepSource, shared: Sequence[FunctionSource], guidance: str, at: SourceLocation, report: Report
) -> str:
    """List the functions that the step names or defines, with their parameters and definitions.

    `shared` are those that the workflow and the loops around the step define; `guidance` may explain others.
    """
    known = {function.name: function for function in (*shared, *step.function_definitions)}
    references, calls = at / "functionReferences", at / "functionCalls"
    named = [
        (reference.split("(")[0].strip(), references / index)
        for index, reference in enumerate(step.function_references)
    ]
    named += [(call.name, calls / index / "name") for index, call in enumerate(step.function_calls)]
    for name, location in named:
        if name not in known and name not in guidance:
            report.add("IL208", f"unknown function '{name}'", location, did_you_mean(name, known))
    lines = []
    listed = [name for name, _ in named] + [function.name for function in step.function_definitions]
    for function in (known[name] for name in dict.fromkeys(listed) if name in known):
        parameters = function.parameters if isinstance(function.parameters, (list, tuple)) else ()
        shown = ", ".join(
            str(parameter.get("name", "") if isinstance(parameter, Mapping) else parameter)
            for parameter in parameters
        )
        lines.append(f"{function.name}({shown}): {function.definition}")
    return bullets("Functions", lines)


def delegations(step: StepSource, at: SourceLocation, report: Report) -> list[Fragment]:
    """List what a parallel step delegates; the agent does the delegating, not the server."""
    if step.type != "parallel":
        return []
    always, sometimes = list[str](), list[Fragment]()
    for index, delegation in enumerate(step.parallel_delegations):
        location = at / "parallelDelegations" / index / "runCondition"
        condition = read_condition(delegation.run_condition, location, report)
        if condition is None:
            always.append(_delegated(delegation))
        else:
            sometimes.append(
                Fragment(f"- {_delegated(delegation)}", condition, name=f"`{delegation.workflow_id}`")
            )
    heading = "Do these in parallel, each on its own where you can delegate"
    synthesis = Fragment(_in_lines(SYNTHESIS, step.synthesis) or f"{SYNTHESIS}.")
    return [Fragment(bullets(heading, always) or f"{heading}:"), *sometimes, synthesis]


def afterwards(step: StepSource) -> str:
    """Say how the agent checks its own work when the step is done, where the file declares it."""
    return join((_in_lines("Then verify it", step.verification), _in_lines("Then audit it", step.audit)))


def _in_lines(heading: str, raw: Json) -> str:
    """Write what a file says in a form of its own: its text, or a line for each entry under the heading."""
    match raw:
        case str() if raw:
            return raw
        case Mapping() | list() if raw:
            entries = raw.items() if isinstance(raw, Mapping) else ((None, entry) for entry in raw)
            return bullets(heading, (_in_words(name, value) for name, value in entries))
        case _:
            return ""


def _in_words(name: str | None, value: Json) -> str:
    match value:
        case Mapping():
            text = "; ".join(_in_words(*entry) for entry in value.items())
        case list():
            text = "; ".join(_in_words(None, entry) for entry in value)
        case _:
            text = _as_text(value)
    return text if name is None else f"{name}: {text}"


def _delegated(delegation: Delegation) -> str:
    """Say in one line what is delegated, with what, and how."""
    parts = [f"`{delegation.workflow_id}`"]
    if delegation.args:
        parts[0] += f" with {json.dumps(dict(delegation.args), ensure_ascii=False)}"
    if delegation.goal:
        parts.append(f"goal: {delegation.goal}")
    if delegation.context_mapping:
        parts.append(f"context: {json.dumps(dict(delegation.context_mapping), ensure_ascii=False)}")
    if delegation.allowed_tools:
        parts.append(f"only these tools: {', '.join(delegation.allowed_tools)}")
    if delegation.model_tier:
        parts.append(f"model: {delegation.model_tier}")
    return "; ".join(parts)


def conditional(step: StepSource, at: SourceLocation, report: Report) -> list[Fragment]:
    """Read the prompt fragments that have conditions of their own."""
    fragments = at / "promptFragments"
    return [
        Fragment(fragment.text, read_condition(fragment.when, fragments / index / "when", report))
        for index, fragment in enumerate(step.prompt_fragments)
    ]


def merged_fragments(fragments: Iterable[Fragment]) -> tuple[Fragment, ...]:
    """Join adjacent fragments that are always shown and were not fields of their own."""
    joined: list[Fragment] = []
    for fragment in fragments:
        if not fragment.text:
            continue
        before = joined[-1] if joined else fragment
        plain = not (fragment.when or before.when or fragment.part or before.part)
        if joined and plain:
            joined[-1] = Fragment(join((before.text, fragment.text)))
        else:
            joined.append(fragment)
    return tuple(joined)
