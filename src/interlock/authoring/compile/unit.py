"""Compiles one file or folder to a workflow, with its texts, diagnostics, and stamps of the files read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.compile.documents import Folder
from interlock.authoring.compile.folders import compile_folder
from interlock.authoring.compile.ids import check_id, is_reserved, mounted, mounted_id
from interlock.authoring.compile.items.checks import defined, read_definitions
from interlock.authoring.compile.steps import compile_steps
from interlock.authoring.compile.templates import Templates
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.diagnostics.diagnostic import Diagnostic, Mention
from interlock.authoring.filetypes.source_file import DEFAULTS, SETTINGS_FILE, SourceSettings
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.lint.structure import lint
from interlock.authoring.lint.triggers import mentions_of
from interlock.authoring.sources.listing import Listed, listed
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.sources.sources import Source, Unit
from interlock.authoring.sources.stamps import Stamp
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Form, Workflow
from interlock.core.hashing import workflow_hash
from interlock.core.values import Json

_MARKS = ("steps", "activities", "initialActivity", "version")
_DECLARED_ID = re.compile(r"""^(?:id|\s*\{?\s*"id")\s*:\s*["']?(?P<id>[A-Za-z0-9][\w.-]*)""", re.MULTILINE)


class Compiled(Struct, frozen=True):
    """The result of compiling a unit.

    Without a workflow, the diagnostics say why; without an id, the unit is not meant to be a workflow.
    """

    workflow_id: str
    workflow: Workflow | None
    entry: Listed | None
    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str]
    stamps: tuple[Stamp, ...]
    mentions: tuple[Mention, ...] = ()
    owns_id: bool = True


def compile_unit(unit: Unit, source: Source) -> Compiled:
    """Compile a file or folder that may be a workflow."""
    report, stamps = Report(), dict[str, Stamp]()
    reader = SourceReader(source.root, report, stamps)
    head = reader.parsed(unit.head)
    fields = head.value if head is not None and isinstance(head.value, Mapping) else {}
    # A folder contains other data too; a head file, and a file that was named itself, are always meant.
    is_meant = unit.form == "folder" or source.path == unit.path or any(mark in fields for mark in _MARKS)
    if head is not None and not is_meant:
        return Compiled("", None, None, (), {}, tuple(stamps.values()))
    folder = Folder(reader, unit.home, head, *_settings(source, reader)) if head else None
    workflow = _compile_workflow(unit, source, folder) if folder else None
    if workflow is not None and source.checks is not None:
        workflow = _with_project_checks(workflow, source.checks, reader)
    declared = fields.get("id") if head is not None else _id_in(reader.text(unit.head) or "")
    is_declared = isinstance(declared, str) and declared != ""
    declared_id = str(declared) if is_declared else unit.path.stem
    workflow_id = workflow.id if workflow else mounted_id(declared_id, _form(unit, fields), source)
    texts = folder.texts if folder and workflow else {}
    return Compiled(
        workflow_id=workflow_id,
        workflow=workflow,
        entry=listed(workflow, workflow_hash(workflow), source.kind, texts) if workflow else None,
        diagnostics=tuple(
            _attributed(diagnostic, workflow_id, reader, unit) for diagnostic in report.diagnostics()
        ),
        texts=texts,
        stamps=tuple(stamps.values()),
        mentions=tuple(folder.mentions) if folder and workflow else (),
        owns_id=is_declared and not is_reserved(workflow_id, source),
    )


def _settings(source: Source, reader: SourceReader) -> tuple[SourceSettings, SourceLocation | None]:
    """Read the settings at the top of the source, with their location; without the file, the defaults."""
    path = source.root / SETTINGS_FILE
    parsed = reader.parsed(path) if reader.has(path) else None
    if parsed is None:
        return DEFAULTS, None
    at = SourceLocation(parsed)
    return read_as(SourceSettings, parsed.value, at, reader.report) or DEFAULTS, at


def _with_project_checks(workflow: Workflow, path: Path, reader: SourceReader) -> Workflow | None:
    """Give the checks that a workflow only names the commands of the project; a changed file is noticed."""
    inside = reader.within(path.parent)
    if all(check.run for check in workflow.checks()) or not inside.has(path):
        return workflow
    parsed = inside.parsed(path)
    if parsed is not None:
        workflow = defined(workflow, read_definitions(parsed.value, SourceLocation(parsed), reader.report))
    return None if reader.report.failed else workflow


def _attributed(diagnostic: Diagnostic, workflow_id: str, reader: SourceReader, unit: Unit) -> Diagnostic:
    """Name the workflow, also in the message if the file belongs to another workflow."""
    message, file = diagnostic.message, reader.root / diagnostic.file
    if file != unit.head and not file.is_relative_to(unit.home):
        message += f", as '{workflow_id}' uses it"
    return msgspec.structs.replace(diagnostic, workflow_id=workflow_id, message=message)


def _form(unit: Unit, fields: Mapping[str, Json]) -> Form:
    return "steps" if unit.form == "file" or "steps" in fields else "activities"


def _id_in(text: str) -> str | None:
    """Return the id that a file declares which cannot be parsed, so that it still owns it."""
    declaration = _DECLARED_ID.search(text)
    return declaration["id"] if declaration else None


def _compile_workflow(unit: Unit, source: Source, folder: Folder) -> Workflow | None:
    at, report = SourceLocation(folder.head), folder.report
    fields = folder.head.value if isinstance(folder.head.value, Mapping) else {}
    check_id(fields.get("id"), _form(unit, fields), at, report)
    if unit.form == "file":
        templates = Templates(folder.reader, unit.path.parent)
        compiled = compile_steps(folder.head.value, at, report, templates=templates, settings=folder.settings)
    else:
        compiled = compile_folder(folder)
    if compiled is None:
        return None
    workflow, draft = compiled
    lint(workflow, at, draft)
    folder.mentions.extend(mentions_of(workflow, at, draft))
    is_own = at.parsed.strictness != "lenient"
    workflow = msgspec.structs.replace(mounted(workflow, source, at, report), declares_sets=is_own)
    if "routines" in unit.path.parts[:-1]:
        workflow = msgspec.structs.replace(workflow, kind="routine")
    return None if report.failed else workflow
