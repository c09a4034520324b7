"""Expands template calls in place: `{arg}` is filled here, `{{var}}` stays for run time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from interlock.authoring.compile import builtins as packs
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import TemplateCall
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.text.formats import FORMATS, parse
from interlock.authoring.text.locations import SourceLocation
from interlock.core.values import Json

ROUTINE = "wr.templates.routine."

_ARGUMENT = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")


@cache
def known_templates() -> dict[str, packs.TemplatePack]:
    """Return the built-in templates, and every bundled routine as one; its arguments are in its steps."""
    known = dict(packs.templates())
    for path in sorted((packs.LIBRARY / "workflows" / "routines").glob("*.*")):
        if path.suffix not in FORMATS or ".scenario." in path.name:
            continue
        parsed = parse(path.name, path.read_text(encoding="utf-8"), FORMATS[path.suffix], Report())
        if parsed is None or not isinstance(parsed.value, Mapping):
            continue
        raw_steps = parsed.value.get("steps")
        steps = [raw for raw in raw_steps if isinstance(raw, Mapping)] if isinstance(raw_steps, list) else []
        name = str(parsed.value.get("id")).rpartition(".")[2].removeprefix("routine-")
        title, ref = str(parsed.value.get("name", name)), f"{ROUTINE}{name}"
        known[ref] = packs.TemplatePack(ref, title, tuple(steps), tuple(arguments(steps)))
    return known


def arguments(value: Json) -> list[str]:
    """Return the names in single braces, each once, in reading order."""
    match value:
        case str():
            names = _ARGUMENT.findall(value)
        case Mapping():
            names = [name for child in value.values() for name in arguments(child)]
        case list() | tuple():
            names = [name for child in value for name in arguments(child)]
        case _:
            names = []
    return list(dict.fromkeys(names))


def expand(
    raw: Mapping[str, Json], at: SourceLocation, report: Report
) -> Iterator[tuple[Mapping[str, Json], str]]:
    """Yield the steps of the call, each with the template it comes from."""
    call_at = at / "templateCall"
    call = read_as(TemplateCall, raw["templateCall"], call_at, report)
    if call is None:
        return
    pack = known_templates().get(call.template_id)
    if pack is None:
        next_action = did_you_mean(call.template_id, known_templates())
        report.add("IL210", f"unknown template '{call.template_id}'", call_at / "templateId", next_action)
        return
    values: dict[str, Json] = {**pack.defaults, **call.args}
    for name in pack.args:
        if name not in values:
            report.add("IL211", f"the template requires the argument '{name}'", call_at)
            return
    fields = {key: value for key, value in raw.items() if key not in ("templateCall", "id")}
    if len(pack.steps) > 1:  # only the condition of the call applies to each of several steps
        fields = {key: fields[key] for key in ("runCondition",) if key in fields}
    for step in pack.steps:
        filled = fill(dict(step), values)
        assert isinstance(filled, dict)
        yield {**filled, **fields, "id": f"{raw.get('id')}.{step.get('id')}"}, pack.ref


def fill(value: Json, values: Mapping[str, Json]) -> Json:
    """Replace `{name}` in every text by the argument of that name, if there is one."""

    def filled(match: re.Match[str]) -> str:
        argument = values.get(match[1], match[0])
        return str(argument).lower() if isinstance(argument, bool) else str(argument)

    match value:
        case str():
            return _ARGUMENT.sub(filled, value)
        case Mapping():
            return {key: fill(child, values) for key, child in value.items()}
        case list() | tuple():
            return [fill(child, values) for child in value]
        case _:
            return value
