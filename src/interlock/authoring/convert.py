"""Turns step JSON, or a folder in TOON, into our YAML form; what it compiles to stays the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from interlock.authoring.compile.documents import NUMBERED
from interlock.authoring.compile.ids import NAMESPACED, RESERVED
from interlock.authoring.compile.steps import kind_of
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.sources.sources import HEADS, Source, Unit, units
from interlock.authoring.text.formats import FORMATS
from interlock.authoring.text.yaml_writer import as_yaml
from interlock.core.values import Json

TEXTS = ("skills", "resources", "guides", "templates", "steps")
STRUCTURED = ("activities", "skills")


class Converted(Struct, frozen=True):
    """The files to write, by their names relative to the target; `notes` say what was left as it was."""

    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    folder: bool = False


class ConversionRefused(Struct, frozen=True):
    """Why a path is not converted."""

    reason: str


def convert(path: Path, new_id: str | None = None) -> Converted | ConversionRefused:
    """Convert one workflow; a step workflow gets a namespaced id, its own or a new one (rule 38)."""
    source = source_at(path)
    found = list(units(source))
    if len(found) != 1:
        return ConversionRefused(f"{path} is not one workflow; name its file or its folder")
    unit = found[0]
    match unit.form:
        case "file":
            return _file(unit, source, new_id)
        case "folder" | "legacy":
            return _Folder(unit, source).converted()


def _file(unit: Unit, source: Source, new_id: str | None) -> Converted | ConversionRefused:
    report = Report()
    parsed = SourceReader(source.root, report, {}).parsed(unit.path)
    if parsed is None or not isinstance(parsed.value, Mapping):
        return ConversionRefused(_why(report, unit.path))
    declared = new_id or str(parsed.value.get("id"))
    if NAMESPACED.fullmatch(declared) is None or declared.startswith(RESERVED):
        return ConversionRefused(
            f"'{declared}' is no namespaced id of your own; choose one with --id team.name"
        )
    value = {**_plain(parsed.value), **_kind(parsed.value, unit.path), "id": declared}
    return Converted({f"{unit.path.stem}.yaml": as_yaml(value)})


def _kind(value: Mapping[str, Json], path: Path) -> dict[str, Json]:
    """A routine by its folder or its old name says so itself from now on."""
    routine = "routines" in path.parts[:-1] or kind_of(str(value.get("id"))) == "routine"
    return {"kind": "routine"} if routine and "kind" not in value else {}


def _plain(value: Mapping[str, Json]) -> dict[str, Json]:
    """Without the pointers that other editors understand."""
    return {name: one for name, one in value.items() if not name.startswith("$")}


def _why(report: Report, path: Path) -> str:
    fault = next(iter(report.diagnostics()), None)
    return f"{path.name}:{fault.line}: {fault.message}" if fault else f"{path.name} holds no workflow"


class _Folder:
    """One workflow folder on its way to YAML."""

    def __init__(self, unit: Unit, source: Source) -> None:
        self._report = Report()
        self._legacy = unit.form == "legacy"
        self._home = unit.path.with_suffix("") if self._legacy else unit.path
        self._head = (
            unit.path
            if self._legacy
            else next(self._home / name for name in HEADS if (self._home / name).is_file())
        )
        self._reader = SourceReader(source.root, self._report, {})
        self._notes: list[str] = []

    def converted(self) -> Converted | ConversionRefused:
        head = self._reader.parsed(self._head)
        if head is None or not isinstance(head.value, Mapping):
            return ConversionRefused(_why(self._report, self._head))
        if self._head.suffix != ".toon":
            return ConversionRefused(f"{self._head.name} is in YAML already")
        files = {"workflow.yaml": as_yaml(self._renamed(head.value))}
        inner = head.value.get("activitiesDir")
        for folder in dict.fromkeys((str(inner or "activities"), *TEXTS)):
            files |= dict(self._texts(folder, structured=folder in STRUCTURED or folder == inner))
        return Converted(files, tuple(self._notes), folder=True)

    def _renamed(self, head: Mapping[str, Json]) -> dict[str, Json]:
        """The head file, its own activities called by their new names."""
        listed = head.get("activities")
        if not isinstance(listed, list):
            return _plain(head)
        return {**_plain(head), "activities": [self._entry(one) for one in listed]}

    def _entry(self, entry: Json) -> Json:
        if not isinstance(entry, str):
            return entry
        if "/" in entry:
            self._notes.append(f"borrows {entry}: keep that workflow beside this one")
            return entry
        return f"{entry.removesuffix('.toon')}.yaml" if entry.endswith(".toon") else entry

    def _texts(self, folder: str, *, structured: bool) -> Iterator[tuple[str, str]]:
        for name in self._reader.names(self._home / folder):
            path = self._home / folder / name
            if NUMBERED.fullmatch(name) is None or path.is_dir():
                continue
            text = self._structured(path) if structured and path.suffix in FORMATS else None
            if text is not None:
                yield f"{folder}/{path.stem}.yaml", text
            elif (raw := self._reader.text(path)) is not None:
                yield f"{folder}/{name}", raw

    def _structured(self, path: Path) -> str | None:
        """The file as YAML; one that is not valid in its format stays as it is."""
        scratch = Report()
        parsed = SourceReader(self._reader.root, scratch, {}).parsed(path)
        if parsed is None or not isinstance(parsed.value, Mapping) or self._is_doubtful(path, scratch):
            self._notes.append(f"{path.parent.name}/{path.name} is left as it is")
            return None
        return as_yaml(_plain(parsed.value))

    def _is_doubtful(self, path: Path, scratch: Report) -> bool:
        return path.parent.name == "skills" and bool(scratch.diagnostics())


def write_files(files: Mapping[str, str], target: Path) -> list[Path] | ConversionRefused:
    """Write all files below a folder, or none if one of them is there already."""
    paths = {name: target / name for name in files}
    taken = [path for path in paths.values() if path.exists()]
    if taken:
        return ConversionRefused(f"{taken[0]} exists already")
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
    return list(paths.values())
