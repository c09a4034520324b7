"""Expands template calls in place: `{arg}` is filled here, `{{var}}` stays for run time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from interlock.authoring.compile import builtins as packs
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import TemplateCall
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import FORMATS
from interlock.authoring.text.locations import SourceLocation
from interlock.core.values import Json

ROUTINE = "wr.templates.routine."
ROUTINES = "routines"

_ARGUMENT = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")


@cache
def known_templates() -> dict[str, packs.TemplatePack]:
    """Return the built-in templates, and every bundled routine as one."""
    reader = SourceReader(packs.LIBRARY, Report(), {})
    return packs.templates() | _routines(reader, packs.LIBRARY / "workflows" / ROUTINES)


class Templates:
    """The templates that a workflow can call: the routines of its own source, and the built-in ones."""

    def __init__(self, reader: SourceReader | None = None, home: Path | None = None) -> None:
        # Errors in a routine are reported with the routine, not with every workflow that looks for one.
        self._reader = SourceReader(reader.root, Report(), reader.stamps) if reader else None
        self._home = home

    def all(self) -> dict[str, packs.TemplatePack]:
        return known_templates() | self._own

    def find(self, ref: str) -> packs.TemplatePack | None:
        """Return the template of this name; files are read only for the name of a routine."""
        own = self._own.get(ref) if ref.startswith(ROUTINE) else None
        return own or known_templates().get(ref)

    @cached_property
    def _own(self) -> dict[str, packs.TemplatePack]:
        """The routines in the folders `routines` beside the workflow and above it, the nearest first."""
        if self._reader is None or self._home is None:
            return {}
        root = self._reader.root
        folders = [folder for folder in (self._home, *self._home.parents) if folder.is_relative_to(root)]
        routines: dict[str, packs.TemplatePack] = {}
        for folder in reversed(folders):
            routines |= _routines(self._reader, folder / ROUTINES)
        return routines


def _routines(reader: SourceReader, folder: Path) -> dict[str, packs.TemplatePack]:
    """Read the routines of a folder as templates, whose arguments are every `{name}` in their steps."""
    templates: dict[str, packs.TemplatePack] = {}
    for path in (folder / name for name in reader.names(folder)):
        if path.suffix not in FORMATS or ".scenario." in path.name:
            continue
        parsed = reader.parsed(path)
        fields = parsed.value if parsed is not None else None
        raw_steps = fields.get("steps") if isinstance(fields, Mapping) else None
        if not isinstance(fields, Mapping) or not isinstance(raw_steps, list):
            continue
        steps = tuple(raw for raw in raw_steps if isinstance(raw, Mapping))
        name = str(fields.get("id", path.stem)).rpartition(".")[2].removeprefix("routine-")
        title = str(fields.get("name", name))
        pack = packs.TemplatePack(f"{ROUTINE}{name}", title, steps, tuple(arguments(steps)))
        templates[pack.ref] = pack
    return templates


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
    raw: Mapping[str, Json], at: SourceLocation, templates: Templates, report: Report
) -> Iterator[tuple[Mapping[str, Json], str]]:
    """Yield the steps of the call, each with the template it comes from."""
    call_at = at / "templateCall"
    call = read_as(TemplateCall, raw["templateCall"], call_at, report)
    if call is None:
        return
    pack = templates.find(call.template_id)
    if pack is None:
        next_action = did_you_mean(call.template_id, templates.all())
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
