"""Compiles a step workflow: its one list of items becomes the activity `main`, which ends the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

import msgspec

from interlock import __version__
from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.items.draft import CompileDraft
from interlock.authoring.compile.items.lists import compile_items
from interlock.authoring.compile.items.step import compile_step
from interlock.authoring.compile.templates import Templates, expand, filled_features
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.source_file import DEFAULTS, SourceSettings
from interlock.authoring.filetypes.step_file import Recommended, StepWorkflowSource, VariableSource
from interlock.authoring.filetypes.type_check import compiled_as, kept_fields, read_as, read_partly
from interlock.authoring.inference.sets import with_inferred_sets
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.core.definition.workflow import Activity, Kind, Step, Variable, Workflow
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json

MAIN = "main"
PROBE = "wr.templates.capability_probe"
UNREAD: Mapping[str, Json] = {"id": "unread", "name": "unread", "version": "0.0.0"}
SEMVER = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")


def compile_steps(
    raw: Json,
    at: SourceLocation,
    report: Report,
    pages: Mapping[str, Parsed] = MappingProxyType({}),
    templates: Templates | None = None,
    settings: SourceSettings = DEFAULTS,
) -> tuple[Workflow, CompileDraft] | None:
    """Compile the value of a step workflow file; None if something in it cannot be run."""
    source = read_as(StepWorkflowSource, raw, at, report)
    _check_redundant_lines(raw, at, report)
    if source is None or not isinstance(raw, Mapping):
        readable, rest = read_partly(StepWorkflowSource, raw, at, **UNREAD), Report()
        if readable is not None:
            draft = _draft(readable, at, rest, pages, templates, settings)
            compile_items(list(readable.steps), at / "steps", draft)
        report.add_independent(rest)
        return None
    check_header(source.version, source.min_server_version, at, report)
    draft = _draft(source, at, report, pages, templates, settings)
    probes = tuple(_probes(source, at, draft))
    items = (*probes, *compile_items(list(source.steps), at / "steps", draft))
    if not items and not report.failed:
        report.add("IL306", "every step is the body of a loop that contains itself", at / "steps")
    if report.failed:
        return None
    workflow = _workflow(source, raw, Activity(MAIN, source.name, items), at, draft)
    return with_inferred_sets(workflow, draft), draft


def _draft(
    source: StepWorkflowSource,
    at: SourceLocation,
    report: Report,
    pages: Mapping[str, Parsed],
    templates: Templates | None,
    settings: SourceSettings,
) -> CompileDraft:
    return CompileDraft(
        report=report,
        role=source.agent_role,
        functions=source.function_definitions,
        guidance="\n".join(source.meta_guidance),
        assessments={assessment.id: assessment for assessment in source.assessments},
        features=tuple(filled_features(source.features, at / "features", report)),
        capabilities=source.capabilities,
        pages=pages,
        templates=templates or Templates(),
        settings=settings,
    )


def check_header(version: str, required_server: str | None, at: SourceLocation, report: Report) -> None:
    """Report a version that is not three numbers, and a workflow that needs a newer server."""
    if not SEMVER.fullmatch(version):
        report.add("IL107", f"'{version}' is not a version such as 1.2.0", at / "version")
    if required_server is not None and _numbers(required_server) > _numbers(__version__):
        message = f"requires server {required_server}, but this is {__version__}"
        report.add("IL406", message, at / "minServerVersion")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def _check_redundant_lines(raw: Json, at: SourceLocation, report: Report) -> None:
    for name in ("preconditions", "clarificationPrompts", "metaGuidance"):
        lines = raw.get(name) if isinstance(raw, Mapping) else None
        if not isinstance(lines, list):
            continue
        for index, line in enumerate(lines):
            if line == "":
                report.add("IL109", "this entry is empty", at / name / index)
            elif line in lines[:index]:
                report.add("IL109", "duplicate entry", at / name / index)


def _probes(source: StepWorkflowSource, at: SourceLocation, draft: CompileDraft) -> Iterator[Step]:
    """Yield a step for each required capability, which probes it before anything else."""
    for capability, need in sorted(source.capabilities.items()):
        if need != "required":
            continue
        name = f"probe-{capability.replace('_', '-')}"
        call: dict[str, Json] = {"templateId": PROBE, "args": {"capability": capability}}
        probe: dict[str, Json] = {"id": name, "templateCall": call}
        expansion = expand(probe, at / "capabilities", draft.templates, draft.report)
        for raw in expansion.items if expansion else ():
            step = compile_step({**raw, "id": name}, at / "capabilities", draft)
            if step is not None:
                yield msgspec.structs.replace(step, provenance=PROBE)


def _workflow(
    source: StepWorkflowSource,
    raw: Mapping[str, Json],
    main: Activity,
    at: SourceLocation,
    draft: CompileDraft,
) -> Workflow:
    return compiled_as(
        Workflow,
        source,
        activities=(main,),
        form="steps",
        kind=source.kind or workflow_kind(source.id),
        initial=MAIN,
        rules=source.meta_guidance,
        clarifications=source.clarification_prompts,
        variables=read_variables(source.variables, draft),
        recommended=preferences_of(source.recommended_preferences),
        references=tuple(_references(source, at, draft)),
        extra=kept_fields(StepWorkflowSource, raw),
    )


def preferences_of(recommended: Recommended | None) -> Preferences | None:
    """Return how far the author would let a run go, if the file says it."""
    if recommended is None:
        return None
    return Preferences(recommended.recommended_autonomy, recommended.recommended_risk_policy)


def workflow_kind(workflow_id: str) -> Kind:
    return "routine" if workflow_id.rpartition(".")[2].startswith("routine-") else "workflow"


def _references(
    source: StepWorkflowSource, at: SourceLocation, draft: CompileDraft
) -> Iterator[Mapping[str, Json]]:
    """Yield references as written; a built-in one includes its text, so that the hash covers it."""
    brought = (reference for routine, _ in draft.routines for reference in routine.references)
    for index, reference in enumerate(dict.fromkeys((*source.references, *brought))):
        written: dict[str, Json] = msgspec.to_builtins(reference)
        fields = {key: value for key, value in written.items() if value not in ("", None)}
        built_in = next((ref for ref in (reference.source, reference.id) if ref.startswith("wr.refs.")), None)
        if built_in is not None and (pack := packs.references().get(built_in)) is not None:
            fields["text"] = pack.text
        elif built_in is not None:
            next_action = did_you_mean(built_in, packs.references())
            location = at / "references" / index
            draft.report.add("IL213", f"unknown reference '{built_in}'", location, next_action)
        yield fields


def read_variables(declared: Sequence[VariableSource], draft: CompileDraft) -> tuple[Variable, ...]:
    """Read the variables that a workflow declares, and those that its routines bring along."""
    known = {variable.name: variable for variable in declared}
    for routine, at in draft.routines:
        for variable in routine.variables:
            if known.setdefault(variable.name, variable) != variable:
                message = f"'{variable.name}' of '{routine.id}' is declared otherwise elsewhere, which holds"
                draft.report.add("IL222", message, at)
    return tuple(map(read_variable, known.values()))


def read_variable(source: VariableSource) -> Variable:
    """Read one variable; a list of values that are all of one type states that type too."""
    kind = _type_of(source.values) if isinstance(source.type, msgspec.UnsetType) else source.type
    default = source.default_value
    if isinstance(default, str) and source.type in ("array", "object"):
        with suppress(msgspec.DecodeError):  # the cells of a TOON table hold lists and objects as text
            decoded: Json = msgspec.json.decode(default)
            default = decoded if isinstance(decoded, (list, dict)) else default
    return compiled_as(
        Variable,
        source,
        type=kind or "string",
        typed=kind is not None,
        default=None if isinstance(default, msgspec.UnsetType) else default,
        has_default=not isinstance(default, msgspec.UnsetType),
    )


def _type_of(values: Sequence[str | int | float | bool]) -> str | None:
    """Return the type that all values have; None if there are none, or several types."""
    kinds = {
        "boolean" if isinstance(it, bool) else "string" if isinstance(it, str) else "number" for it in values
    }
    return kinds.pop() if len(kinds) == 1 else None
