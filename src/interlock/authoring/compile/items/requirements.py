"""Reads what a step's output must satisfy: contracts for its artifacts (rule 31), criteria for its notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from interlock.authoring.compile import builtins as packs
from interlock.authoring.compile.conditions import check_pattern, read_condition
from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.output_source import AssessmentSource, OutputSource, RuleSource
from interlock.authoring.filetypes.step_source import StepSource
from interlock.authoring.filetypes.type_check import compiled_as, read_as
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.criteria import requirement
from interlock.core.definition.workflow import (
    AllRules,
    AnyRule,
    Contract,
    Criteria,
    Followup,
    NotRule,
    Rule,
)
from interlock.core.json_schema import (
    KEYWORDS,
    BadSchema,
    artifact_violations,
    check_schema,
    outside_references,
    unknown_keywords,
    violations,
)
from interlock.core.values import Json

ASSESSMENT = "wr.contracts.assessment"


def read_contracts(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> tuple[Contract, ...]:
    """Collect the contracts of a step from every field that can name one, without duplicates."""
    contracts: list[Contract] = []
    if (older := step.output_contract) is not None:
        location = at / "outputContract" / "contractRef"
        contracts.append(_known_contract(older.contract_ref, location, report, required=older.required))
    if step.output is not None:
        contracts += _output_contracts(step.output, step.id, at / "output", report)
    contracts += _assessment_contracts(step, assessments, at, report)
    for index, consequence in enumerate(step.assessment_consequences):
        named, level = consequence.when.for_assessment, consequence.when.any_equals_level
        refs = step.assessment_refs if named is None else (named,)
        dimensions = [part for ref in refs if ref in assessments for part in assessments[ref].dimensions]
        levels = [known for dimension in dimensions for known in dimension.levels]
        if levels and level not in levels:
            message = f"'{level}' is not one of {', '.join(levels)}"
            location = at / "assessmentConsequences" / index / "when" / "anyEqualsLevel"
            report.add("IL219", message, location, did_you_mean(level, levels))
    unique: dict[tuple[str, str], Contract] = {}
    for contract in contracts:
        unique.setdefault((contract.ref, str(contract.schema)), contract)
    return tuple(unique.values())


def _known_contract(ref: str, at: SourceLocation, report: Report, *, required: bool) -> Contract:
    """Resolve a contract by name; only the kind is checked if the name is unknown."""
    pack = packs.contracts().get(ref)
    if pack is None:
        report.add("IL205", f"unknown contract '{ref}'", at, did_you_mean(ref, packs.contracts()))
        return Contract(ref, ref.replace(".contracts.", ".", 1), required=required, known=False)
    return Contract(pack.ref, pack.kind, pack.schema, pack.example, required)


def _output_contracts(
    output: OutputSource, step_id: str, at: SourceLocation, report: Report
) -> Iterator[Contract]:
    if output.contract_ref is not None:
        yield _known_contract(output.contract_ref, at / "contractRef", report, required=output.required)
    if output.schema is None and output.kind is None:
        return
    schema = output.schema or {}
    kind = output.kind or _kind_in(schema, output.example) or step_id
    example = {"kind": kind, **output.example} if isinstance(output.example, Mapping) else output.example
    is_usable = schema_is_usable(schema, at / "schema", report)
    if is_usable and example is not None and (errors := artifact_violations(schema, example)):
        report.add("IL511", f"the example does not match its schema: {errors[0]}", at / "example")
    if is_usable and violations({"type": schema.get("type", "object")}, {}):
        report.add("IL102", "an artifact is an object, and this schema allows none", at / "schema" / "type")
    yield Contract(f"output.{kind}", kind, schema, example, output.required)


def _kind_in(schema: Mapping[str, Json], example: Json) -> str | None:
    """Return the artifact's kind that the schema requires or the example shows."""
    properties = schema.get("properties")
    kind_schema = properties.get("kind") if isinstance(properties, Mapping) else None
    required = kind_schema.get("const") if isinstance(kind_schema, Mapping) else None
    shown = example.get("kind") if isinstance(example, Mapping) else None
    return next((kind for kind in (required, shown) if isinstance(kind, str) and kind), None)


