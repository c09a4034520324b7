"""The reference part of a surface's page, from its tool definitions.

Only what is below the mark is generated; the introduction above it is written by hand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from interlock.core.values import Json
from interlock.surfaces.tool import Surface, Tool
from tools.pages.codes import BLOCKERS, ERRORS
from tools.pages.results import RESULTS
from tools.pages.tables import cell, table

WIDTH = 110
MARK = "<!-- Below: written by `python -m tools.pages docs` from the tool definitions. -->"


def with_reference(page: str, surface: Surface) -> str:
    """Return a page with the current reference below its introduction."""
    introduction = page.partition(MARK)[0].rstrip()
    return "\n".join((introduction, "", MARK, "", *_reference(surface), ""))


def _reference(surface: Surface) -> Iterator[str]:
    yield "## Tools"
    for tool in surface.tools.values():
        yield from _tool(tool, RESULTS[surface.name].get(tool.name) or _output(tool.output_schema))
    yield from ("", "## Errors", "")
    yield from table(
        ("code", "meaning"), [(f"`{code}`", text) for code, text in ERRORS[surface.name].items()]
    )
    if surface.name == "execution":
        yield from ("", "## Blockers", "", "The `code` of each entry in `blockers` of a blocked answer.", "")
        yield from table(("code", "meaning"), [(f"`{code}`", text) for code, text in BLOCKERS.items()])


def _tool(tool: Tool, result: str) -> Iterator[str]:
    notes = (
        ("Reads only.", tool.read_only),
        ("Safe to repeat.", tool.idempotent and not tool.read_only),
        ("Not listed; it can be called.", not tool.listed),
    )
    text = " ".join([_sentence(tool.description), *(f"*{note}*" for note, applies in notes if applies)])
    yield from ("", f"### {tool.name}", "", *_wrapped(text))
    schema = tool.argument_schema()
    properties, required = schema.get("properties"), schema.get("required", [])
    if isinstance(properties, Mapping) and properties:
        assert isinstance(required, Sequence)
        rows = [
            (f"`{name}`", _type(value), _meaning(value, name in required))
            for name, value in properties.items()
        ]
        yield from ("", *table(("parameter", "type", "meaning"), rows))
    yield from ("", *_wrapped(f"Result: {result}"))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _output(schema: Mapping[str, Json] | None) -> str:
    assert schema is not None, "tools.pages.results describes the result of a tool without an output schema"
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    return ", ".join(f"`{name}` ({_type(value)})" for name, value in properties.items()) + "."


def _type(schema: Json) -> str:
    match schema:
        case {"enum": [*words]}:
            return ", ".join(f"`{word}`" for word in words)
        case {"anyOf": [*choices]}:
            return " or ".join(map(_type, choices))
        case {"type": "array", "items": Mapping() as items} if items:
            return f"array of {_type(items)}"
        case {"type": [*kinds]}:
            return " or ".join(map(str, kinds))
        case {"type": str() as kind}:
            return kind
        case _:
            return "any value"


def _meaning(schema: Json, required: bool) -> str:
    fields = schema if isinstance(schema, Mapping) else {}
    parts = (
        "**required.**" if required else "",
        _sentence(cell(str(fields["description"]))) if "description" in fields else "",
        f"Default `{fields['default']}`." if fields.get("default") else "",
    )
    return " ".join(part for part in parts if part)
