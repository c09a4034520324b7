"""Reads conditions in both dialects: `var` of step workflows, `variable` and `operator` of activities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from interlock.authoring.diagnostics.codes import Report, did_you_mean
from interlock.authoring.filetypes.type_check import name_of
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.conditions import AllOf, AnyOf, Compare, Condition, Not, Operator
from interlock.core.values import Json

STEP_WORDS: dict[str, Operator] = {
    "equals": "equals",
    "not_equals": "not_equals",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "contains": "contains",
    "startsWith": "startsWith",
    "endsWith": "endsWith",
    "matches": "matches",
    "in": "in",
    "exists": "exists",
    "notExists": "notExists",
}
ACTIVITY_OPERATORS: tuple[Operator, ...] = get_args(Operator)


def read_condition(raw: Json, at: SourceLocation, report: Report) -> Condition | None:
    """Read a condition; nothing is no condition, and a bad one is reported."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        return _bad(f"a condition is an object, not {name_of(raw)}", at, report)
    if "type" in raw:
        return _typed(raw, at, report)
    for word in ("and", "or"):
        if word in raw:
            return _joined(word, raw[word], at / word, report)
    if "not" in raw:
        inner = read_condition(raw["not"], at / "not", report)
        return Not(inner) if inner is not None else None
    if "var" in raw:
        return _step_test(raw, at, report)
    if "variable" in raw:
        return _activity_test(raw, at, report)
    return _bad("a condition needs var, variable, and, or, or not", at, report)


def _typed(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Condition | None:
    match raw["type"]:
        case "simple":
            return _activity_test(raw, at, report)
        case "and" | "or":
            word = str(raw["type"])
            return _joined(word, raw.get("conditions"), at / "conditions", report)
        case "not":
            inner = read_condition(raw.get("condition"), at / "condition", report)
            return Not(inner) if inner is not None else _bad("'not' needs a condition", at, report)
        case other:
            fix = did_you_mean(str(other), ("simple", "and", "or", "not"))
            report.add("IL301", f"unknown kind of condition '{other}'", at / "type", fix)
            return None


def _joined(word: str, raw: Json, at: SourceLocation, report: Report) -> Condition | None:
    if not isinstance(raw, list) or not raw:
        return _bad(f"'{word}' needs a list of conditions", at, report)
    parts = tuple(
        part for index, one in enumerate(raw) if (part := _inner(one, at / index, report)) is not None
    )
    return AllOf(parts) if word == "and" else AnyOf(parts)


def _inner(raw: Json, at: SourceLocation, report: Report) -> Condition | None:
    return _bad("a condition is missing here", at, report) if raw is None else read_condition(raw, at, report)


def _step_test(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Condition | None:
    variable = raw["var"]
    if not isinstance(variable, str) or not variable:
        return _bad("'var' names a variable", at / "var", report)
    tests: list[Condition] = []
    for word, value in raw.items():
        if word == "var":
            continue
        operator = STEP_WORDS.get(word)
        if operator is None:
            report.add("IL301", f"unknown operator '{word}'", at.key(word), did_you_mean(word, STEP_WORDS))
            return None
        tests.append(_test(variable, operator, value, at / word, report))
    if not tests:
        return Compare(variable, "truthy")
    return tests[0] if len(tests) == 1 else AllOf(tuple(tests))


def _activity_test(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Condition | None:
    variable, operator = raw.get("variable"), raw.get("operator", "==")
    if not isinstance(variable, str) or not variable:
        return _bad("'variable' names a variable", at, report)
    if operator not in ACTIVITY_OPERATORS:
        fix = did_you_mean(str(operator), ACTIVITY_OPERATORS)
        report.add("IL301", f"unknown operator '{operator}'", at / "operator", fix)
        return None
    if "value" not in raw and operator not in ("exists", "notExists", "truthy"):
        return _bad(f"'{operator}' needs a value", at, report)
    chosen = next(one for one in ACTIVITY_OPERATORS if one == operator)
    return _test(variable, chosen, raw.get("value"), at / "value", report)


def _test(variable: str, operator: Operator, value: Json, at: SourceLocation, report: Report) -> Condition:
    if operator == "matches":
        check_pattern(value, "i", at, report)
    if operator in ("exists", "notExists"):
        flipped: Operator = "notExists" if operator == "exists" else "exists"
        return Compare(variable, flipped if value is False else operator)
    if operator == "in" and not isinstance(value, list):
        report.add("IL301", "'in' needs a list", at)
    return Compare(variable, operator, value)


def check_pattern(pattern: Json, flags: str, at: SourceLocation, report: Report) -> None:
    """Report a pattern that neither engine compiles, and one that only the slow engine runs."""
    from interlock.core.patterns import BadPattern, prepare

    if not isinstance(pattern, str):
        report.add("IL302", f"a pattern is text, not {name_of(pattern)}", at)
        return
    try:
        engine = prepare(pattern, flags).engine
    except BadPattern as error:
        report.add("IL302", str(error), at)
        return
    if engine == "regex":
        report.add("IL303", "RE2 cannot run this pattern; it runs under a time limit", at)


def _bad(message: str, at: SourceLocation, report: Report) -> Condition | None:
    report.add("IL301", message, at)
    return None