def _assessment_contracts(
    step: StepSource, assessments: Mapping[str, AssessmentSource], at: SourceLocation, report: Report
) -> Iterator[Contract]:
    for index, ref in enumerate(step.assessment_refs):
        source = assessments.get(ref)
        if source is None:
            location = at / "assessmentRefs" / index
            report.add("IL209", f"unknown assessment '{ref}'", location, did_you_mean(ref, assessments))
            continue
        followups = tuple(
            Followup(consequence.when.any_equals_level, consequence.effect.guidance, ref)
            for consequence in step.assessment_consequences
            if consequence.when.for_assessment in (None, ref)
        )
        held_back = {followup.level for followup in followups}
        shown = {
            dimension.id: next(
                (level for level in reversed(dimension.levels) if level not in held_back),
                dimension.levels[-1],
            )
            for dimension in source.dimensions
        }  # levels that pass
        example: dict[str, Json] = {
            "kind": "wr.assessment",
            "assessmentId": source.id,
            "dimensions": {name: {"level": level, "rationale": "why"} for name, level in shown.items()},
        }
        schema = _assessment_schema(source, names_itself=len(step.assessment_refs) > 1)
        yield Contract(ASSESSMENT, "wr.assessment", schema, example, followups=followups)


def _assessment_schema(source: AssessmentSource, *, names_itself: bool) -> dict[str, Json]:
    """Build the schema of an assessment; one of several must name itself by its id."""
    dimensions: dict[str, Json] = {}
    for dimension in source.dimensions:
        level: dict[str, Json] = {"enum": list(dimension.levels)}
        rationale: dict[str, Json] = {"type": "string", "maxLength": 512}
        properties: dict[str, Json] = {"level": level, "rationale": rationale}
        alternatives: list[Json] = [
            level,
            {"type": "object", "required": ["level"], "properties": properties},
        ]
        description = {"description": dimension.purpose} if dimension.purpose else {}
        dimensions[dimension.id] = {"anyOf": alternatives, **description}
    names: list[Json] = [dimension.id for dimension in source.dimensions if dimension.required]
    required: list[Json] = ["kind", "dimensions", *(["assessmentId"] if names_itself else [])]
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


def read_criteria(raw: Json, at: SourceLocation, report: Report) -> Criteria | None:
    """Read validation criteria: a list, a tree of and/or/not, or the older single pattern."""
    match raw:
        case None | []:
            return None
        case str():
            check_pattern(raw, "", at, report)
            return Rule("regex", f"must match {raw}", pattern=raw)
        case list():
            return AllRules(_rules(raw, at, report))
        case Mapping():
            return _criteria_tree(raw, at, report)
        case _:
            report.add("IL102", "validationCriteria must be a list, a tree or a pattern", at)
            return None


def _rules(raws: list[Json], at: SourceLocation, report: Report) -> tuple[Criteria, ...]:
    rules = (read_criteria(raw, at / index, report) for index, raw in enumerate(raws))
    return tuple(rule for rule in rules if rule is not None)


def _criteria_tree(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Criteria | None:
    words = [word for word in ("and", "or", "not", "type") if word in raw]
    if len(words) > 1:
        message = f"'{words[1]}' has no effect beside '{words[0]}'"
        report.add("IL102", message, at.key(words[1]), "write both as parts of one 'and'")
        return None
    for word in ("and", "or"):
        if word in raw:
            branches = raw[word]
            if not isinstance(branches, list) or not branches:
                report.add("IL102", f"'{word}' needs a list of rules", at / word)
                return None
            rules = _rules(branches, at / word, report)
            return AllRules(rules) if word == "and" else AnyRule(rules)
    if "not" in raw:
        rule = read_criteria(raw["not"], at / "not", report)
        return NotRule(rule) if rule is not None else None
    source = read_as(RuleSource, raw, at, report)
    if source is None:
        return None
    if source.type == "regex":
        check_pattern(source.pattern, source.flags, at / "pattern", report)
    if source.type == "schema":
        schema_is_usable(source.schema, at / "schema", report)
    rule = compiled_as(
        Rule,
        source,
        kind=source.type,
        minimum=source.min,
        maximum=source.max,
        condition=read_condition(source.condition, at / "condition", report),
    )
    return rule if rule.message else replace(rule, message=requirement(rule))


def schema_is_usable(schema: Mapping[str, Json], at: SourceLocation, report: Report) -> bool:
    """Report a schema that refers to another document or is not a JSON Schema."""
    references = list(outside_references(schema))
    for path, reference in references:
        location = SourceLocation(at.parsed, (*at.path, *path))
        report.add("IL308", f"'{reference}' is in another document", location)
    if references:
        return False
    for path, keyword in unknown_keywords(schema):
        location = SourceLocation(at.parsed, (*at.path, *path[:-1])).key(keyword)
        next_action = did_you_mean(keyword, KEYWORDS)
        report.add("IL105", f"'{keyword}' is not a keyword of JSON Schema", location, next_action)
    try:
        check_schema(schema)
    except BadSchema as error:
        report.add("IL102", str(error), at)
        return False
    return True
