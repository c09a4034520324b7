"""The documents of a workflow folder: skills, resources and templates, found by name or number.

Skills come from the workflow, then from the `meta` beside it, then from the bundled `meta` (rule 36).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.compile.ids import FOLDER_ID
from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.compile.items.step import use_of
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.diagnostics.diagnostic import Mention
from interlock.authoring.filetypes.source_file import DEFAULTS, SourceSettings
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import parse_text
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import read_page, titled
from interlock.core.definition.workflow import (
    Activity,
    Document,
    DocumentKind,
    Step,
    Workflow,
    with_steps,
)
from interlock.core.hashing import digest_of
from interlock.core.values import Json

META = "meta"
NUMBERED = re.compile(r"(?:(\d+)-)?(.+)\.(toon|yaml|yml|md)", re.IGNORECASE)
_RESOURCES = re.compile(r"^(resources\[\d+\]:)(.*(?:\n\s+- .*)*)", re.MULTILINE)
_BARE = re.compile(r"([,\s]\"?)(\d+)(\"?(?=,|\s*$))", re.MULTILINE)
_FOLDERS = {"skill": ("skills",), "resource": ("resources", "guides"), "template": ("templates",)}
_KINDS: tuple[DocumentKind, ...] = ("skill", "resource", "template")
_README = "readme.md"
_ENDINGS = ("toon", "yaml", "yml", "md")
_SKILL_FIELDS = (
    *("id", "version", "title", "name", "capability", "description", "protocol", "rules", "inputs", "output"),
    *("resources", "errors", "tools", "operations"),
)


class NamedFile(Struct, frozen=True):
    """A file of a folder, by its number and name."""

    path: Path
    number: str
    name: str
    ending: Literal["toon", "yaml", "yml", "md"]

    def ref(self, kind: DocumentKind) -> str:
        """Return what authors write to refer to the file: a skill's name, else the number."""
        return self.name if kind == "skill" or not self.number else self.number


class Text(Struct, frozen=True):
    """The text of a document, and the resources it refers to."""

    document: Document
    content: str
    resources: tuple[str, ...] = ()
    location: SourceLocation | None = None


class Folder(Struct):
    """A workflow folder that is being compiled, and the documents to keep with the workflow."""

    reader: SourceReader
    path: Path
    head: Parsed
    settings: SourceSettings = DEFAULTS
    settings_at: SourceLocation | None = None
    texts: dict[str, str] = field(default_factory=dict)
    documents: dict[tuple[str, str], Document] = field(default_factory=dict)
    mentions: list[Mention] = field(default_factory=list)

    @property
    def report(self) -> Report:
        return self.reader.report

    @property
    def own(self) -> SourceReader:
        """The reader that does not leave the folder."""
        return self.reader.within(self.path)

    def keep(self, text: Text) -> None:
        document = text.document
        self.documents.setdefault((document.kind, document.ref), document)
        self.texts[document.digest] = text.content


def named_files(reader: SourceReader, folder: Path, endings: Sequence[str]) -> list[NamedFile]:
    """Return the files of a folder in the order of their names; TOON wins over others of its number."""
    files: dict[tuple[str, str], NamedFile] = {}
    for file_name in reader.names(folder):
        match = NUMBERED.fullmatch(file_name)
        ending = match[3].lower() if match else ""
        if match is None or ending not in endings or file_name.lower() == _README:
            continue
        file = NamedFile(folder / file_name, match[1] or "", match[2], ending)  # type: ignore[arg-type]
        key = (file.number, file.name)
        if key not in files or file.ending == "toon":
            files[key] = file
    return list(files.values())


def keep_documents(folder: Folder, workflow: Workflow, draft: CompileDraft) -> None:
    """Keep the folder's own documents, and those of other folders that it names."""
    collector = _Collector(folder)
    for kind in _KINDS:
        for text in collector.own.texts(kind):
            folder.keep(text)
            collector.keep_resources(text, collector.own)
    head = SourceLocation(folder.head)
    for ref in workflow.skills:
        collector.keep_skill(ref, (head / "skills").holding(ref))
    for activity in workflow.activities:
        at = draft.locations[activity.id, "activity", activity.id]
        if activity.primary_skill:
            collector.keep_skill(activity.primary_skill, at / "skills" / "primary")
        for index, ref in enumerate(activity.supporting_skills):
            collector.keep_skill(ref, at / "skills" / "supporting" / index)
        for step in activity.steps():
            if step.skill:
                location = draft.locations.get((activity.id, "step", step.id), at)
                collector.keep_skill(step.skill, location / "skill")
    for index, mode in enumerate(workflow.modes):
        if mode.resource is not None:
            location = head / "modes" / index / "resource"
            collector.keep_resource(mode.resource, collector.own, location)


