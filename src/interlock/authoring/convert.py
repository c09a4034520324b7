"""Converts step JSON, or a folder in TOON, to our YAML form; it compiles to the same workflow.

Markdown for agents becomes a step workflow to start from, with a list of what was not mapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from interlock.authoring.compile.documents import NUMBERED
from interlock.authoring.compile.ids import NAMESPACED, RESERVED, suggested
from interlock.authoring.compile.steps import workflow_kind
from interlock.authoring.compile.unit import compile_unit
from interlock.authoring.diagnostics.codes import INFERRED, STRICT, Report
from interlock.authoring.procedures.procedure import NoProcedure, procedure_of, section_titles, slug
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.sources.sources import Source, Unit, units
from interlock.authoring.text.formats import FORMATS, LARGEST_FILE
from interlock.authoring.text.markdown import titled
from interlock.authoring.text.yaml_writer import as_yaml
from interlock.core.values import Json

LENIENT = "$lenient"
MARKDOWN = (".md", ".mdc", ".markdown")
INSTRUCTIONS = ("AGENTS", "CLAUDE", "GEMINI")  # files about a whole project
TEXTS = ("skills", "resources", "guides", "templates", "steps")
STRUCTURED = ("activities", "skills")


class Converted(Struct, frozen=True):
    """The files to write, by their names relative to the target; `notes` say what was not converted."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    folder: bool = False


class ConversionRefused(Struct, frozen=True):
    """Why a path is not converted."""

    reason: str


def convert(
    path: Path, new_id: str | None = None, section: str | None = None
) -> Converted | ConversionRefused:
    """Convert one workflow; a step workflow gets a namespaced id, its own or a new one (rule 38)."""
    if (skill := path / "SKILL.md").is_file():
        path = skill
    if path.suffix.lower() in MARKDOWN:
        return _converted_markdown(path, new_id, section)
    if section is not None:
        return ConversionRefused(f"{path.name} is not Markdown, so it has no sections")
    source = source_at(path)
    candidates = list(units(source))
    if len(candidates) != 1:
        return ConversionRefused(f"{path} is not one workflow; name its file or its folder")
    (unit,) = candidates
    report = Report()
    head = SourceReader(source.root, report, {}).parsed(unit.head)
    if head is None or not isinstance(head.value, Mapping):
        diagnostic = next(iter(report.diagnostics()), None)
        if diagnostic is None:
            return ConversionRefused(f"{unit.head.name} does not contain a workflow")
        return ConversionRefused(f"{unit.head.name}:{diagnostic.line}: {diagnostic.message}")
    if unit.form != "file":
        return _FolderConversion(unit, source).converted(head.value)
    fields, old_id = head.value, str(head.value.get("id", ""))
    declared = new_id or old_id
    if not _is_own_id(declared):
        return _unfit_id(declared)
    value = {**_without_pointers(fields), "id": declared, **_leniency(unit, source)}
    # The folder or the old name that made it a routine may be lost in the conversion.
    if "kind" not in fields and ("routines" in unit.path.parts[:-1] or workflow_kind(old_id) == "routine"):
        value["kind"] = "routine"
    return Converted({f"{unit.path.stem}.yaml": as_yaml(value)})


def _converted_markdown(path: Path, new_id: str | None, section: str | None) -> Converted | ConversionRefused:
    """Make a step workflow of a skill, a slash command or a section of an AGENTS.md."""
    report = Report()
    text = SourceReader(path.parent, report, {}).text(path)
    if text is None:
        return ConversionRefused(f"{path.name}: {report.diagnostics()[0].message}")
    if section is None and path.stem.upper() in INSTRUCTIONS:
        titles = section_titles(text)
        if len(titles) != 1:
            listed = "; ".join(f"--section '{title}'" for title in titles)
            found = f"these sections have steps: {listed}" if titles else "no section has numbered steps"
            return ConversionRefused(f"{path.name} holds more than one procedure would; {found}")
        section = titles[0]
    named = path.resolve().parent.name if path.stem.upper() == "SKILL" else path.stem
    procedure = procedure_of(text, titled(named), section)
    if isinstance(procedure, NoProcedure):
        return ConversionRefused(f"{path.name}: {procedure.reason}")
    name = slug(procedure.name)
    workflow_id = new_id or suggested(name, "user")
    if not _is_own_id(workflow_id):
        return _unfit_id(workflow_id)
    written = as_yaml({"id": workflow_id, **procedure.fields})
    if len(written.encode()) > LARGEST_FILE:
        return ConversionRefused(f"{path.name} is too long for one workflow; choose a part with --section")
    notes = tuple(f"{path.name}:{note.line}: {note.text}" for note in procedure.unmapped)
    return Converted({f"{workflow_id.rpartition('.')[2]}.yaml": written}, notes)


