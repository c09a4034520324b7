"""Reads conditions in both notations: `var` of step workflows, `variable` and `operator` of activities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from interlock.authoring.diagnostics.codes import Report, did_you_mean, one_of
from interlock.authoring.filetypes.type_check import type_name
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
# What authors write for an operator out of habit.
SYNONYMS: dict[str, Operator] = {
    **dict.fromkeys(("eq", "equal", "is", "=", "==", "==="), "equals"),
    **dict.fromkeys(("ne", "neq", "not", "notEquals", "!=", "!==", "<>"), "not_equals"),
    **{">": ">", "greaterThan": ">", ">=": ">=", "greaterThanOrEqual": ">="},
    **{"<": "<", "lessThan": "<", "<=": "<=", "lessThanOrEqual": "<="},
    **{"includes": "contains", "regex": "matches", "match": "matches", "oneOf": "in"},
    **{"exist": "exists", "defined": "exists", "missing": "notExists", "not_exists": "notExists"},
}
FIRST_WORDS = ("var", "variable", "and", "or", "not")
CONDITION_WORDS = (*FIRST_WORDS, *STEP_WORDS)
_WRITTEN_OUT = re.compile(r"\s*([\w.-]+)\s*(==|!=|>=|<=|>|<)\s*(\S.*?)\s*")
JOINERS = {"all": "and", "allOf": "and", "every": "and", "any": "or", "anyOf": "or", "some": "or"}


def read_condition(raw: Json, at: SourceLocation, report: Report) -> Condition | None:
    """Read a condition; None means that there is none; an invalid one is reported."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        message = f"a condition must be an object, not {type_name(raw)}"
        return _invalid(message, at, report, f"write it as {_as_object(raw)}")
    joiner = next((word for word in ("and", "or", "not") if word in raw), None)
    beside = next((word for word in raw if word in CONDITION_WORDS and word != joiner), None)
    if joiner is not None and beside is not None:
        message = f"'{beside}' has no effect beside '{joiner}'"
        return _invalid(message, at.key(beside), report, "write both as parts of one 'and'")
    match raw:
        case {"type": "simple"}:
            return _activity_condition(raw, at, report)
        case {"type": "and" | "or" as word}:
            _check_fields(raw, ("type", "conditions"), at, report)
            return _joined_condition(str(word), raw.get("conditions"), at / "conditions", report)
        case {"type": "not"}:
            _check_fields(raw, ("type", "condition"), at, report)
            inner = read_condition(raw.get("condition"), at / "condition", report)
            return Not(inner) if inner is not None else _invalid("'not' needs a condition", at, report)
        case {"type": other}:
            next_action = one_of(str(other), ("simple", "and", "or", "not"))
            report.add("IL301", f"unknown condition type '{other}'", at / "type", next_action)
            return None
        case {"and": parts} | {"or": parts}:
            assert joiner is not None
            _check_fields(raw, (joiner,), at, report)
            return _joined_condition(joiner, parts, at / joiner, report)
        case {"not": negated}:
            _check_fields(raw, ("not",), at, report)
            inner = read_condition(negated, at / "not", report)
            return Not(inner) if inner is not None else None
        case {"var": _}:
            return _step_condition(raw, at, report)
        case {"variable": _}:
            return _activity_condition(raw, at, report)
        case _:
            meant = next(_words_meant(raw), "")
            return _invalid(f"a condition needs one of: {', '.join(FIRST_WORDS)}", at, report, meant)


def _words_meant(raw: Mapping[str, Json]) -> Iterator[str]:
    """Yield which word of a condition each word of something else may stand for."""
    yield from (f"use '{JOINERS[word]}'" for word in raw if word in JOINERS)
    yield from filter(None, (did_you_mean(word, FIRST_WORDS) for word in raw))


def _as_object(raw: Json) -> str:
    """Return how to write a condition that is not an object: `size > 3`, or the name of a variable alone."""
    if not isinstance(raw, str):
        return "{var: NAME, equals: …}"
    written = _WRITTEN_OUT.fullmatch(raw)
    if written is None:
        return f"{{var: {raw}, equals: …}}"
    return '{{variable: {}, operator: "{}", value: {}}}'.format(*written.groups())