def with_lender(folder: Folder, activity: Activity, lender: Path) -> Activity:
    """Name the lender in the skills that a borrowed activity takes from it (rule 36)."""
    own, home = FolderDocuments(folder.own, folder.path), FolderDocuments(folder.reader, lender)

    def named(ref: str) -> str:
        is_lent = "/" not in ref and own.file("skill", ref) is None and home.file("skill", ref) is not None
        return f"{lender.name}/{ref}" if is_lent else ref

    return replace(
        activity,
        primary_skill=named(activity.primary_skill) if activity.primary_skill else None,
        supporting_skills=tuple(named(ref) for ref in activity.supporting_skills),
        items=with_steps(activity.items, partial(_with_skill, named=named)),
    )


def _with_skill(step: Step, named: Callable[[str], str]) -> Step:
    """Rename the skill of a step, also where its prompt names it."""
    if step.skill is None:
        return step
    duty, lent = use_of(step.skill), use_of(named(step.skill))
    prompt = tuple(replace(part, text=part.text.replace(duty, lent)) for part in step.prompt)
    return replace(step, skill=named(step.skill), prompt=prompt)


class FolderDocuments:
    """The skills, resources and templates of one workflow folder, read when they are asked for."""

    def __init__(self, reader: SourceReader, folder: Path) -> None:
        self.folder = folder
        self._reader = reader
        self._files: dict[DocumentKind, list[NamedFile]] = {}

    def texts(self, kind: DocumentKind) -> Iterator[Text]:
        for file in self.files(kind):
            text = self._read(file, kind, file.ref(kind))
            if text is not None:
                yield text

    def find(self, kind: DocumentKind, wanted: str, ref: str) -> Text | None:
        """Find a skill by id or a resource by number; `ref` becomes the ref of its document."""
        file = self.file(kind, wanted)
        return self._read(file, kind, ref) if file is not None else None

    def file(self, kind: DocumentKind, wanted: str) -> NamedFile | None:
        """Return the file of a skill's id or a resource's number."""
        for file in self.files(kind):
            if file.name == wanted or (file.number and is_same_number(file.number, wanted)):
                return file
        return None

    def files(self, kind: DocumentKind) -> list[NamedFile]:
        if kind not in self._files:
            folders = (named_files(self._reader, self.folder / name, _ENDINGS) for name in _FOLDERS[kind])
            self._files[kind] = next((files for files in folders if files), [])
        return self._files[kind]

    def _read(self, file: NamedFile, kind: DocumentKind, ref: str) -> Text | None:
        raw_text = self._reader.text(file.path)
        if raw_text is None:
            return None
        report, shown = Report(), self._reader.shown(file.path)
        parsed: Parsed | None
        if file.ending == "md":
            page = read_page(shown, raw_text, report)
            parsed, content = page.fields, page.body
            fields = parsed.value if isinstance(parsed.value, Mapping) else {}
        else:
            parsed = parse_text(shown, raw_text, "toon" if file.ending == "toon" else "yaml", report)
            fields = parsed.value if parsed is not None and isinstance(parsed.value, Mapping) else {}
            if kind == "skill" and parsed is not None:
                self._check_names(SourceLocation(parsed), fields)
            content = raw_text if file.ending == "toon" else written_as_toon(fields)
        document = Document(
            kind,
            ref,
            str(fields.get("id") or file.name),
            digest_of(content.encode()),
            str(fields.get("title") or fields.get("name") or titled(file.name)),
            str(fields.get("version") or ""),
            "md" if file.ending == "md" else "toon",
        )
        resources = fields.get("resources")
        listed = resources if isinstance(resources, list) else []
        refs = tuple(str(ref) for ref in listed if isinstance(ref, (str, int)))
        self._reader.report.add_as_warnings(report)
        return Text(document, content, refs, SourceLocation(parsed) if parsed else None)

    def _check_names(self, at: SourceLocation, fields: Mapping[str, Json]) -> None:
        """Warn of a name that is nearly one which agents look for; any other is the author's own."""
        for name in fields:
            meant = did_you_mean(name, _SKILL_FIELDS) if name not in _SKILL_FIELDS else ""
            if meant:
                location = at.key(name).located()
                self._reader.report.add_at(
                    at.parsed.file, "IL105", f"unknown field '{name}'", location, meant
                )


