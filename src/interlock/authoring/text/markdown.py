"""Markdown with front matter: the fields are YAML, the body is the words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import parse
from interlock.authoring.text.locations import Fault, Location, Parsed, nowhere
from interlock.core.values import Json

_FRONT = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|$)", re.DOTALL)


class Page(Struct, frozen=True):
    """A Markdown file taken apart."""

    fields: Parsed
    body: str

    def text(self, name: str) -> str:
        value = self.fields.value.get(name) if isinstance(self.fields.value, Mapping) else None
        return str(value) if isinstance(value, (str, int, float)) else ""


def read_page(file: str, text: str, report: Report) -> Page:
    """Split front matter from body; front matter that is no object is reported and left out."""
    found = _FRONT.match(text)
    if found is None:
        return Page(Parsed(file, {}, nowhere), text.strip())
    # the leading newline stands for the opening line, so that places count from the top of the file
    fields = parse(file, "\n" + (found.group(1) or ""), "yaml", report)
    if fields is not None and not isinstance(fields.value, (Mapping, type(None))):
        report.fault(file, Fault("IL102", "front matter is a list of fields", Location(2, 1)))
    if fields is None or not isinstance(fields.value, Mapping):
        fields = _loose(file, found.group(1) or "")
    return Page(fields, text[found.end() :].strip())


def _loose(file: str, front: str) -> Parsed:
    """Fields that stand on one line each, for front matter that is not YAML."""
    lines = (line.partition(":") for line in front.splitlines() if not line.startswith((" ", "\t", "-")))
    value: Json = {name.strip(): text.strip().strip("\"'") for name, colon, text in lines if colon}
    return Parsed(file, value, nowhere)


def as_step(page: Page) -> Parsed:
    """A step's file as the value of a step: its fields, and its body as the prompt."""
    assert isinstance(page.fields.value, Mapping)
    value: dict[str, Json] = dict(page.fields.value)
    if page.body:
        value["prompt"] = page.body
    return Parsed(page.fields.file, value, lambda: page.fields.locations)


def titled(name: str) -> str:
    """A title from a file's name."""
    return " ".join(word.capitalize() for word in re.split(r"[-_ ]+", name) if word)
