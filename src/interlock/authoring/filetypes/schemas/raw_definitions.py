"""The definitions of what the compiler reads without a source type: conditions, criteria and prompt texts."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.authoring.compile.conditions import ACTIVITY_OPERATORS, STEP_WORDS
from interlock.authoring.filetypes.field_types import OBJECT, TEXT, Schema, any_of, list_of, ref
from interlock.core.definition.conditions import Operator

OPERATORS: Mapping[Operator, str] = {
    "==": 'The same value, strictly: `5` is not `"5"`, and `true` is not `1`.',
    "!=": "Not the same value, strictly; true for a variable that nobody has set.",
    "equals": "The same value, leniently: case and outer spaces do not count, texts are read as numbers and "
    "as `yes` and `no`, `null` equals an unset variable.",
    "not_equals": "Not the same value, leniently.",
    ">": "Greater than the value; false unless both are numbers, or texts that are numbers.",
    ">=": "Greater than or equal to the value; false unless both are numbers, or texts that are numbers.",
    "<": "Less than the value; false unless both are numbers, or texts that are numbers.",
    "<=": "Less than or equal to the value; false unless both are numbers, or texts that are numbers.",
    "contains": "A text contains the value, ignoring case; a list has an entry that equals it leniently.",
    "startsWith": "A text begins with the value, ignoring case.",
    "endsWith": "A text ends with the value, ignoring case.",
    "matches": "The value is a pattern in RE2 syntax that is found in the text, ignoring case.",
    "in": "The value is a list, and the variable equals one of its entries leniently.",
    "exists": "The variable is set and not `null`; declared defaults do not count. The value `false` "
    "reverses the test.",
    "notExists": "The variable is not set, or `null`. The value `false` reverses the test.",
    "truthy": "The variable is set to something other than `false`, `0`, `null` or an empty text, list or "
    "object. In the step dialect: `var` alone.",
}


def _definition(title: str, description: str, schema: Schema) -> Schema:
    return {"title": title, "description": description, **schema}


def _object(**fields: tuple[Schema, str]) -> Schema:
    return {**OBJECT, "properties": {name: _described(*field) for name, field in fields.items()}}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


_CONDITION = _object(
    var=(
        TEXT,
        "The variable that the step dialect tests, as a dotted path; alone, it tests for a true value.",
    ),
    variable=(TEXT, "The variable that the activity dialect tests, as a dotted path."),
    operator=({"enum": list(ACTIVITY_OPERATORS)}, "The activity dialect's operator; `==` if absent."),
    value=({}, "What the variable is compared with."),
    **{
        "and": (list_of(ref("Condition")), "Holds if all of these hold."),
        "or": (list_of(ref("Condition")), "Holds if one of these holds."),
        "not": (ref("Condition"), "Holds if this does not."),
    },
    type=(
        {"enum": ["simple", "and", "or", "not"]},
        "The activity dialect's long form: `simple` (may be left out), `and`, `or` or `not`.",
    ),
    conditions=(
        list_of(ref("Condition")),
        "With `type: and` and `type: or`: the conditions that are joined.",
    ),
    condition=(ref("Condition"), "With `type: not`: the condition that is negated."),
    **{word: ({}, OPERATORS[operator]) for word, operator in STEP_WORDS.items()},
)
_CRITERIA_TREE = _object(
    **{
        "and": (list_of(ref("Criteria")), "All of these must pass."),
        "or": (list_of(ref("Criteria")), "One of these must pass."),
        "not": (ref("Criteria"), "This must not pass."),
    }
)
_PROMPT_PART = _object(
    kind=({"enum": ["text", "ref"]}, "`text`: the text as it is; `ref`: a built-in reference."),
    text=(TEXT, "With `kind: text`: the text."),
    refId=(TEXT, "With `kind: ref`: the name of a built-in reference, whose text is put in."),
)

RAW_DEFINITIONS: Mapping[str, Schema] = {
    "Condition": _definition(
        "Condition", "A test of the run's variables, in one of two dialects.", _CONDITION
    ),
    "Criteria": _definition(
        "Criteria",
        "A rule, a pattern, a list of which all must pass, or a tree.",
        any_of(ref("RuleSource"), TEXT, list_of(ref("Criteria")), ref("CriteriaTree")),
    ),
    "CriteriaTree": _definition(
        "CriteriaTree",
        "Rules joined by one of these words.",
        {**_CRITERIA_TREE, "anyOf": [{"required": [word]} for word in ("and", "or", "not")]},
    ),
    "PromptText": _definition(
        "PromptText",
        "Text, a part, or a list of both.",
        any_of(TEXT, ref("PromptPart"), list_of(ref("PromptText"))),
    ),
    "PromptPart": _definition(
        "PromptPart", "A piece of a prompt: text, or a built-in reference.", _PROMPT_PART
    ),
}
