"""Reads validation criteria: a list, a tree of and/or/not, or the older single pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from interlock.authoring.compile.conditions import check_pattern, read_condition
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.filetypes.step_file import RuleSource
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.workflow import AllRules, AnyRule, Criteria, NotRule, Rule
from interlock.core.values import Json


def read_criteria(raw: Json, at: SourceLocation, report: Report) -> Criteria | None:
    """Read criteria of any of their forms; nothing is no criteria."""
    if raw is None or raw == []:
        return None
    if isinstance(raw, str):
        check_pattern(raw, "", at, report)
        return Rule("regex", f"must match {raw}", pattern=raw)
    if isinstance(raw, list):
        return AllRules(_each(raw, at, report))
    if isinstance(raw, Mapping):
        return _tree(raw, at, report)
    report.add("IL102", "validationCriteria is a list, a tree or a pattern", at)
    return None


def _each(raw: list[Json], at: SourceLocation, report: Report) -> tuple[Criteria, ...]:
    read = (read_criteria(one, at / index, report) for index, one in enumerate(raw))
    return tuple(one for one in read if one is not None)


def _tree(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Criteria | None:
    for word in ("and", "or"):
        if word in raw:
            branches = raw[word]
            if not isinstance(branches, list):
                report.add("IL102", f"'{word}' needs a list of rules", at / word)
                return None
            rules = _each(branches, at / word, report)
            return AllRules(rules) if word == "and" else AnyRule(rules)
    if "not" in raw:
        rule = read_criteria(raw["not"], at / "not", report)
        return NotRule(rule) if rule is not None else None
    return _rule(raw, at, report)


def _rule(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Rule | None:
    source = read_as(RuleSource, raw, at, report)
    if source is None:
        return None
    if source.type == "regex":
        check_pattern(source.pattern, source.flags, at / "pattern", report)
    if source.type == "schema":
        check_schema(source.schema, at / "schema", report)
    return Rule(
        kind=source.type,
        message=source.message or f"does not satisfy '{source.type}'",
        value=source.value,
        pattern=source.pattern,
        flags=source.flags,
        minimum=source.min,
        maximum=source.max,
        schema=source.schema,
        condition=read_condition(source.condition, at / "condition", report),
    )


def check_schema(schema: Mapping[str, Json], at: SourceLocation, report: Report) -> bool:
    """Report a schema that is not a JSON Schema."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(dict(schema))
    except (jsonschema_rs.ValidationError, ValueError) as error:
        report.add("IL102", f"not a JSON Schema: {str(error).splitlines()[0]}", at)
        return False
    return True


def lines_of(criteria: Criteria, indent: str = "") -> Iterator[str]:
    """Write the criteria as a list, so that they are known before the attempt."""
    match criteria:
        case Rule():
            yield f"{indent}- {criteria.message}"
        case AllRules():
            for one in criteria.rules:
                yield from lines_of(one, indent)
        case AnyRule():
            yield f"{indent}- one of:"
            for one in criteria.rules:
                yield from lines_of(one, indent + "  ")
        case NotRule():
            yield f"{indent}- not:"
            yield from lines_of(criteria.rule, indent + "  ")
        case _:
            assert_never(criteria)
