"""Markdown with front matter: the fields are YAML, the body is the text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import parse_text
from interlock.authoring.text.locations import Location, Parsed, no_locations
from interlock.core.values import Json

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|$)", re.DOTALL)


class Page(Struct, frozen=True):
    """A Markdown file, split into its front matter and its body."""

    fields: Parsed
    body: str


def read_page(file: str, text: str, report: Report) -> Page:
    """Split front matter from body; front matter that is not an object is reported and ignored."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return Page(Parsed(file, {}, no_locations), text.strip())
    front, body = match[1] or "", text[match.end() :].strip()
    # The leading newline replaces the opening line, so that lines count from the top of the file.
    fields = parse_text(file, f"\n{front}", "yaml", report)
    if fields is not None and isinstance(fields.value, Mapping):
        return Page(fields, body)
    if fields is not None and fields.value is not None:
        report.add_at(file, "IL102", "front matter must be an object", Location(2, 1))
    # Front matter that is not YAML still has fields, if they take one line each.
    lines = (line.partition(":") for line in front.splitlines() if not line.startswith((" ", "\t", "-")))
    value = {name.strip(): rest.strip().strip("\"'") for name, colon, rest in lines if colon}
    return Page(Parsed(file, value, no_locations), body)


def as_step(page: Page) -> Parsed:
    """Return a step's file as the value of a step: its fields, and its body as the prompt."""
    assert isinstance(page.fields.value, Mapping)
    value: dict[str, Json] = dict(page.fields.value)
    if page.body:
        value["prompt"] = page.body
    return Parsed(page.fields.file, value, lambda: page.fields.locations)


def titled(name: str) -> str:
    """Return a title made from a file's name."""
    return " ".join(word.capitalize() for word in re.split(r"[-_ ]+", name) if word)
