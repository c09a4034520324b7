"""Expands template calls in place: `{arg}` is filled here, `{{var}}` is left for run time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

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
    """The built-in templates, and every bundled routine as one."""
    routines = (_routine(path) for path in sorted((packs.LIBRARY / "workflows" / "routines").glob("*.*")))
    return packs.templates() | {one.ref: one for one in routines if one is not None}


def _routine(path: Path) -> packs.TemplatePack | None:
    """A routine's steps, with every `{name}` in them as an argument."""
    if path.suffix not in FORMATS or ".scenario." in path.name:
        return None
    parsed = parse(path.name, path.read_text(encoding="utf-8"), FORMATS[path.suffix], Report())
    if parsed is None or not isinstance(parsed.value, Mapping):
        return None
    steps = parsed.value.get("steps")
    plain = [one for one in steps if isinstance(one, Mapping)] if isinstance(steps, list) else []
    name = str(parsed.value.get("id")).rpartition(".")[2].removeprefix("routine-")
    title = str(parsed.value.get("name", name))
    return packs.TemplatePack(f"{ROUTINE}{name}", title, tuple(plain), tuple(arguments(plain)))


def arguments(value: Json) -> list[str]:
    """The names in single braces, each once, in reading order."""
    match value:
        case str():
            found = _ARGUMENT.findall(value)
        case Mapping():
            found = [name for one in value.values() for name in arguments(one)]
        case list() | tuple():
            found = [name for one in value for name in arguments(one)]
        case _:
            found = []
    return list(dict.fromkeys(found))


def expand(
    raw: Mapping[str, Json], at: SourceLocation, report: Report
) -> Iterator[tuple[Mapping[str, Json], str]]:
    """Yield the steps of the call, each with the template it comes from."""
    call = read_as(TemplateCall, raw["templateCall"], at / "templateCall", report)
    if call is None:
        return
    pack = known_templates().get(call.template_id)
    if pack is None:
        fix = did_you_mean(call.template_id, known_templates())
        report.add("IL210", f"unknown template '{call.template_id}'", at / "templateCall" / "templateId", fix)
        return
    given: dict[str, Json] = {**pack.defaults, **call.args}
    for name in pack.args:
        if name not in given:
            report.add("IL211", f"the template needs the argument '{name}'", at / "templateCall")
            return
    for step in pack.steps:
        yield _placed(step, raw, given, single=len(pack.steps) == 1), pack.ref


def _placed(
    step: Mapping[str, Json], caller: Mapping[str, Json], given: Mapping[str, Json], *, single: bool
) -> dict[str, Json]:
    filled = fill(dict(step), given)
    assert isinstance(filled, dict)
    own = {key: value for key, value in caller.items() if key not in ("templateCall", "id")}
    kept = own if single else {key: own[key] for key in ("runCondition",) if key in own}
    return {**filled, **kept, "id": f"{caller.get('id')}.{step.get('id')}"}


def fill(value: Json, given: Mapping[str, Json]) -> Json:
    """Replace `{name}` in every text where the name was given."""
    match value:
        case str():
            return _ARGUMENT.sub(lambda found: _shown(given.get(found[1], found[0])), value)
        case Mapping():
            return {key: fill(one, given) for key, one in value.items()}
        case list() | tuple():
            return [fill(one, given) for one in value]
        case _:
            return value


def _shown(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