def written_as_toon(value: Mapping[str, Json]) -> str:
    import toon_format

    text: str = toon_format.encode(dict(value))
    return text + "\n"


def is_same_number(left: str, right: str) -> bool:
    """Say whether two numbers are equal whatever their zeros: 5, 05 and 005 are."""
    return right.isascii() and right.isdigit() and left.zfill(3) == right.zfill(3)


def _with_owner(text: Text, owner: str) -> Text:
    """Return a borrowed skill whose resources are named with their owner: a bare number is the borrower's."""

    def named(listed: re.Match[str]) -> str:
        return listed[1] + _BARE.sub(rf"\g<1>{owner}/\g<2>\g<3>", listed[2])

    content = _RESOURCES.sub(named, text.content)
    document = replace(text.document, digest=digest_of(content.encode()), owner=owner)
    return replace(text, document=document, content=content)


class _Collector:
    """Keeps documents of the folder itself and of the folders it may use."""

    def __init__(self, folder: Folder) -> None:
        self.own = FolderDocuments(folder.own, folder.path)
        self._folder = folder
        self._others: dict[Path, FolderDocuments] = {}
        self._missing: set[str] = set()

    def keep_skill(self, ref: str, at: SourceLocation) -> None:
        if ("skill", ref) in self._folder.documents or ref in self._missing:
            return
        owner, _, name = ref.rpartition("/")
        for documents in self._owned_by(owner) if owner else self._searched():
            if (text := documents.find("skill", name, ref)) is not None:
                is_own = documents is self.own
                self._folder.keep(text if is_own else _with_owner(text, documents.folder.name))
                self.keep_resources(text, documents)
                return
        self._missing.add(ref)
        known = [file.ref("skill") for documents in self._searched() for file in documents.files("skill")]
        self._folder.report.add("IL206", f"unknown skill '{ref}'", at, did_you_mean(ref, known))

    def keep_resources(self, text: Text, documents: FolderDocuments) -> None:
        if text.location is None:
            return
        for index, ref in enumerate(text.resources):
            self.keep_resource(ref, documents, text.location / "resources" / index)

    def keep_resource(self, ref: str, documents: FolderDocuments, at: SourceLocation) -> None:
        """Keep what a skill or mode refers to; a number alone means a resource of its own folder."""
        owner, _, name = ref.rpartition("/")
        is_own = not owner and documents is self.own
        full_ref = ref if owner or is_own else f"{documents.folder.name}/{name}"
        for candidates in self._owned_by(owner) if owner else [documents]:
            if (text := candidates.find("resource", name, full_ref)) is not None:
                if not is_own:
                    self._folder.keep(text)
                return
        self._folder.report.add("IL207", f"unknown resource '{ref}'", at)

    def _searched(self) -> Iterator[FolderDocuments]:
        """Yield the workflow, then the meta beside it, then ours."""
        yield self.own
        yield self._at(self._folder.path.parent / META)
        yield self._bundled_meta()

    def _owned_by(self, owner: str) -> list[FolderDocuments]:
        if not FOLDER_ID.fullmatch(owner):
            return []
        beside = self._at(self._folder.path.parent / owner)
        return [beside, self._bundled_meta()] if owner == META else [beside]

    def _at(self, path: Path) -> FolderDocuments:
        return self._others.setdefault(path, FolderDocuments(self._folder.reader, path))

    def _bundled_meta(self) -> FolderDocuments:
        bundled = LIBRARY / "workflows"
        reader = self._folder.reader.within(bundled)
        return self._others.setdefault(bundled / META, FolderDocuments(reader, bundled / META))
