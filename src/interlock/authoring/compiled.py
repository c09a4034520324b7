"""One file or folder becomes one workflow, with its texts, its problems, and what was looked at."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from interlock.authoring.diagnostics import Problem, Report
from interlock.authoring.files import Reader, Stamp
from interlock.authoring.identity import mounted
from interlock.authoring.parsed import Parsed, Spot
from interlock.authoring.sources import Source, Unit
from interlock.authoring.steps import compile_steps
from interlock.core.hashing import workflow_hash
from interlock.core.workflow import Workflow

_MARKS = ("steps", "activities", "initialActivity", "version")


class Compiled(Struct, frozen=True):
    """All that compiling found out. Without a workflow, the problems say why."""

    workflow_id: str
    workflow: Workflow | None
    hash: str
    problems: tuple[Problem, ...]
    texts: Mapping[str, str]
    stamps: tuple[Stamp, ...]


def compile_unit(unit: Unit, source: Source) -> Compiled | None:
    """Compile a candidate; None if it is data of another kind."""
    report, stamps = Report(), dict[str, Stamp]()
    reader = Reader(source.root, report, stamps)
    parsed = reader.parsed(unit.path)
    if parsed is not None and not _looks_like_workflow(parsed, unit, source):
        return None
    workflow = _workflow(unit, source, parsed, report) if parsed is not None else None
    workflow_id = workflow.id if workflow else _declared(parsed) or unit.path.stem
    return Compiled(
        workflow_id=workflow_id,
        workflow=workflow,
        hash=workflow_hash(workflow) if workflow else "",
        problems=tuple(msgspec.structs.replace(one, workflow_id=workflow_id) for one in report.problems()),
        texts={},
        stamps=tuple(stamps.values()),
    )


def _looks_like_workflow(parsed: Parsed, unit: Unit, source: Source) -> bool:
    """Folders hold other data too; a file that was named outright is always meant."""
    value = parsed.value
    return source.path == unit.path or (isinstance(value, Mapping) and any(mark in value for mark in _MARKS))


def _workflow(unit: Unit, source: Source, parsed: Parsed, report: Report) -> Workflow | None:
    made = compile_steps(parsed.value, Spot(parsed), report)
    if made is None:
        return None
    workflow = mounted(made[0], source, Spot(parsed), report)
    if "routines" in unit.path.parts[:-1]:
        workflow = msgspec.structs.replace(workflow, kind="routine")
    return None if report.failed else workflow


def _declared(parsed: Parsed | None) -> str | None:
    value = parsed.value.get("id") if parsed and isinstance(parsed.value, Mapping) else None
    return value if isinstance(value, str) else None
