"""Every way of asking for a structured output compiles to one thing: contracts (rule 31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.criteria import check_schema
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.step_file import AssessmentSource, OutputSource, StepSource
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import Contract, Followup
from interlock.core.values import Json

LOOP_CONTROL = "wr.contracts.loop_control"
ASSESSMENT = "wr.contracts.assessment"
CAPABILITY = "wr.contracts.capability_observation"


def read_contracts(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> tuple[Contract, ...]:
    """Gather what the step's output must hold, whichever field says so."""
    found: dict[tuple[str, str], Contract] = {}
    for contract in _each(step, assessments, at, report):
        found.setdefault((contract.ref, str(contract.schema)), contract)
    return tuple(found.values())


def _each(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> Iterator[Contract]:
    if (older := step.output_contract) is not None:
        yield known(
            older.contract_ref, at / "outputContract" / "contractRef", report, required=older.required
        )
    if step.output is not None:
        yield from _from_output(step.output, step.id, at / "output", report)
    yield from _from_assessments(step, assessments, at, report)


def known(ref: str, at: SourceLocation, report: Report, *, required: bool = True) -> Contract:
    """Resolve a contract by name; of an unknown one only the kind is checked."""
    pack = packs.contracts().get(ref)
    if pack is None:
        report.add("IL205", f"unknown contract '{ref}'", at, did_you_mean(ref, packs.contracts()))
        return Contract(ref, ref.replace(".contracts.", ".", 1), required=required, known=False)
    return Contract(pack.ref, pack.kind, pack.schema, pack.example, required)


def _from_output(
    output: OutputSource, step_id: str, at: SourceLocation, report: Report
) -> Iterator[Contract]:
    if output.contract_ref is not None:
        yield known(output.contract_ref, at / "contractRef", report, required=output.required)
    if output.schema is None and output.kind is None:
        return
    schema = output.schema or {}
    kind = output.kind or _declared_kind(schema) or _shown_kind(output.example) or step_id
    example = _with_kind(output.example, kind)
    if check_schema(schema, at / "schema", report) and example is not None:
        _check_example(example, schema, at / "example", report)
    yield Contract(f"output.{kind}", kind, schema, example, output.required)


def _declared_kind(schema: Mapping[str, Json]) -> str | None:
    properties = schema.get("properties")
    kind = properties.get("kind") if isinstance(properties, Mapping) else None
    const = kind.get("const") if isinstance(kind, Mapping) else None
    return const if isinstance(const, str) else None


def _shown_kind(example: Json) -> str | None:
    kind = example.get("kind") if isinstance(example, Mapping) else None
    return kind if isinstance(kind, str) else None


def _with_kind(example: Json, kind: str) -> Json:
    return {"kind": kind, **example} if isinstance(example, Mapping) else example


def _check_example(example: Json, schema: Mapping[str, Json], at: SourceLocation, report: Report) -> None:
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema)).iter_errors(example)), None)
    if error is not None:
        report.add("IL511", f"the example does not pass its schema: {error.message}", at)


def _from_assessments(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> Iterator[Contract]:
    several = len(step.assessment_refs) > 1
    for index, ref in enumerate(step.assessment_refs):
        source = assessments.get(ref)
        if source is None:
            fix = did_you_mean(ref, assessments)
            report.add("IL209", f"unknown assessment '{ref}'", at / "assessmentRefs" / index, fix)
            continue
        yield Contract(
            ASSESSMENT,
            "wr.assessment",
            _assessment_schema(source, several=several),
            _assessment_example(source),
            followups=_followups(step, ref),
        )
    _check_levels(step, assessments, at / "assessmentConsequences", report)


def _check_levels(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> None:
    for index, one in enumerate(step.assessment_consequences):
        named = step.assessment_refs if one.when.for_assessment is None else (one.when.for_assessment,)
        sources = [assessments[ref] for ref in named if ref in assessments]
        levels = [level for source in sources for each in source.dimensions for level in each.levels]
        level = one.when.any_equals_level
        if levels and level not in levels:
            location = at / index / "when" / "anyEqualsLevel"
            report.add(
                "IL219", f"'{level}' is not one of {', '.join(levels)}", location, did_you_mean(level, levels)
            )


def _followups(step: StepSource, assessment: str) -> tuple[Followup, ...]:
    return tuple(
        Followup(one.when.any_equals_level, one.effect.guidance, assessment)
        for one in step.assessment_consequences
        if one.when.for_assessment in (None, assessment)
    )


def _assessment_schema(source: AssessmentSource, *, several: bool) -> dict[str, Json]:
    dimensions: dict[str, Json] = {one.id: _level(one.levels, one.purpose) for one in source.dimensions}
    names: list[Json] = [one.id for one in source.dimensions]
    required: list[Json] = ["kind", "dimensions", *(["assessmentId"] if several else [])]
    return {
        "type": "object",
        "required": required,
        "properties": {
            "kind": {"const": "wr.assessment"},
            "assessmentId": {"const": source.id},
            "dimensions": {"type": "object", "required": names, "properties": dimensions},
            "summary": {"type": "string", "maxLength": 1024},
        },
    }


def _level(levels: Sequence[str], purpose: str) -> dict[str, Json]:
    words: dict[str, Json] = {"enum": list(levels)}
    either: list[Json] = [
        words,
        {
            "type": "object",
            "required": ["level"],
            "properties": {"level": words, "rationale": {"type": "string", "maxLength": 512}},
        },
    ]
    return {"anyOf": either, **({"description": purpose} if purpose else {})}


def _assessment_example(source: AssessmentSource) -> dict[str, Json]:
    return {
        "kind": "wr.assessment",
        "assessmentId": source.id,
        "dimensions": {
            one.id: {"level": one.levels[-1], "rationale": f"why it is {one.levels[-1]}"}
            for one in source.dimensions
        },
    }
