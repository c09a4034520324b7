"""The JSON Schemas of the file formats, made from the source types: editors complete and check with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.compile.requirements import RuleSource
from interlock.authoring.filetypes.activity_file import (
    ActivityLoopSource,
    ActivitySource,
    ActivityWorkflowSource,
)
from interlock.authoring.filetypes.step_file import GateSource, LoopSource, StepSource, StepWorkflowSource
from interlock.core.values import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ROOTS: dict[str, tuple[type[Struct], str]] = {
    "step-workflow.schema.json": (StepWorkflowSource, "A step workflow"),
    "activity-workflow.schema.json": (ActivityWorkflowSource, "The head of an activity workflow"),
    "activity.schema.json": (ActivitySource, "An activity"),
}
_INNER = (StepSource, LoopSource, GateSource, ActivityLoopSource, RuleSource)

_CONDITION: dict[str, Json] = {
    "type": ["object", "null"],
    "description": "var with an operator, or variable with operator and value, or and, or, not",
}
_ITEMS: Json = {
    "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in (StepSource, LoopSource, GateSource)]
}
_RAW: dict[str, Json] = {
    "condition": _CONDITION,
    "runCondition": _CONDITION,
    "breakCondition": _CONDITION,
    "when": _CONDITION,
    "requireConfirmation": {"type": ["boolean", "object", "null"]},
    "validationCriteria": {"type": ["array", "object", "string", "null"]},
    "prompt": {"type": ["string", "array", "null"]},
    "body": {"anyOf": [{"type": "string"}, {"type": "array", "items": _ITEMS}]},
}


def published() -> dict[str, dict[str, Json]]:
    """Every schema by the name of its file."""
    made = {name: _schema(kind, title, name) for name, (kind, title) in _ROOTS.items()}
    plain: dict[str, dict[str, Json]] = msgspec.json.decode(msgspec.json.encode(made))
    return plain


def _schema(kind: type[Struct], title: str, name: str) -> dict[str, Json]:
    (root, *_), defined = msgspec.json.schema_components((kind, *_INNER), ref_template="#/$defs/{name}")
    shown = {key: _completed(value) for key, value in sorted(defined.items())}
    return {"$schema": DIALECT, "$id": name, "title": title, **root, "$defs": _used(kind.__name__, shown)}


def _completed(definition: Mapping[str, Json]) -> dict[str, Json]:
    """Say what the raw fields take, and how the lists of items are made up."""
    properties = definition.get("properties")
    if not isinstance(properties, Mapping):
        return dict(definition)
    made = {name: _field(name, one) for name, one in properties.items()}
    if "$schema" not in made and definition.get("title") in {kind.__name__ for kind, _ in _ROOTS.values()}:
        made["$schema"] = {"type": "string"}
    return {**definition, "properties": made}


def _field(name: str, schema: Json) -> Json:
    if not isinstance(schema, Mapping):
        return schema
    if name == "steps":
        return {**schema, "items": {"anyOf": [{"type": "string"}, _ITEMS]}}
    bare = "type" not in schema and "anyOf" not in schema and "$ref" not in schema
    return {**schema, **_as_object(_RAW[name])} if bare and name in _RAW else schema


def _as_object(value: Json) -> dict[str, Json]:
    assert isinstance(value, Mapping)
    return dict(value)


def _used(root: str, defined: Mapping[str, dict[str, Json]]) -> dict[str, Json]:
    """The definitions that the root reaches."""
    wanted, todo = dict[str, Json](), [root]
    while todo:
        name = todo.pop()
        if name in defined and name not in wanted:
            wanted[name] = defined[name]
            todo += _references(defined[name])
    return dict(sorted(wanted.items()))


def _references(value: Json) -> list[str]:
    match value:
        case Mapping():
            own = value.get("$ref")
            found = [own.rpartition("/")[2]] if isinstance(own, str) else []
            return found + [name for one in value.values() for name in _references(one)]
        case str():
            return []
        case Sequence():
            return [name for one in value for name in _references(one)]
        case _:
            return []


def write_all(folder: Path) -> None:
    """Write every schema into a folder."""
    for name, schema in published().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
