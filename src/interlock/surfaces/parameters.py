"""What the parameters of all tools share, and the JSON Schema that is derived from them.

A model reads every byte of a schema in every chat, so nothing is kept that does not help to fill it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

Schema = dict[str, Any]

RequestId: TypeAlias = Annotated[
    str,
    Meta(
        max_length=128,
        description="Your id for this start: the same call again returns the same answer.",
    ),
]
Find: TypeAlias = Annotated[
    str,
    Meta(max_length=256, description="Instead: words about earlier work, or its id"),
]
Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
ASK_AGAIN = "New values of what a question shows; it is asked again"

_REFERENCE = "#/$defs/"
_NULL = {"type": "null"}


class Params(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all parameters: an unknown name is refused, not ignored."""


class NoParams(Params, frozen=True):
    """The parameters of a tool that takes none."""


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
