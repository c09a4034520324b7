"""The JSON Schema of a tool's arguments, derived from its Struct so that the two cannot disagree.

A model reads every byte of it in every chat, so nothing is kept that does not help to fill it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

Schema = dict[str, Any]

_REFERENCE = "#/$defs/"
_NULL = {"type": "null"}


def input_schema(params: type[Struct]) -> Schema:
    """Derive a compact schema: definitions inlined, no titles, no empty defaults, no unknown members."""
    (root,), definitions = msgspec.json.schema_components([params], ref_template=_REFERENCE + "{name}")
    schema = _inlined(root, definitions)
    schema.setdefault("properties", {})
    schema["additionalProperties"] = False
    return schema


def _inlined(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    reference = node.get("$ref")
    if reference is not None:
        target = definitions[reference.removeprefix(_REFERENCE)]
        node = {**target, "description": None, **node}  # the docstring of a Struct is for readers of the code
    kept: Schema = {}
    for key, value in node.items():
        match key, value:
            case (("title" | "$ref"), _):
                continue
            case (("default" | "description" | "required"), _) if value in (None, [], {}):
                continue
            case "properties", dict():
                kept[key] = {name: _inlined(schema, definitions) for name, schema in value.items()}
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), list()):
                kept[key] = [_inlined(option, definitions) for option in value]
            case (("items" | "additionalProperties" | "propertyNames"), dict()):
                kept[key] = _inlined(value, definitions)
            case _:
                kept[key] = value
    return _without_null(kept) if "default" in node else kept


def _without_null(schema: Schema) -> Schema:
    """Drop null from the choices: an optional argument is left out, not sent as null."""
    options = [option for option in schema.get("anyOf", []) if option != _NULL]
    match options:
        case [only]:
            return {**only, **{key: value for key, value in schema.items() if key != "anyOf"}}
        case [_, *_]:
            return {**schema, "anyOf": options}
        case _:
            return schema
