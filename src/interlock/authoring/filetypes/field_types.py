"""The types of fields that several kinds of files share, and the base of all source types.

A source type is the one description of its fields: it reads a file, names what was misspelt, and is published
as a schema and as a page of the documentation. The text below a field says what it means; Python drops such
texts when it compiles a module, so that reading a workflow does not pay for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from interlock.core.values import Json

Schema = dict[str, Json]

TEXT: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
OBJECT: Schema = {"type": "object"}


def ref(name: str) -> Schema:
    """Return a reference to another definition of the same schema."""
    return {"$ref": f"#/$defs/{name}"}


def any_of(*choices: Schema) -> Schema:
    """Return the schema of a value that matches one of these."""
    return {"anyOf": list(choices)}


def list_of(*choices: Schema) -> Schema:
    """Return the schema of a list whose entries match one of these."""
    return {"type": "array", "items": choices[0] if len(choices) == 1 else any_of(*choices)}


def _shown(schema: Mapping[str, Json]) -> Meta:
    """Publish this schema for a field whose value is raw: the compiler reads it without a source type."""
    return Meta(extra_json_schema=dict(schema))


# A text that is too long is only a warning, so the lengths are notes in the schema and not constraints.
NonEmpty = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": 128})]
Line = Annotated[str, Meta(extra_json_schema={"maxLength": 512})]
Role = Annotated[str, Meta(extra_json_schema={"maxLength": 1024})]
About = Annotated[str, Meta(extra_json_schema={"maxLength": 4096})]
Duration = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,4}(s|m|h|d)$")]
Iterations = Annotated[int, Meta(ge=1, le=1000)]

# Raw values: conditions have two dialects, and a list of items holds texts and items of several types.
_ITEMS = (ref("StepSource"), ref("LoopSource"), ref("GateSource"))
RawCondition = Annotated[Json, _shown(any_of(ref("Condition"), NULL))]
RawConfirmation = Annotated[Json, _shown(any_of({"type": "boolean"}, ref("Condition"), NULL))]
RawCriteria = Annotated[Json, _shown(any_of(ref("Criteria"), NULL))]
RawPrompt = Annotated[Json, _shown(any_of(ref("PromptText"), NULL))]
RawBlock = Annotated[Json, _shown(any_of(ref("PromptText"), OBJECT, NULL))]
RawBody = Annotated[Json, _shown(any_of(TEXT, list_of(*_ITEMS)))]
RawItems = Annotated[tuple[Json, ...], _shown(list_of(TEXT, *_ITEMS))]
RawGates = Annotated[tuple[Json, ...], _shown(list_of(ref("GateSource")))]
RawLoops = Annotated[tuple[Json, ...], _shown(list_of(ref("ActivityLoopSource")))]
RawActivities = Annotated[tuple[Json, ...], _shown(list_of(TEXT, OBJECT))]

KEPT = Meta(extra={"kept": True})  # the field stays in the compiled workflow as it is written


class Camel(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of the source types: fields are camelCase in files."""
