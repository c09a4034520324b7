"""Compiles a step workflow: one list of items becomes the one activity `main`, which ends the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from interlock import __version__
from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.items import CompileDraft, compile_items, compile_step
from interlock.authoring.compile.templates import expand
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import ReferenceSource, StepWorkflowSource, VariableSource
from interlock.authoring.filetypes.type_check import read_as, unknown_fields
from interlock.authoring.text.locations import Parsed, SourceLocation
from interlock.core.definition.workflow import Activity, Kind, Step, Variable, Workflow
from interlock.core.run.preferences import Preferences
from interlock.core.values import Json

MAIN = "main"
PROBE = "wr.templates.capability_probe"
SEMVER = re.compile(r"\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
_INERT = ("examples", "extensionPoints", "modelTier", "metricsProfile", "validatedAgainstSpecVersion")


def compile_steps(
    raw: Json, at: SourceLocation, report: Report, words: Mapping[str, Parsed] = MappingProxyType({})
) -> tuple[Workflow, CompileDraft] | None:
    """Compile the value of a step workflow file; None if something in it cannot be run."""
    source = read_as(StepWorkflowSource, raw, at, report)
    _check_repeats(raw, at, report)
    if source is None or not isinstance(raw, Mapping):
        return None
    check_header(source.version, source.min_server_version, at, report)
    draft = _draft(source, at, report)
    draft.words = words
    probes = tuple(_probes(source, at, draft))
    items = (*probes, *compile_items(list(source.steps), at / "steps", draft))
    if not items and not report.failed:
        report.add("IL306", "every step is the body of a loop that is one itself", at / "steps")
    if report.failed:
        return None
    return _workflow(source, raw, Activity(MAIN, source.name, items), at, report), draft


def check_header(version: str, needed: str | None, at: SourceLocation, report: Report) -> None:
    if not SEMVER.fullmatch(version):
        report.add("IL107", f"'{version}' is not a version such as 1.2.0", at / "version")
    if needed is not None and _numbers(needed) > _numbers(__version__):
        message = f"needs server {needed}, this is {__version__}"
        report.add("IL406", message, at / "minServerVersion")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def _check_repeats(raw: Json, at: SourceLocation, report: Report) -> None:
    for name in ("preconditions", "clarificationPrompts", "metaGuidance"):
        lines = raw.get(name) if isinstance(raw, Mapping) else None
        for index, line in enumerate(lines if isinstance(lines, list) else ()):
            if line == "":
                report.add("IL109", "this entry is empty", at / name / index)
            elif isinstance(lines, list) and line in lines[:index]:
                report.add("IL109", "this entry stands twice", at / name / index)


def _draft(source: StepWorkflowSource, at: SourceLocation, report: Report) -> CompileDraft:
    return CompileDraft(
        report=report,
        role=source.agent_role,
        functions=source.function_definitions,
        prose="\n".join(source.meta_guidance),
        assessments={one.id: one for one in source.assessments},
        features=tuple(_features(source, at / "features", report)),
    )


def _features(source: StepWorkflowSource, at: SourceLocation, report: Report) -> Iterator[packs.FeaturePack]:
    for index, ref in enumerate(source.features):
        pack = packs.features().get(ref)
        if pack is None:
            fix = did_you_mean(ref, packs.features())
            report.add("IL212", f"unknown feature '{ref}'", at / index, fix)
        else:
            yield pack


def _probes(source: StepWorkflowSource, at: SourceLocation, draft: CompileDraft) -> Iterator[Step]:
    """A required capability is probed before anything else."""
    for capability, need in sorted(source.capabilities.items()):
        if need != "required":
            continue
        name = f"probe-{capability.replace('_', '-')}"
        call: dict[str, Json] = {"templateId": PROBE, "args": {"capability": capability}}
        for raw, provenance in expand({"id": name, "templateCall": call}, at / "capabilities", draft.report):
            step = compile_step({**raw, "id": name}, at / "capabilities", draft)
            if step is not None:
                yield msgspec.structs.replace(step, provenance=provenance)


def _workflow(
    source: StepWorkflowSource, raw: Mapping[str, Json], main: Activity, at: SourceLocation, report: Report
) -> Workflow:
    return Workflow(
        id=source.id,
        name=source.name,
        description=source.description,
        version=source.version,
        activities=(main,),
        form="steps",
        kind=source.kind or kind_of(source.id),
        initial=MAIN,
        category=source.category,
        tags=source.tags,
        author=source.author,
        rules=source.meta_guidance,
        preconditions=source.preconditions,
        clarifications=source.clarification_prompts,
        variables=tuple(map(read_variable, source.variables)),
        recommended=_recommended(source),
        capabilities=source.capabilities,
        about=source.about,
        references=tuple(_references(source, at, report)),
        min_server_version=source.min_server_version,
        extra={**unknown_fields(StepWorkflowSource, raw), **{key: raw[key] for key in _INERT if key in raw}},
    )


def kind_of(workflow_id: str) -> Kind:
    return "routine" if workflow_id.rpartition(".")[2].startswith("routine-") else "workflow"


def _recommended(source: StepWorkflowSource) -> Preferences | None:
    if (given := source.recommended_preferences) is None:
        return None
    return Preferences(given.recommended_autonomy, given.recommended_risk_policy)


def _references(
    source: StepWorkflowSource, at: SourceLocation, report: Report
) -> Iterator[Mapping[str, Json]]:
    """Pointers as written; a built-in reference carries its text, so that the hash covers it."""
    for index, one in enumerate(source.references):
        yield {**_shown(one), **_embedded(one, at / "references" / index, report)}


def _shown(one: ReferenceSource) -> dict[str, Json]:
    made: dict[str, Json] = msgspec.to_builtins(one)
    return {key: value for key, value in made.items() if value not in ("", None)}


def _embedded(one: ReferenceSource, at: SourceLocation, report: Report) -> dict[str, Json]:
    ref = next((name for name in (one.source, one.id) if name.startswith("wr.refs.")), None)
    if ref is None:
        return {}
    pack = packs.references().get(ref)
    if pack is None:
        report.add("IL213", f"unknown reference '{ref}'", at, did_you_mean(ref, packs.references()))
        return {}
    return {"text": pack.text}


def read_variable(source: VariableSource) -> Variable:
    default = source.default_value
    return Variable(
        name=source.name,
        type=source.type,
        description=source.description,
        default=None if isinstance(default, msgspec.UnsetType) else default,
        has_default=not isinstance(default, msgspec.UnsetType),
        required=source.required,
    )
