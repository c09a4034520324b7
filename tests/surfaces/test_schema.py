"""The input schema of a tool, which a model reads: exact, closed, and short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from interlock.surfaces.parameters import input_schema


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
entries = st.fixed_dictionaries({"title": st.text(max_size=3)}, optional={"rank": st.integers(-9, 9)})
allowed = {
    "workflowId": st.text("abz", min_size=1, max_size=3),
    "verdict": st.booleans() | st.none(),
    "first": entries,
    "entries": st.lists(entries, max_size=2),
    "depth": st.sampled_from(["brief", "full"]),
    "variables": st.dictionaries(st.text(max_size=3), values, max_size=2),
}


@st.composite
def allowed_arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments that the schema allows: the required ones, and some of the others."""
    required = ("workflowId", "verdict")
    optional = draw(st.sets(st.sampled_from([name for name in allowed if name not in required])))
    return {name: draw(allowed[name]) for name in (*required, *sorted(optional))}


@st.composite
def almost_allowed_arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Allowed arguments in which one is missing, added, or has any value."""
    arguments = draw(allowed_arguments())
    name = draw(st.sampled_from([*allowed, "other"]))
    if draw(st.booleans()):
        return {**arguments, name: draw(values)}
    return {kept: value for kept, value in arguments.items() if kept != name}


def accepts(arguments: dict[str, Any]) -> bool:
    try:
        msgspec.convert(arguments, Params)
    except msgspec.ValidationError:
        return False
    return True


@given(allowed_arguments())
def test_what_the_schema_allows_the_struct_accepts(arguments: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(input_schema(Params), arguments)
    assert accepts(arguments)


@given(almost_allowed_arguments())
def test_what_the_struct_refuses_the_schema_does_not_allow(arguments: dict[str, Any]) -> None:
    event(f"accepted: {accepts(arguments)}")
    if not accepts(arguments):
        assert not jsonschema_rs.is_valid(input_schema(Params), arguments)
