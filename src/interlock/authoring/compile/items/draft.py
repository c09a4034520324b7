"""What is known while a workflow is compiled: the context of an item, and where each was written."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.templates import Templates
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.filetypes.output_source import AssessmentSource
from interlock.authoring.filetypes.prompt_source import FunctionSource
from interlock.authoring.filetypes.source_file import DEFAULTS, SourceSettings
from interlock.authoring.filetypes.step_file import StepWorkflowSource
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.authoring.text.markdown import titled
from interlock.core.definition.checks import CommandCheck
from interlock.core.definition.workflow import Capability, Need, Step
from interlock.core.values import Json

ITEM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class CompileDraft(Struct):
    """The context in which an item is compiled, and the source location of each item compiled so far.

    Inside a template call, `throughout` is guidance for each of its steps and `at_first` for the first one;
    `calls` are the calls around the item. `routines` are all that the workflow calls, with their calls.
    `unusable` are the names of the files whose activities are not known because of other errors.
    `listed_gates` are the gates that an activity lists beside its steps, with the loop that lists each, and
    `check_steps` the steps with the checks of gates, by activity and gate.
    """

    report: Report
    role: str | None = None
    functions: tuple[FunctionSource, ...] = ()
    guidance: str = ""
    assessments: Mapping[str, AssessmentSource] = field(default_factory=dict)
    features: tuple[packs.FeaturePack, ...] = ()
    title_field: str = "title"
    locations: dict[tuple[str, ...], SourceLocation] = field(default_factory=dict)
    activity: str = "main"
    id_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    loop_bodies: dict[str, tuple[Mapping[str, Json], SourceLocation]] = field(default_factory=dict)
    bindings: dict[str, list[str]] = field(default_factory=dict)
    enclosing_loops: tuple[str, ...] = ()
    pages: Mapping[str, Parsed] = field(default_factory=dict)
    borrowed: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    capabilities: Mapping[Capability, Need] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    throughout: tuple[str, ...] = ()
    at_first: list[str] = field(default_factory=list)
    routines: list[tuple[StepWorkflowSource, SourceLocation]] = field(default_factory=list)
    templates: Templates = field(default_factory=Templates)
    settings: SourceSettings = DEFAULTS
    settings_at: SourceLocation | None = None
    listed_gates: dict[str, dict[str, str]] = field(default_factory=dict)
    check_steps: dict[tuple[str, str], Step] = field(default_factory=dict)
    checks: dict[str, CommandCheck] = field(default_factory=dict)

    def for_activity(self, pages: Mapping[str, Parsed]) -> CompileDraft:
        """Return a draft for another activity of the same workflow, without the ids of the last one."""
        return msgspec.structs.replace(self, id_counts={}, bindings={}, loop_bodies={}, pages=pages)

    def with_page(self, raw: Json, at: SourceLocation) -> tuple[Json, SourceLocation]:
        """Add the fields and the text of the Markdown file that is named after the step."""
        fields: Json = {"id": raw} if isinstance(raw, str) else raw
        step_id = fields.get("id") if isinstance(fields, Mapping) else None
        page = self.pages.get(step_id) if isinstance(step_id, str) else None
        if page is None or not isinstance(fields, Mapping) or not isinstance(page.value, Mapping):
            return raw, at
        title = {} if "name" in fields else {"title": titled(str(step_id))}
        merged: dict[str, Json] = {**title, **page.value, **fields}
        return merged, at if len(fields) > 1 else SourceLocation(page)


def unique_id(kind: str, item_id: str, at: SourceLocation, draft: CompileDraft) -> str:
    """Take an id once; a second step of the same id is `id#2` (rule 37), a second gate or loop an error."""
    if not ITEM_ID.fullmatch(item_id):
        draft.report.add("IL401", f"the id '{item_id}' has characters that are not allowed in ids", at / "id")
    count = draft.id_counts[kind, item_id] = draft.id_counts.get((kind, item_id), 0) + 1
    if count > 1:
        code = "IL215" if kind == "step" else "IL201"
        draft.report.add(code, f"duplicate {kind} '{item_id}'", at / "id")
        item_id = f"{item_id}#{count}"
    draft.locations.setdefault((draft.activity, kind, item_id), at)
    return item_id
