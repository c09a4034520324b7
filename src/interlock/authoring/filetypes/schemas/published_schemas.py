"""The JSON Schemas of the file formats, with which editors complete and check workflow files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    ActivityWorkflowSource,
)
from interlock.authoring.filetypes.field_types import TEXT, Camel, Schema, ref
from interlock.authoring.filetypes.gate_source import GateSource
from interlock.authoring.filetypes.loop_source import LoopSource
from interlock.authoring.filetypes.output_source import RuleSource
from interlock.authoring.filetypes.scenario_file import ScenarioSource
from interlock.authoring.filetypes.schemas.field_texts import field_texts
from interlock.authoring.filetypes.schemas.raw_definitions import RAW_DEFINITIONS
from interlock.authoring.filetypes.step_file import StepWorkflowSource
from interlock.authoring.filetypes.step_source import StepSource
from interlock.core.values import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"

ROOTS: Mapping[str, tuple[type[Camel], str]] = {
    "step-workflow.schema.json": (StepWorkflowSource, "A step workflow"),
    "activity-workflow.schema.json": (ActivityWorkflowSource, "The head of an activity workflow"),
    "activity.schema.json": (ActivitySource, "An activity"),
    "scenario.schema.json": (ScenarioSource, "Scenarios of a workflow"),
}
# Types that the source types hold as raw values, because a file may write something else in their place.
_INNER = (StepSource, LoopSource, GateSource, ActivityLoopSource, RuleSource)

# Unknown fields are errors in a file that names its schema; fields for editors begin with $.
_CLOSED: Schema = {"patternProperties": {"^\\$": {}}, "additionalProperties": False}


def schema_text(schema: Schema) -> str:
    """Return a schema as its file is written."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def published() -> dict[str, Schema]:
    """Return every schema by the name of its file."""
    schemas = {name: _schema(name, kind, title) for name, (kind, title) in ROOTS.items()}
    plain: dict[str, Schema] = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain


def _schema(name: str, kind: type[Camel], title: str) -> Schema:
    definitions = definitions_of(kind)
    own = definitions[kind.__name__]["properties"]
    assert isinstance(own, dict)
    own["$schema"] = {**TEXT, "description": "The schema that an editor checks the file with."}
    if kind is not ScenarioSource:
        lenient = "Makes unknown fields, contracts and variables in this file warnings instead of errors."
        own["$lenient"] = {"type": "boolean", "description": lenient}
    return {"$schema": DIALECT, "$id": name, "title": title, **ref(kind.__name__), "$defs": definitions}


def definitions_of(kind: type[Camel]) -> dict[str, Schema]:
    """Return the definition of a source type and of all that it refers to, by name."""
    _, components = msgspec.json.schema_components((kind, *_INNER), ref_template="#/$defs/{name}")
    definitions: dict[str, Schema] = {**RAW_DEFINITIONS, **components}
    for struct in _source_types(Camel):
        if struct.__name__ in components:
            properties, texts = components[struct.__name__]["properties"], field_texts(struct)
            described = {field: {**properties[field], "description": texts[field]} for field in properties}
            definitions[struct.__name__] = {**components[struct.__name__], "properties": described}
    return {
        name: definitions[name] | (_CLOSED if "properties" in definitions[name] else {})
        for name in sorted(_reached(kind.__name__, definitions))
    }


def _source_types(kind: type[Camel]) -> Iterator[type[Camel]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _source_types(inner)


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
