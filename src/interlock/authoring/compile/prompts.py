"""Writes the words of a step: role, blocks, guidance, and all that its output must satisfy.

Requirements stand in the prompt so that they are known before the attempt. `{{var}}` waits for run time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.compile.criteria import lines_of
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import FunctionSource, PromptBlocks, StepSource
from interlock.authoring.filetypes.type_check import name_of
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Contract, Criteria, Fragment
from interlock.core.values import Json

BLOCKS = (
    ("goal", "Goal"),
    ("constraints", "Constraints"),
    ("procedure", "Procedure"),
    ("output_required", "Output required"),
    ("verify", "Verify"),
)


def join(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def role_of(role: str | None) -> str:
    return f"Role: {role}" if role else ""


def words_of(
    step: StepSource, features: Sequence[packs.FeaturePack], at: SourceLocation, report: Report
) -> str:
    """The step's own text, from its prompt or from its blocks."""
    plain = _flat(step.prompt, at / "prompt", report)
    if step.prompt_blocks is None:
        return plain
    return join((plain, *_blocks(step.prompt_blocks, features, at / "promptBlocks", report)))


def _blocks(
    blocks: PromptBlocks, features: Sequence[packs.FeaturePack], at: SourceLocation, report: Report
) -> Iterable[str]:
    for name, heading in BLOCKS:
        key = "outputRequired" if name == "output_required" else name
        lines = _lines(getattr(blocks, name), at / key, report)
        for feature in features:
            lines.extend(getattr(feature, name, ()))
        if lines:
            yield f"## {heading}\n" + _listed(lines, plain=name == "goal")


def _listed(lines: Sequence[str], *, plain: bool) -> str:
    if plain or len(lines) == 1:
        return "\n".join(lines)
    return "\n".join(line if _is_marked(line) else f"- {line}" for line in lines)


def _is_marked(line: str) -> bool:
    head = line.lstrip().split(" ", 1)[0]
    return head in ("-", "*", "•") or head.rstrip(".)").isdigit()


def _lines(raw: Json, at: SourceLocation, report: Report) -> list[str]:
    """A block is text, a list of texts or parts, or an object of named outputs."""
    match raw:
        case None:
            return []
        case str():
            return [raw]
        case Mapping():
            if raw.get("kind") in ("text", "ref"):
                return [_part(raw, at, report)]
            return [f"{name}: {_inline(value)}" for name, value in raw.items()]
        case list():
            if any(isinstance(one, Mapping) and one.get("kind") == "text" for one in raw):
                return ["".join(_flat(one, at / index, report) for index, one in enumerate(raw))]
            return [_flat(one, at / index, report) for index, one in enumerate(raw)]
        case _:
            report.add("IL102", f"expected text or a list, got {name_of(raw)}", at)
            return []


def _flat(raw: Json, at: SourceLocation, report: Report) -> str:
    match raw:
        case None:
            return ""
        case str():
            return raw
        case Mapping():
            return _part(raw, at, report)
        case list():
            return "".join(_flat(one, at / index, report) for index, one in enumerate(raw))
        case _:
            report.add("IL102", f"expected text, got {name_of(raw)}", at)
            return ""


def _part(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> str:
    if raw.get("kind") != "ref":
        return str(raw.get("text", ""))
    ref = str(raw.get("refId", ""))
    pack = packs.references().get(ref)
    if pack is None:
        report.add("IL213", f"unknown reference '{ref}'", at / "refId", did_you_mean(ref, packs.references()))
        return ref
    return pack.text


def _inline(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def bullets(heading: str, lines: Iterable[str]) -> str:
    body = "\n".join(f"- {line}" for line in lines)
    return f"{heading}:\n{body}" if body else ""


def functions(defined: Iterable[FunctionSource]) -> str:
    return bullets("Functions", (f"{one.name}{_parameters(one)}: {one.definition}" for one in defined))


def _parameters(function: FunctionSource) -> str:
    names = function.parameters
    if not isinstance(names, (list, tuple)):
        return "()"
    return "(" + ", ".join(_parameter(one) for one in names) + ")"


def _parameter(one: Json) -> str:
    return str(one.get("name", "")) if isinstance(one, Mapping) else str(one)


def requirements(contracts: Sequence[Contract], criteria: Criteria | None) -> str:
    """What the output must hold, in words and by example."""
    must = "Your notes must satisfy:\n" + "\n".join(lines_of(criteria)) if criteria else ""
    return join((*map(_artifact, contracts), must))


def _artifact(contract: Contract) -> str:
    need = "Required" if contract.required else "Optional"
    line = f"{need} output: an artifact of kind `{contract.artifact}` ({contract.ref})"
    if contract.example is None:
        return line + "."
    return f"{line}, such as:\n```json\n{json.dumps(contract.example, ensure_ascii=False)}\n```"


def delegations(step: StepSource) -> str:
    """A parallel step: the agent fans out, the server only says to what."""
    if step.type != "parallel":
        return ""
    lines = [
        f"`{one.workflow_id}`"
        + (f" with {json.dumps(dict(one.args), ensure_ascii=False)}" if one.args else "")
        for one in step.parallel_delegations
    ]
    tail = _inline(step.synthesis) if step.synthesis else "Then bring their results together."
    return join((bullets("Do these in parallel, each on its own where you can delegate", lines), tail))


def conditional(step: StepSource, at: SourceLocation, report: Report) -> list[Fragment]:
    here = at / "promptFragments"
    return [
        Fragment(one.text, read_condition(one.when, here / index / "when", report))
        for index, one in enumerate(step.prompt_fragments)
    ]


def merged(fragments: Iterable[Fragment]) -> tuple[Fragment, ...]:
    """Join neighbours that are always shown."""
    made: list[Fragment] = []
    for one in fragments:
        if not one.text:
            continue
        if made and one.when is None and made[-1].when is None:
            made[-1] = Fragment(join((made[-1].text, one.text)))
        else:
            made.append(one)
    return tuple(made)