def _check_fields(raw: Mapping[str, Json], known: Sequence[str], at: SourceLocation, report: Report) -> None:
    """Report what a condition has beside the fields of its form."""
    for name in raw:
        if name not in known:
            report.add("IL105", f"unknown field '{name}'", at.key(name), did_you_mean(name, known))


def _joined_condition(word: str, raw: Json, at: SourceLocation, report: Report) -> Condition | None:
    if not isinstance(raw, list) or not raw:
        return _invalid(f"'{word}' needs a list of conditions", at, report)
    parts = list[Condition]()
    for index, part in enumerate(raw):
        if part is None:
            _invalid("a condition is missing here", at / index, report)
        elif (condition := read_condition(part, at / index, report)) is not None:
            parts.append(condition)
    return AllOf(tuple(parts)) if word == "and" else AnyOf(tuple(parts))


def _step_condition(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Condition | None:
    variable = raw["var"]
    if not isinstance(variable, str) or not variable:
        return _invalid("'var' must be the name of a variable", at / "var", report)
    comparisons: list[Condition] = []
    for word, value in raw.items():
        if word == "var":
            continue
        operator = STEP_WORDS.get(word)
        if operator is None:
            known = {meant: name for name, meant in STEP_WORDS.items()}
            report.add("IL301", f"unknown operator '{word}'", at.key(word), _operator_fix(word, known))
            return None
        comparisons.append(_comparison(variable, operator, value, at / word, report))
    if not comparisons:
        return Compare(variable, "truthy")
    return comparisons[0] if len(comparisons) == 1 else AllOf(tuple(comparisons))


def _activity_condition(raw: Mapping[str, Json], at: SourceLocation, report: Report) -> Condition | None:
    # A word of the other notation lacks its value here, which is reported below.
    _check_fields(raw, ("type", "variable", "operator", "value", *STEP_WORDS), at, report)
    variable, operator = raw.get("variable"), raw.get("operator", "==")
    if not isinstance(variable, str) or not variable:
        return _invalid("'variable' must be the name of a variable", at, report)
    if operator not in ACTIVITY_OPERATORS:
        known_names = {meant: str(meant) for meant in ACTIVITY_OPERATORS} | {
            "equals": "==",
            "not_equals": "!=",
        }
        next_action = _operator_fix(str(operator), known_names)
        report.add("IL301", f"unknown operator '{operator}'", at / "operator", next_action)
        return None
    if "value" not in raw and operator not in ("exists", "notExists", "truthy"):
        word = next((word for word in raw if word in STEP_WORDS), None)
        meant = f"write 'var' beside '{word}', or 'operator' and 'value' beside 'variable'" if word else ""
        return _invalid(f"'{operator}' needs a value", at, report, meant)
    known = next(known for known in ACTIVITY_OPERATORS if known == operator)
    return _comparison(variable, known, raw.get("value"), at / "value", report)


def _operator_fix(word: str, names: Mapping[Operator, str]) -> str:
    """Return the operator that an unknown word stands for, as it is written in this notation."""
    if (meant := SYNONYMS.get(word)) is not None:
        return f"use '{names[meant]}'"
    return one_of(word, tuple(dict.fromkeys(names.values())))


def _comparison(
    variable: str, operator: Operator, value: Json, at: SourceLocation, report: Report
) -> Condition:
    if operator == "matches":
        check_pattern(value, "i", at, report)
    if operator in ("exists", "notExists"):
        opposite: Operator = "notExists" if operator == "exists" else "exists"
        return Compare(variable, opposite if value is False else operator)
    if operator == "in" and not isinstance(value, list):
        report.add("IL301", "'in' needs a list", at, f"write it as [{value}]")
    return Compare(variable, operator, value)


def check_pattern(pattern: Json, flags: str, at: SourceLocation, report: Report) -> None:
    """Report a pattern that no engine compiles, or that only the slow engine runs."""
    from interlock.core.patterns import BadPattern, prepare

    if not isinstance(pattern, str):
        report.add("IL302", f"a pattern must be text, not {type_name(pattern)}", at)
        return
    try:
        engine = prepare(pattern, flags).engine
    except BadPattern as error:
        report.add("IL302", str(error), at)
        return
    if engine == "regex":
        report.add("IL303", "RE2 cannot run this pattern, so it runs under a time limit", at)


def _invalid(message: str, at: SourceLocation, report: Report, next_action: str = "") -> Condition | None:
    report.add("IL301", message, at, next_action)
    return None