def _is_own_id(workflow_id: str) -> bool:
    return NAMESPACED.fullmatch(workflow_id) is not None and not workflow_id.startswith(RESERVED)


def _unfit_id(workflow_id: str) -> ConversionRefused:
    reason = f"'{workflow_id}' is not a namespaced id of your own" if workflow_id else "it declares no id"
    return ConversionRefused(f"{reason}; choose one with --id team.name")


def _without_pointers(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Remove `$schema` and other fields for editors of the old format."""
    return {name: value for name, value in fields.items() if not name.startswith("$")}


def _leniency(unit: Unit, source: Source) -> dict[str, Json]:
    """Return the field that keeps the file one of others, where it matters.

    In YAML of our own, unknown names are errors and nothing is inferred from texts.
    """
    diagnostics = compile_unit(unit, source).diagnostics
    return {LENIENT: True} if any(one.code in (*STRICT, INFERRED) for one in diagnostics) else {}


class _FolderConversion:
    """One workflow folder that is being converted to YAML."""

    def __init__(self, unit: Unit, source: Source) -> None:
        self._unit = unit
        self._reader = SourceReader(source.root, Report(), {})
        self._notes: list[str] = []
        self._leniency = _leniency(unit, source)

    def converted(self, head: Mapping[str, Json]) -> Converted | ConversionRefused:
        if self._unit.head.suffix.lower() != ".toon":
            return ConversionRefused(f"{self._unit.head.name} is already YAML")
        fields, listed = _without_pointers(head), head.get("activities")
        if isinstance(listed, list):
            borrowed = [entry for entry in listed if isinstance(entry, str) and "/" in entry]
            self._notes += [f"borrows {entry}: keep that workflow beside this one" for entry in borrowed]
            fields["activities"] = [
                f"{entry.removesuffix('.toon')}.yaml"
                if isinstance(entry, str) and entry.endswith(".toon") and entry not in borrowed
                else entry
                for entry in listed
            ]
        files = {"workflow.yaml": as_yaml({**fields, **self._leniency})}
        activities = str(head.get("activitiesDir") or "activities")
        for folder in dict.fromkeys((activities, *TEXTS)):
            files |= dict(self._files(folder, structured=folder in (*STRUCTURED, activities)))
        return Converted(files, tuple(self._notes), folder=True)

    def _files(self, folder: str, *, structured: bool) -> Iterator[tuple[str, str]]:
        """Yield the files of a folder; one that is not valid in its format stays as it is."""
        for name in self._reader.names(self._unit.home / folder):
            path = self._unit.home / folder / name
            if NUMBERED.fullmatch(name) is None or path.is_dir():
                continue
            if structured and path.suffix.lower() in FORMATS:
                report = Report()
                parsed = SourceReader(self._reader.root, report, {}).parsed(path)
                is_doubtful = path.parent.name == "skills" and bool(report.diagnostics())
                if parsed is not None and isinstance(parsed.value, Mapping) and not is_doubtful:
                    leniency = {} if folder == "skills" else self._leniency
                    yield (
                        f"{folder}/{path.stem}.yaml",
                        as_yaml({**_without_pointers(parsed.value), **leniency}),
                    )
                    continue
                self._notes.append(f"{path.parent.name}/{path.name} is not converted")
            if (raw := self._reader.text(path)) is not None:
                yield f"{folder}/{name}", raw


def write_files(files: Mapping[str, str], target: Path) -> list[Path] | ConversionRefused:
    """Write all files below a folder, or none if one of them exists with another content."""
    paths = {name: target / name for name in files if not _has(target / name, files[name])}
    existing = [path for path in paths.values() if path.exists()]
    if existing:
        return ConversionRefused(f"{existing[0]} already exists")
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
    return list(paths.values())


def _has(path: Path, text: str) -> bool:
    """Say whether a file is there as it would be written, such as a schema that two workflows share."""
    return path.is_file() and path.read_bytes() == text.encode()
