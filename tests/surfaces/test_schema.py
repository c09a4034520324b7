"""What a model is told of a tool's arguments: exact, closed, and short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from interlock.surfaces.input_schema import input_schema


class Entry(Struct, forbid_unknown_fields=True):
    """A word to the reader of the code."""

    title: str
    rank: int | None = None


class Params(Struct, forbid_unknown_fields=True, rename="camel"):
    """Another word to the reader of the code."""

    workflow_id: Annotated[str, Meta(description="Which workflow", pattern="^[a-z]+$")]
    verdict: bool | None
    first: Entry | None = None
    entries: list[Entry] = []
    depth: Literal["brief", "full"] = "brief"
    variables: dict[str, Any] = {}


class Nothing(Struct, forbid_unknown_fields=True):
    pass


ENTRY = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "rank": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}


def test_a_struct_becomes_one_flat_closed_schema() -> None:
    assert input_schema(Params) == {
        "type": "object",
        "properties": {
            "workflowId": {"type": "string", "description": "Which workflow", "pattern": "^[a-z]+$"},
            "verdict": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "first": ENTRY,
            "entries": {"type": "array", "items": ENTRY},
            "depth": {"enum": ["brief", "full"], "default": "brief"},
            "variables": {"type": "object"},
        },
        "required": ["workflowId", "verdict"],
        "additionalProperties": False,
    }


def test_a_tool_without_arguments_says_so() -> None:
    assert input_schema(Nothing) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_the_same_struct_always_gives_the_same_bytes() -> None:
    assert msgspec.json.encode(input_schema(Params)) == msgspec.json.encode(input_schema(Params))


scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "brief", "x1"])
values = scalars | st.lists(scalars, max_size=2) | st.fixed_dictionaries({"title": scalars})
arguments = st.fixed_dictionaries(
    {"workflowId": values, "verdict": values},
    optional={"first": values, "entries": st.lists(values, max_size=2), "depth": values, "other": values},
)


@given(arguments)
def test_what_the_schema_allows_the_struct_accepts(arguments: dict[str, Any]) -> None:
    if jsonschema_rs.is_valid(input_schema(Params), arguments):
        msgspec.convert(arguments, Params)
