"""Compiles a workflow folder: the head file, its activities or steps, and the texts beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from interlock.authoring.compile.activities import compile_activity, inlined
from interlock.authoring.compile.builtins import LIBRARY
from interlock.authoring.compile.documents import KINDS, Named, Shelf, Text, named_files
from interlock.authoring.compile.ids import FOLDER_ID
from interlock.authoring.compile.items import CompileDraft
from interlock.authoring.compile.steps import check_header, compile_steps, kind_of, read_variable
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.diagnostics.diagnostic import Mention
from interlock.authoring.filetypes.activity_file import ActivityWorkflowSource, ModeSource, SkillsSource
from interlock.authoring.filetypes.type_check import read_as, unknown_fields
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import FORMATS, parse
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import as_step, read_page
from interlock.core.definition.workflow import Activity, ActivityMode, Document, Workflow
from interlock.core.hashing import digest_of
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json

META = "meta"


class Folder(Struct):
    """A workflow folder being compiled: what is read, and the texts that are kept."""

    reader: SourceReader
    path: Path
    head: Parsed
    texts: dict[str, str] = field(default_factory=dict)
    documents: dict[tuple[str, str], Document] = field(default_factory=dict)
    lenders: dict[str, Path] = field(default_factory=dict)
    mentions: list[Mention] = field(default_factory=list)

    @property
    def report(self) -> Report:
        return self.reader.report

    @property
    def own(self) -> SourceReader:
        return self.reader.within(self.path)

    def keep(self, text: Text) -> None:
        document = text.document
        self.documents.setdefault((document.kind, document.ref), document)
        self.texts[document.digest] = text.content


def compile_folder(folder: Folder) -> tuple[Workflow, CompileDraft] | None:
    """Compile a folder in either form: steps, or activities."""
    raw = folder.head.value
    if isinstance(raw, Mapping) and "steps" in raw:
        return _steps(folder, raw)
    return _activities(folder, raw)


def _steps(folder: Folder, raw: Mapping[str, Json]) -> tuple[Workflow, CompileDraft] | None:
    words = _words(folder.own, folder.path / "steps")
    made = compile_steps(raw, SourceLocation(folder.head), folder.report, words)
    if made is not None:
        _report_unused(words, made[1], folder.report)
    return made


def _words(reader: SourceReader, folder: Path) -> dict[str, Parsed]:
    """The Markdown files of a folder, by the step they are named after."""
    found: dict[str, Parsed] = {}
    for one in named_files(reader, folder, ("md",)):
        text = reader.text(one.path)
        if text is not None:
            found[one.path.stem] = as_step(read_page(reader.shown(one.path), text, reader.report))
    return found


def _report_unused(words: Mapping[str, Parsed], draft: CompileDraft, report: Report) -> None:
    used = {step for _, kind, step in draft.locations if kind == "step"}
    for name, page in words.items():
        if name not in used:
            report.add("IL217", f"no step is called '{name}'", SourceLocation(page), did_you_mean(name, used))


def _activities(folder: Folder, raw: Json) -> tuple[Workflow, CompileDraft] | None:
    at, report = SourceLocation(folder.head), folder.report
    source = read_as(ActivityWorkflowSource, raw, at, report)
    if source is None or not isinstance(raw, Mapping):
        return None
    if source.title is None and source.name is None:
        report.add("IL101", "the field 'title' is missing", at)
    check_header(source.version, source.min_server_version, at, report)
    draft = _draft(source, report)
    found = {one.id: one for one in _each(folder, source, draft)}
    if not found and not report.failed:
        report.add("IL106", "the workflow has no activities", at)
    activities = tuple(inlined(one, found, draft) for one in found.values())
    workflow = _workflow(source, raw, activities)
    keep_documents(folder, workflow, draft)
    return msgspec.structs.replace(workflow, documents=tuple(folder.documents.values())), draft


def _draft(source: ActivityWorkflowSource, report: Report) -> CompileDraft:
    return CompileDraft(
        report=report,
        functions=source.function_definitions,
        assessments={one.id: one for one in source.assessments},
        title_word="name",
    )


def _each(folder: Folder, source: ActivityWorkflowSource, draft: CompileDraft) -> Iterator[Activity]:
    """Local files in the order of their names, then what the head file borrows or holds itself."""
    home = folder.path / (source.activities_dir or "activities")
    seen: set[str] = set()
    for activity in (*_local(folder, home, draft, source), *_referenced(folder, source, home, draft)):
        if activity.id not in seen:
            seen.add(activity.id)
            yield activity


def _local(
    folder: Folder, home: Path, draft: CompileDraft, source: ActivityWorkflowSource
) -> Iterator[Activity]:
    files = named_files(folder.own, home, ("toon", "yaml", "yml"))
    order = {name: location for location, name in enumerate(source.activities) if isinstance(name, str)}
    known: dict[str, str] = {}
    for one in sorted(files, key=lambda one: order.get(one.name, len(order)) if not one.number else -1):
        activity = _file(folder.own, folder, one, draft)
        if activity is None:
            continue
        if activity.id in known:
            location = draft.locations[activity.id, "activity", activity.id] / "id"
            draft.report.add("IL201", f"two activities are called '{activity.id}'", location)
        known[activity.id] = one.name
        yield activity


def _file(reader: SourceReader, folder: Folder, one: Named, draft: CompileDraft) -> Activity | None:
    text = reader.text(one.path)
    if text is None:
        return None
    parsed = parse(reader.shown(one.path), text, FORMATS[one.path.suffix], reader.report)
    if parsed is None:
        return None
    words = _words(reader, one.path.parent / one.name)
    activity = compile_activity(parsed.value, SourceLocation(parsed), draft.fresh(words))
    if activity is None:
        return None
    _report_unused(words, draft, reader.report)
    return msgspec.structs.replace(
        activity,
        artifact_prefix=one.number or None,
        document=_raw_activity(folder, activity, text) if one.ending == "toon" else None,
    )


def _raw_activity(folder: Folder, activity: Activity, text: str) -> str:
    digest = digest_of(text.encode())
    document = Document("activity", activity.id, activity.id, digest, activity.name, activity.version)
    folder.keep(Text(document, text))
    return digest


def _referenced(
    folder: Folder, source: ActivityWorkflowSource, home: Path, draft: CompileDraft
) -> Iterator[Activity]:
    for index, entry in enumerate(source.activities):
        at = SourceLocation(folder.head) / "activities" / index
        if isinstance(entry, Mapping):
            activity = compile_activity(entry, at, draft.fresh({}))
        elif isinstance(entry, str):
            activity = _borrow(folder, entry, home, at, draft)
        else:
            draft.report.add("IL102", "an activity is a reference or an object", at)
            continue
        if activity is not None:
            yield activity


def _borrow(
    folder: Folder, entry: str, home: Path, at: SourceLocation, draft: CompileDraft
) -> Activity | None:
    found = _lender(folder, entry, home)
    if found is None:
        draft.report.add("IL216", f"there is no activity file '{entry}'", at)
        return None
    if found.path.parent == home:
        return None
    activity = _file(folder.reader, folder, found, draft)
    if activity is not None:
        folder.lenders.setdefault(activity.id, found.path.parent.parent)
        draft.borrowed.add(activity.id)
    return activity


def _lender(folder: Folder, entry: str, home: Path) -> Named | None:
    """Find `NN-x.toon`, `x`, `other/NN-x.toon` or `other/activities/NN-x.toon`."""
    lender, _, name = entry.rpartition("/")
    lender = lender.removesuffix("/activities")
    if lender and not FOLDER_ID.fullmatch(lender):
        return None
    location = folder.path.parent / lender / "activities" if lender else home
    reader = folder.reader if lender else folder.own
    files = named_files(reader, location, ("toon", "yaml", "yml"))
    return next((one for one in files if name in (one.path.name, one.path.stem, one.name)), None)


def _workflow(
    source: ActivityWorkflowSource, raw: Mapping[str, Json], activities: tuple[Activity, ...]
) -> Workflow:
    skills = source.skills
    listed = skills.primary if isinstance(skills, SkillsSource) else next(iter(skills or ()), None)
    given = source.recommended_preferences
    return Workflow(
        id=source.id,
        name=source.title or source.name or source.id,
        description=source.description,
        version=source.version,
        activities=activities,
        form="activities",
        kind=kind_of(source.id),
        initial=source.initial_activity,
        category=source.category,
        tags=source.tags,
        author=source.author,
        rules=source.rules,
        variables=tuple(map(read_variable, source.variables)),
        modes=tuple(map(_mode, source.modes)),
        recommended=Preferences(given.recommended_autonomy, given.recommended_risk_policy) if given else None,
        primary_skill=listed,
        artifact_locations=source.artifact_locations,
        about=source.about,
        min_server_version=source.min_server_version,
        extra=_extra(raw),
    )


def _extra(raw: Mapping[str, Json]) -> dict[str, Json]:
    inert = {key: raw[key] for key in ("executionModel",) if key in raw}
    return {**unknown_fields(ActivityWorkflowSource, raw), **inert}


def _mode(source: ModeSource) -> ActivityMode:
    return ActivityMode(
        id=source.id,
        name=source.name,
        activation_variable=source.activation_variable,
        description=source.description,
        recognition=source.recognition,
        skip_activities=source.skip_activities,
        defaults=source.defaults,
        resource=source.resource,
    )


def keep_documents(folder: Folder, workflow: Workflow, draft: CompileDraft) -> None:
    """Keep the folder's own texts, and those it borrows by name."""
    shelves = Shelves(folder)
    for kind in KINDS:
        for text in shelves.own.all(kind):
            folder.keep(text)
            shelves.keep_resources(text, shelves.own)
    for ref, location, activity in _skills(folder, workflow, draft):
        shelves.keep_skill(ref, location, folder.lenders.get(activity))
    for index, mode in enumerate(workflow.modes):
        if mode.resource is not None:
            at = SourceLocation(folder.head) / "modes" / index / "resource"
            shelves.keep_resource(mode.resource, shelves.own, at)


