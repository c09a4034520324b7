"""One file or folder becomes one workflow, with its texts, its problems, and what was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.compile.folders import Folder, compile_folder
from interlock.authoring.compile.mounts import check_id, mounted
from interlock.authoring.compile.steps import compile_steps
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.diagnostics.diagnostic import Diagnostic, Mention
from interlock.authoring.lint.structure import lint
from interlock.authoring.lint.triggers import mentions_of
from interlock.authoring.sources.listing import Listed, listed
from interlock.authoring.sources.reader import SourceReader
from interlock.authoring.sources.sources import HEADS, Source, Unit
from interlock.authoring.sources.stamps import Stamp
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.core.definition.workflow import Form, Workflow
from interlock.core.hashing import workflow_hash
from interlock.core.values import Json

_MARKS = ("steps", "activities", "initialActivity", "version")


class Compiled(Struct, frozen=True):
    """All that compiling found out. Without a workflow, the problems say why; without an id it is none."""

    workflow_id: str
    workflow: Workflow | None
    entry: Listed | None
    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str]
    stamps: tuple[Stamp, ...]
    mentions: tuple[Mention, ...] = ()


def compile_unit(unit: Unit, source: Source) -> Compiled:
    """Compile a candidate."""
    report, stamps = Report(), dict[str, Stamp]()
    reader = SourceReader(source.root, report, stamps)
    parsed = reader.parsed(_head(unit))
    if parsed is not None and not _looks_like_workflow(parsed, unit, source):
        return Compiled("", None, None, (), {}, tuple(stamps.values()))
    folder = Folder(reader, _home(unit), parsed) if parsed else None
    workflow = _workflow(unit, source, folder) if folder else None
    workflow_id = workflow.id if workflow else _declared(parsed) or unit.path.stem
    return Compiled(
        workflow_id=workflow_id,
        workflow=workflow,
        entry=listed(workflow, workflow_hash(workflow), source.kind) if workflow else None,
        diagnostics=tuple(
            msgspec.structs.replace(one, workflow_id=workflow_id) for one in report.diagnostics()
        ),
        texts=folder.texts if folder and workflow else {},
        stamps=tuple(stamps.values()),
        mentions=tuple(folder.mentions) if folder and workflow else (),
    )


def _head(unit: Unit) -> Path:
    if unit.form != "folder":
        return unit.path
    return next(unit.path / name for name in HEADS if (unit.path / name).is_file())


def _home(unit: Unit) -> Path:
    """Where the files beside the head lie; a legacy head lies beside its folder."""
    return unit.path.with_suffix("") if unit.form == "legacy" else unit.path


def _looks_like_workflow(parsed: Parsed, unit: Unit, source: Source) -> bool:
    """Folders hold other data too; a head file, and a file that was named outright, are always meant."""
    value = parsed.value
    return (
        unit.form == "folder"
        or source.path == unit.path
        or (isinstance(value, Mapping) and any(mark in value for mark in _MARKS))
    )


def _workflow(unit: Unit, source: Source, folder: Folder) -> Workflow | None:
    head, report = SourceLocation(folder.head), folder.report
    value = folder.head.value
    form: Form = "steps" if unit.form == "file" or _has_steps(value) else "activities"
    check_id(value.get("id") if isinstance(value, Mapping) else None, form, head, report)
    made = compile_steps(folder.head.value, head, report) if unit.form == "file" else compile_folder(folder)
    if made is None:
        return None
    lint(made[0], head, made[1])
    folder.mentions.extend(mentions_of(made[0], head, made[1]))
    workflow = mounted(made[0], source, head, report)
    if "routines" in unit.path.parts[:-1]:
        workflow = msgspec.structs.replace(workflow, kind="routine")
    return None if report.failed else workflow


def _has_steps(value: Json) -> bool:
    return isinstance(value, Mapping) and "steps" in value


def _declared(parsed: Parsed | None) -> str | None:
    value = parsed.value.get("id") if parsed and isinstance(parsed.value, Mapping) else None
    return value if isinstance(value, str) else None
