"""The reference part of a surface's page, written from its tool definitions.

Only what stands below the mark is written; the introduction above it is a person's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from interlock.core.values import Json
from interlock.surfaces.tool import Surface, Tool
from tools.pages.codes import BLOCKERS, ERRORS
from tools.pages.results import RESULTS

WIDTH = 110
MARK = "<!-- Below: written by `python -m tools.pages docs` from the tool definitions. -->"


def with_reference(page: str, surface: Surface) -> str:
    """Put today's reference below the introduction of a page."""
    introduction = page.partition(MARK)[0].rstrip()
    return "\n".join((introduction, "", MARK, "", *_reference(surface), ""))


def _reference(surface: Surface) -> Iterator[str]:
    yield "## Tools"
    for tool in surface.tools.values():
        yield from _tool(tool, RESULTS[surface.name].get(tool.name) or _fields(tool.output_schema))
    yield from ("", "## Errors", "")
    yield from _table(("code", "meaning"), ERRORS[surface.name])
    if surface.name == "execution":
        yield from ("", "## Blockers", "", "The `code` of each entry in `blockers` of a blocked answer.", "")
        yield from _table(("code", "meaning"), {code.value: text for code, text in BLOCKERS.items()})


def _tool(tool: Tool, result: str) -> Iterator[str]:
    yield from ("", f"### {tool.name}", "", *_wrapped(f"{_told(tool.description)}{_nature(tool)}"))
    schema = tool.argument_schema()
    properties, required = schema.get("properties"), schema.get("required", [])
    if isinstance(properties, Mapping) and properties:
        assert isinstance(required, Sequence)
        yield from ("", "| parameter | type | |", "|---|---|---|")
        for name, one in properties.items():
            yield f"| `{name}` | {_type(one)} | {_about(one, name in required)} |"
    yield from ("", *_wrapped(f"Result: {result}"))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _told(description: str) -> str:
    return description if description.endswith(".") else f"{description}."


def _nature(tool: Tool) -> str:
    hidden = "" if tool.listed else " *Not listed; it can be called.*"
    if tool.read_only:
        return f" *Reads only.*{hidden}"
    return f" *Safe to repeat.*{hidden}" if tool.idempotent else hidden


def _fields(schema: Mapping[str, Json] | None) -> str:
    assert schema is not None, "a tool without an output schema has its result described"
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    return ", ".join(f"`{name}` ({_type(one)})" for name, one in properties.items()) + "."


def _type(schema: Json) -> str:
    match schema:
        case {"enum": [*choices]}:
            return ", ".join(f"`{one}`" for one in choices)
        case {"anyOf": [*options]}:
            return " or ".join(map(_type, options))
        case {"type": "array", "items": Mapping() as items} if items:
            return f"array of {_type(items)}"
        case {"type": [*kinds]}:
            return " or ".join(map(str, kinds))
        case {"type": str() as kind}:
            return kind
        case _:
            return "any value"


def _about(schema: Json, required: bool) -> str:
    fields = schema if isinstance(schema, Mapping) else {}
    told = _told(_cell(str(fields["description"]))) if "description" in fields else ""
    usual = f"Default `{fields['default']}`." if fields.get("default") else ""
    return " ".join(part for part in ("**required.**" if required else "", told, usual) if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(heads: tuple[str, str], rows: Mapping[str, str]) -> Iterator[str]:
    yield f"| {heads[0]} | {heads[1]} |"
    yield "|---|---|"
    for name, text in rows.items():
        yield f"| `{name}` | {text} |"
