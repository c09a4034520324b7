"""The JSON Schemas of the file formats, with which editors complete and check workflow files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from interlock.authoring.compile.conditions import ACTIVITY_OPERATORS, STEP_WORDS
from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    ActivityWorkflowSource,
)
from interlock.authoring.filetypes.field_descriptions import (
    CONDITION_FIELDS,
    CRITERIA_FIELDS,
    DESCRIPTIONS,
    OPERATORS,
    PART_FIELDS,
)
from interlock.authoring.filetypes.scenario_file import ScenarioSource
from interlock.authoring.filetypes.step_file import (
    GateSource,
    LoopSource,
    RuleSource,
    StepSource,
    StepWorkflowSource,
)
from interlock.core.values import Json

Schema = dict[str, Json]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

ROOTS: Mapping[str, tuple[type[Struct], str]] = {
    "step-workflow.schema.json": (StepWorkflowSource, "A step workflow"),
    "activity-workflow.schema.json": (ActivityWorkflowSource, "The head of an activity workflow"),
    "activity.schema.json": (ActivitySource, "An activity"),
    "scenario.schema.json": (ScenarioSource, "Scenarios of a workflow"),
}
# Types that the source types hold as raw values, because a file may write something else in their place.
_INNER = (StepSource, LoopSource, GateSource, ActivityLoopSource, RuleSource)

_TEXT: Schema = {"type": "string"}
_NULL: Schema = {"type": "null"}
_OBJECT: Schema = {"type": "object"}
# Unknown fields are errors in a file that names its schema; fields for editors begin with $.
_CLOSED: Schema = {"patternProperties": {"^\\$": {}}, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _any_of(*choices: Schema) -> Schema:
    return {"anyOf": list(choices)}


def _list_of(*choices: Schema) -> Schema:
    return {"type": "array", "items": choices[0] if len(choices) == 1 else _any_of(*choices)}


def _properties(fields: Mapping[str, Schema], descriptions: Mapping[str, str]) -> Schema:
    return {name: {**schema, "description": descriptions[name]} for name, schema in fields.items()}


_ITEMS = (_ref("StepSource"), _ref("LoopSource"), _ref("GateSource"))
_CONDITION = _any_of(_ref("Condition"), _NULL)
_BLOCK = _any_of(_ref("PromptText"), _OBJECT, _NULL)

# What the fields take whose values are raw in the source types.
_RAW: Mapping[str, Schema] = {
    "condition": _CONDITION,
    "runCondition": _CONDITION,
    "breakCondition": _CONDITION,
    "when": _CONDITION,
    "requireConfirmation": _any_of({"type": "boolean"}, _ref("Condition"), _NULL),
    "validationCriteria": _any_of(_ref("Criteria"), _NULL),
    "prompt": _any_of(_ref("PromptText"), _NULL),
    **dict.fromkeys(("goal", "constraints", "procedure", "outputRequired", "verify"), _BLOCK),
    "body": _any_of(_TEXT, _list_of(*_ITEMS)),
    "steps": _list_of(_TEXT, *_ITEMS),
    "checkpoints": _list_of(_ref("GateSource")),
    "loops": _list_of(_ref("ActivityLoopSource")),
    "activities": _list_of(_TEXT, _OBJECT),
}

# What the compiler reads without a source type.
_WITHOUT_TYPE: Mapping[str, Schema] = {
    "Condition": {
        "title": "Condition",
        "description": "A test of the run's variables, in one of two dialects.",
        "type": "object",
        "properties": {
            **_properties(
                {
                    "var": _TEXT,
                    "variable": _TEXT,
                    "operator": {"enum": list(ACTIVITY_OPERATORS)},
                    "value": {},
                    "and": _list_of(_ref("Condition")),
                    "or": _list_of(_ref("Condition")),
                    "not": _ref("Condition"),
                    "type": {"enum": ["simple", "and", "or", "not"]},
                    "conditions": _list_of(_ref("Condition")),
                    "condition": _ref("Condition"),
                },
                CONDITION_FIELDS,
            ),
            **{word: {"description": OPERATORS[operator]} for word, operator in STEP_WORDS.items()},
        },
    },
    "Criteria": {
        "title": "Criteria",
        "description": "A rule, a pattern, a list of which all must pass, or a tree.",
        **_any_of(_ref("RuleSource"), _TEXT, _list_of(_ref("Criteria")), _ref("CriteriaTree")),
    },
    "CriteriaTree": {
        "title": "CriteriaTree",
        "description": "Rules joined by one of these words.",
        "type": "object",
        "properties": _properties(
            {
                "and": _list_of(_ref("Criteria")),
                "or": _list_of(_ref("Criteria")),
                "not": _ref("Criteria"),
            },
            CRITERIA_FIELDS,
        ),
        "anyOf": [{"required": ["and"]}, {"required": ["or"]}, {"required": ["not"]}],
    },
    "PromptText": {
        "title": "PromptText",
        "description": "Text, a part, or a list of both.",
        **_any_of(_TEXT, _ref("PromptPart"), _list_of(_ref("PromptText"))),
    },
    "PromptPart": {
        "title": "PromptPart",
        "description": "A piece of a prompt: text, or a built-in reference.",
        "type": "object",
        "properties": _properties(
            {"kind": {"enum": ["text", "ref"]}, "text": _TEXT, "refId": _TEXT}, PART_FIELDS
        ),
    },
}


def schema_text(schema: Schema) -> str:
    """Return a schema as its file is written."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def published() -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    schemas = {name: _schema(name, kind, title) for name, (kind, title) in ROOTS.items()}
    plain: dict[str, Schema] = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain


def _schema(name: str, kind: type[Struct], title: str) -> Schema:
    (root, *_), components = msgspec.json.schema_components((kind, *_INNER), ref_template="#/$defs/{name}")
    definitions: dict[str, Schema] = {**_WITHOUT_TYPE, **components}
    for struct, descriptions in DESCRIPTIONS.items():
        if struct.__name__ in components:
            properties = components[struct.__name__]["properties"]
            described = {field: _field(field, properties[field], descriptions[field]) for field in properties}
            definitions[struct.__name__] = {**components[struct.__name__], "properties": described}
    for definition in definitions.values():
        if "properties" in definition:
            definition.update(_CLOSED)
    own = definitions[kind.__name__]["properties"]
    assert isinstance(own, dict)
    own["$schema"] = {**_TEXT, "description": "The schema that an editor checks the file with."}
    if kind is not ScenarioSource:
        lenient = "Makes unknown fields, contracts and variables in this file warnings instead of errors."
        own["$lenient"] = {"type": "boolean", "description": lenient}
    reached = {inner: definitions[inner] for inner in sorted(_reached(kind.__name__, definitions))}
    return {"$schema": DIALECT, "$id": name, "title": title, **root, "$defs": reached}


def _field(name: str, schema: Mapping[str, Json], description: str) -> Schema:
    typed = "anyOf" in schema or "$ref" in schema or "enum" in schema or "items" in schema
    is_raw = not typed and schema.get("type", "array") == "array"
    return {**schema, **(_RAW.get(name, {}) if is_raw else {}), "description": description}


def _reached(root: str, definitions: Mapping[str, Schema]) -> set[str]:
    """Return the names of the definitions that the root refers to, directly or through others."""
    reached, pending = set[str](), [root]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += _references(definitions[name])
    return reached


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _references(inner)
