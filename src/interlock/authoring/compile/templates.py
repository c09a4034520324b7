"""Expands template calls in place, and features: `{arg}` is filled here, `{{var}}` stays for run time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from interlock.authoring.compile import builtins as packs
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.prompt_source import TemplateCall
from interlock.authoring.filetypes.step_file import FeatureUse, StepWorkflowSource
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import FORMATS
from interlock.authoring.text.locations import SourceLocation
from interlock.core.values import Json

ROUTINE = "wr.templates.routine."
ROUTINES = "routines"
CONDITIONS = ("runCondition", "condition")
HEADER = (
    *(
        "agentRole",
        "preconditions",
        "clarificationPrompts",
        "metaGuidance",
        "functionDefinitions",
        "features",
    ),
    *("assessments", "variables", "references", "capabilities", "recommendedPreferences"),
)  # what a routine says beside its steps

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
    """Read the routines of a folder as templates, whose arguments are every `{name}` in their texts."""
    templates: dict[str, packs.TemplatePack] = {}
    for path in (folder / name for name in reader.names(folder)):
        if path.suffix.lower() not in FORMATS or ".scenario." in path.name:
            continue
        parsed = reader.parsed(path)
        fields = parsed.value if parsed is not None else None
        raw_steps = fields.get("steps") if isinstance(fields, Mapping) else None
        if not isinstance(fields, Mapping) or not isinstance(raw_steps, list):
            continue
        steps = tuple(raw for raw in raw_steps if isinstance(raw, Mapping))
        name = str(fields.get("id", path.stem)).rpartition(".")[2].removeprefix("routine-")
        title = str(fields.get("name", name))
        header = {key: fields[key] for key in HEADER if key in fields}
        args = tuple(arguments([header, *steps]))
        pack = packs.TemplatePack(f"{ROUTINE}{name}", title, steps, args, header=header)
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


class Expansion(Struct, frozen=True):
    """What a call becomes: the template's items, and what its routine says beside them."""

    ref: str
    items: tuple[Mapping[str, Json], ...]
    header: StepWorkflowSource


def expand(
    raw: Mapping[str, Json], at: SourceLocation, templates: Templates, report: Report
) -> Expansion | None:
    """Fill in the arguments of a call, and put the call's id before every id of the template."""
    call_at = at / "templateCall"
    call = read_as(TemplateCall, raw["templateCall"], call_at, report)
    if call is None:
        return None
    pack = templates.find(call.template_id)
    if pack is None:
        next_action = did_you_mean(call.template_id, templates.all())
        report.add("IL210", f"unknown template '{call.template_id}'", call_at / "templateId", next_action)
        return None
    values: dict[str, Json] = {**pack.defaults, **call.args}
    for name in pack.args:
        if name not in values:
            report.add("IL211", f"the template requires the argument '{name}'", call_at)
            return None
    for name in call.args.keys() - {*pack.args, *pack.defaults}:
        next_action = did_you_mean(name, pack.args)
        report.add(
            "IL105", f"the template has no argument '{name}'", (call_at / "args").key(name), next_action
        )
    filled = fill_placeholders({**pack.header, "steps": [dict(step) for step in pack.steps]}, values)
    assert isinstance(filled, dict)
    items = [item for item in _prefixed(filled["steps"], f"{raw.get('id')}.") if isinstance(item, Mapping)]
    if len(items) == 1 and items[0].get("type") not in ("loop", "gate", "checkpoint"):
        own = {key: value for key, value in raw.items() if key not in ("id", "templateCall", *CONDITIONS)}
        items = [{**items[0], **own}]
    else:
        for name in raw.keys() - {"id", "templateCall", "type", "title", "name", *CONDITIONS}:
            report.add("IL222", f"'{name}' has no effect on a template of several items", at.key(name))
    header = read_as(
        StepWorkflowSource,
        {"id": pack.ref, "name": pack.title, "version": "1.0.0", **filled},
        call_at,
        report,
    )
    return Expansion(pack.ref, tuple(items), header) if header is not None else None


def _prefixed(items: Json, prefix: str) -> list[Json]:
    """Put a prefix before the ids of items, also in loops, and before what refers to them."""
    if not isinstance(items, list):
        return []
    renamed: list[Json] = []
    for item in items:
        fields = dict(item) if isinstance(item, Mapping) else {"id": item}
        for name in ("id", "checkpoint", "body"):
            if isinstance(fields.get(name), str):
                fields[name] = f"{prefix}{fields[name]}"
        if isinstance(fields.get("body"), list):
            fields["body"] = _prefixed(fields["body"], prefix)
        renamed.append(fields)
    return renamed


def filled_features(
    uses: Sequence[str | FeatureUse], at: SourceLocation, report: Report
) -> Iterator[packs.FeaturePack]:
    """Yield the features that are known, with their settings filled into their lines."""
    known = packs.features()
    for index, use in enumerate(uses):
        ref, config = (use, {}) if isinstance(use, str) else (use.id, use.config)
        if (pack := known.get(ref)) is None:
            report.add("IL212", f"unknown feature '{ref}'", at / index, did_you_mean(ref, known))
            continue
        for name, chosen in config.items():
            setting, setting_at = pack.settings.get(name), at / index / "config" / name
            if setting is None:
                names = ", ".join(pack.settings) or "none"
                report.add("IL221", f"'{ref}' has no setting '{name}'; it has: {names}", setting_at)
            elif not setting.accepts(chosen):
                values = ", ".join(map(str, setting.values))
                kind = "a list of some of" if setting.several else "one of"
                report.add("IL221", f"'{name}' of '{ref}' is {kind}: {values}", setting_at)
        worded = {name: setting.worded(config.get(name)) for name, setting in pack.settings.items()}
        lines = {
            part: fill_placeholders(getattr(pack, part), worded)
            for part in ("constraints", "procedure", "verify")
        }
        yield replace(pack, **lines)


def fill_placeholders(value: Json, values: Mapping[str, Json]) -> Json:
    """Replace `{name}` in every text by the argument of that name, if there is one."""

    def filled(match: re.Match[str]) -> str:
        argument = values.get(match[1], match[0])
        return str(argument).lower() if isinstance(argument, bool) else str(argument)

    match value:
        case str():
            return _ARGUMENT.sub(filled, value)
        case Mapping():
            return {key: fill_placeholders(child, values) for key, child in value.items()}
        case list() | tuple():
            return [fill_placeholders(child, values) for child in value]
        case _:
            return value