def _skills(
    folder: Folder, workflow: Workflow, draft: CompileDraft
) -> Iterator[tuple[str, SourceLocation, str]]:
    """Every skill that something names, with its place and the activity it stands in."""
    if workflow.primary_skill:
        yield workflow.primary_skill, SourceLocation(folder.head) / "skills" / "primary", ""
    for activity in workflow.activities:
        at = draft.locations[activity.id, "activity", activity.id]
        if activity.primary_skill:
            yield activity.primary_skill, at / "skills" / "primary", activity.id
        for index, ref in enumerate(activity.supporting_skills):
            yield ref, at / "skills" / "supporting" / index, activity.id
        for step in activity.steps():
            if step.skill:
                location = draft.locations.get((activity.id, "step", step.id), at)
                yield step.skill, location / "skill", activity.id


class Shelves:
    """The folder's own shelf and those it may borrow from."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.own = Shelf(folder.own, folder.path)
        self._borrowed: dict[Path, Shelf] = {}
        self._missing: set[str] = set()

    def _fallbacks(self, lender: Path | None = None) -> Iterator[Shelf]:
        """The workflow itself, the one an activity was borrowed from, then meta beside it, then ours."""
        yield self.own
        if lender is not None:
            yield self._shelf(lender)
        yield self._shelf(self._folder.path.parent / META)
        bundled = LIBRARY / "workflows"
        yield self._borrowed.setdefault(
            bundled / META, Shelf(self._folder.reader.within(bundled), bundled / META)
        )

    def _shelf(self, path: Path) -> Shelf:
        return self._borrowed.setdefault(path, Shelf(self._folder.reader, path))

    def keep_skill(self, ref: str, at: SourceLocation, lender: Path | None) -> None:
        if ("skill", ref) in self._folder.documents or ref in self._missing:
            return
        owner, _, name = ref.rpartition("/")
        shelves = self._named(owner) if owner else self._fallbacks(lender)
        for shelf in shelves:
            if (text := shelf.find("skill", name, ref)) is not None:
                self._folder.keep(text)
                self.keep_resources(text, shelf)
                return
        self._missing.add(ref)
        self._folder.report.add("IL206", f"unknown skill '{ref}'", at, self._near(ref))

    def _named(self, owner: str) -> list[Shelf]:
        if not FOLDER_ID.fullmatch(owner):
            return []
        beside = self._shelf(self._folder.path.parent / owner)
        return [beside, *list(self._fallbacks())[2:]] if owner == META else [beside]

    def _near(self, ref: str) -> str:
        return did_you_mean(ref, [name for shelf in self._fallbacks() for name in shelf.names("skill")])

    def keep_resources(self, text: Text, shelf: Shelf) -> None:
        if text.location is None:
            return
        for index, ref in enumerate(text.resources):
            self.keep_resource(ref, shelf, text.location / "resources" / index)

    def keep_resource(self, ref: str, shelf: Shelf, at: SourceLocation) -> None:
        """Keep what a skill or mode refers to; a number alone means the shelf it stands on."""
        owner, _, name = ref.rpartition("/")
        shelves = self._named(owner) if owner else [shelf]
        full = ref if owner or shelf is self.own else f"{shelf.name}/{name}"
        for one in shelves:
            if (text := one.find("resource", name, full)) is not None:
                if owner or shelf is not self.own:
                    self._folder.keep(text)
                return
        self._folder.report.add("IL207", f"unknown resource '{ref}'", at)
