"""Compiles a workflow folder: the head file, its activities or steps, and the documents beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from interlock.authoring.compile.activities import compile_activity, read_skills, with_inlined_loops
from interlock.authoring.compile.braces import with_double_braces
from interlock.authoring.compile.documents import (
    Folder,
    NamedFile,
    Text,
    keep_documents,
    named_files,
    with_lender,
)
from interlock.authoring.compile.ids import FOLDER_ID
from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.compile.steps import (
    UNREAD,
    check_header,
    compile_steps,
    preferences_of,
    read_variables,
    workflow_kind,
)
from interlock.authoring.compile.templates import Templates
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.activity_file import ActivityWorkflowSource
from interlock.authoring.filetypes.type_check import compiled_as, kept_fields, read_as, read_partly
from interlock.authoring.inference.beginnings import with_beginning
from interlock.authoring.inference.places import with_places
from interlock.authoring.inference.sets import with_inferred_sets
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.text.formats import FORMATS, parse_text
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import as_step, read_page
from interlock.core.definition.workflow import Activity, ActivityMode, Document, Workflow
from interlock.core.hashing import digest_of
from interlock.core.values import Json

_STRUCTURED = ("toon", "yaml", "yml")
KINDS = ("technique", "action", "checkpoint", "loop", "routine", "decision")


def compile_folder(folder: Folder) -> tuple[Workflow, CompileDraft] | None:
    """Compile a folder of either form: steps or activities."""
    raw = folder.head.value
    if not isinstance(raw, Mapping) or "steps" not in raw:
        return _compile_activities(folder, raw)
    pages = _step_pages(folder.own, folder.path / "steps")
    templates = Templates(folder.reader, folder.path)
    compiled = compile_steps(
        raw, SourceLocation(folder.head), folder.report, pages, templates, folder.settings
    )
    if compiled is not None:
        _report_unused(pages, compiled[1], folder.report)
    return compiled


def _step_pages(reader: SourceReader, folder: Path) -> dict[str, Parsed]:
    """Read the Markdown files of a folder, by the step they are named after."""
    pages: dict[str, Parsed] = {}
    for file in named_files(reader, folder, ("md",)):
        text = reader.text(file.path)
        if text is not None:
            pages[file.path.stem] = as_step(read_page(reader.shown(file.path), text, reader.report))
    return pages


def _report_unused(pages: Mapping[str, Parsed], draft: CompileDraft, report: Report) -> None:
    used = {step for _, kind, step in draft.locations if kind == "step"}
    for name, page in pages.items():
        if name not in used:
            report.add("IL217", f"there is no step '{name}'", SourceLocation(page), did_you_mean(name, used))


def _compile_activities(folder: Folder, raw: Json) -> tuple[Workflow, CompileDraft] | None:
    at, report = SourceLocation(folder.head), folder.report
    if _is_newer(folder, raw):
        text = "this folder is in a newer format: steps with a kind, techniques, exits joined by a graph"
        report.add("IL111", text, at)
        return None
    source = read_as(ActivityWorkflowSource, raw, at, report)
    if source is None or not isinstance(raw, Mapping):
        readable, rest = read_partly(ActivityWorkflowSource, raw, at, **UNREAD), Report()
        if readable is not None:
            list(_local(folder, readable, _home(folder, readable), _draft(folder, readable, rest)))
        report.add_independent(rest)
        return None
    if source.title is None and source.name is None:
        report.add("IL101", "the field 'title' is missing", at)
    check_header(source.version, source.min_server_version, at, report)
    draft, home = _draft(folder, source, report), _home(folder, source)
    known: dict[str, Activity] = {}
    for activity in (*_local(folder, source, home, draft), *_listed(folder, source, home, draft)):
        known.setdefault(activity.id, activity)
    if not known and not report.failed:
        report.add("IL106", "the workflow has no activities", at)
    workflow = with_double_braces(_workflow(source, raw, tuple(known.values()), draft))
    workflow = with_places(with_inferred_sets(workflow, draft), draft)
    workflow = with_inlined_loops(workflow, draft)
    workflow = with_beginning(workflow, at, draft)
    keep_documents(folder, workflow, draft)
    return msgspec.structs.replace(workflow, documents=tuple(folder.documents.values())), draft


def _home(folder: Folder, source: ActivityWorkflowSource) -> Path:
    return folder.path / (source.activities_dir or "activities")


def _draft(folder: Folder, source: ActivityWorkflowSource, report: Report) -> CompileDraft:
    return CompileDraft(
        report=report,
        functions=source.function_definitions,
        assessments={assessment.id: assessment for assessment in source.assessments},
        title_field="name",
        templates=Templates(folder.reader, folder.path),
        settings=folder.settings,
        settings_at=folder.settings_at,
    )


def _is_newer(folder: Folder, raw: Json) -> bool:
    """Recognize the generation of activity folders after ours: by its graph, or by steps that have a kind."""
    if not isinstance(raw, Mapping):
        return False
    if isinstance(raw.get("graph"), Mapping):
        return True
    for file in named_files(folder.own, folder.path / "activities", _STRUCTURED):
        text = folder.own.text(file.path)
        parsed = parse_text(file.path.name, text, FORMATS[f".{file.ending}"], Report()) if text else None
        activity = parsed.value if parsed is not None else None
        steps = activity.get("steps") if isinstance(activity, Mapping) else None
        if isinstance(steps, Sequence) and steps:  # one file tells: generations are not mixed in a folder
            return isinstance(steps[0], Mapping) and steps[0].get("kind") in KINDS
    return False


def _local(
    folder: Folder, source: ActivityWorkflowSource, home: Path, draft: CompileDraft
) -> Iterator[Activity]:
    """Yield the activities of the folder, those with numbers first, then as the head file lists them."""
    files = named_files(folder.own, home, _STRUCTURED)
    order = {name: index for index, name in enumerate(source.activities) if isinstance(name, str)}
    ids = set[str]()
    for file in sorted(files, key=lambda file: -1 if file.number else order.get(file.name, len(order))):
        activity = _compile_file(folder.own, folder, file, draft)
        if activity is None:
            continue
        if activity.id in ids:
            location = draft.locations[activity.id, "activity", activity.id] / "id"
            draft.report.add("IL201", f"duplicate activity '{activity.id}'", location)
        ids.add(activity.id)
        yield activity


def _compile_file(
    reader: SourceReader, folder: Folder, file: NamedFile, draft: CompileDraft
) -> Activity | None:
    text = reader.text(file.path)
    if text is None:
        return None
    parsed = parse_text(reader.shown(file.path), text, FORMATS[f".{file.ending}"], reader.report)
    if parsed is None:
        draft.unusable.add(file.name)
        return None
    pages = _step_pages(reader, file.path.parent / file.name)
    activity = compile_activity(parsed.value, SourceLocation(parsed), draft.for_activity(pages))
    if activity is None:
        draft.unusable.add(file.name)
        return None
    _report_unused(pages, draft, reader.report)
    digest = None
    if file.ending == "toon":  # agents may ask for the file as it was written
        digest = digest_of(text.encode())
        document = Document("activity", activity.id, activity.id, digest, activity.name, activity.version)
        folder.keep(Text(document, text))
    return msgspec.structs.replace(activity, artifact_prefix=file.number or None, document=digest)


def _listed(
    folder: Folder, source: ActivityWorkflowSource, home: Path, draft: CompileDraft
) -> Iterator[Activity]:
    """Yield the activities that the head file contains or borrows from other workflows."""
    for index, entry in enumerate(source.activities):
        at = SourceLocation(folder.head) / "activities" / index
        if isinstance(entry, Mapping):
            activity = compile_activity(entry, at, draft.for_activity({}))
            draft.unusable.update([str(entry.get("id"))] if activity is None else [])
        elif isinstance(entry, str):
            activity = _borrow(folder, entry, home, at, draft)
        else:
            draft.report.add("IL102", "an activity must be a reference or an object", at)
            continue
        if activity is not None:
            yield activity


def _borrow(
    folder: Folder, entry: str, home: Path, at: SourceLocation, draft: CompileDraft
) -> Activity | None:
    """Compile an activity that is named as `NN-x.toon`, `x`, `other/NN-x.toon` or `other/activities/x`."""
    lender, _, name = entry.rpartition("/")
    lender = lender.removesuffix("/activities")
    files: list[NamedFile] = []
    if not lender:
        files = named_files(folder.own, home, _STRUCTURED)
    elif FOLDER_ID.fullmatch(lender):
        files = named_files(folder.reader, folder.path.parent / lender / "activities", _STRUCTURED)
    file = next((file for file in files if name in (file.path.name, file.path.stem, file.name)), None)
    if file is None:
        draft.report.add("IL216", f"there is no activity file '{entry}'", at)
        return None
    if file.path.parent == home:
        return None
    activity = _compile_file(folder.reader, folder, file, draft)
    if activity is None:
        return None
    draft.borrowed.add(activity.id)
    return with_lender(folder, activity, file.path.parent.parent)


def _workflow(
    source: ActivityWorkflowSource,
    raw: Mapping[str, Json],
    activities: tuple[Activity, ...],
    draft: CompileDraft,
) -> Workflow:
    skills = read_skills(source.skills)
    places = raw.get("artifactLocations")
    return compiled_as(
        Workflow,
        source,
        name=source.title or source.name or source.id,
        activities=activities,
        form="activities",
        kind=workflow_kind(source.id),
        initial=source.initial_activity,
        variables=read_variables(source.variables, draft),
        modes=msgspec.convert(source.modes, tuple[ActivityMode, ...], from_attributes=True),
        recommended=preferences_of(source.recommended_preferences),
        primary_skill=skills.primary,
        supporting_skills=skills.supporting,
        artifact_locations=places if isinstance(places, Mapping) else {},
        extra=kept_fields(ActivityWorkflowSource, raw),
    )
