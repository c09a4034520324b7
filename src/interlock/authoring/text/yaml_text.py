"""Reads YAML from the parser's events, so that nothing but plain data can come out of it.

Tags are refused, and the values that aliases repeat are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.locations import (
    DEEPEST,
    Location,
    Locations,
    Parsed,
    Path,
    Unreadable,
    no_locations,
)
from interlock.authoring.text.yaml_errors import syntax_error
from interlock.authoring.text.yaml_plain import MOST_VALUES, Irregular, plain_value, read_plain
from interlock.core.values import Json

if TYPE_CHECKING:
    from yaml.events import Event


_EDITOR_SCHEMA = re.compile(r"(?:#.*\n|\s)*# yaml-language-server: \$schema=(\S+)")


class _Refused(Exception):
    """A feature of YAML that is not allowed."""

    def __init__(self, code: str, message: str, event: Event, next_action: str = "") -> None:
        super().__init__(message)
        self.unreadable = Unreadable(code, message, _location(event), next_action)


def read_yaml(file: str, text: str, report: Report) -> Parsed | Unreadable:
    """Read a YAML text; its locations are read later, if they are needed."""

    def locate() -> Locations:
        parsed = _read_with_locations(file, text, Report())  # diagnostics were reported the first time
        return parsed.locations if isinstance(parsed, Parsed) else no_locations()

    try:
        return Parsed(file, read_plain(text), locate, _editor_schema(text))
    except Irregular:
        return _read_with_locations(file, text, report)


def _read_with_locations(file: str, text: str, report: Report) -> Parsed | Unreadable:
    import yaml

    builder = _Builder(file, report)
    try:
        value = builder.document(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        return syntax_error(text, error)
    except yaml.reader.ReaderError as error:
        lines = text.encode()[: error.position].decode(errors="ignore").split("\n")
        return Unreadable("IL004", error.reason, Location(len(lines), len(lines[-1]) + 1))
    except yaml.YAMLError as error:
        return Unreadable("IL004", str(error).splitlines()[0])
    except _Refused as error:
        return error.unreadable
    locations = Locations(builder.values, builder.keys)
    return Parsed(file, value, lambda: locations, _editor_schema(text))


def _editor_schema(text: str) -> str:
    found = _EDITOR_SCHEMA.match(text)
    return found[1] if found else ""


class _Builder:
    """Composes one document; every value counts against a bound, including those that aliases repeat."""

    def __init__(self, file: str, report: Report) -> None:
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self._file = file
        self._report = report
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._count = 0

    def document(self, events: Iterator[Event]) -> Json:
        from yaml.events import DocumentStartEvent, NodeEvent

        value: Json = None
        documents = 0
        for event in events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused(
                        "IL007", "a second document begins here", event, "give it a file of its own"
                    )
            elif isinstance(event, NodeEvent):
                value = self._value(event, events, ())
        return value

    def _value(self, event: Event, events: Iterator[Event], path: Path) -> Json:
        from yaml.events import AliasEvent, NodeEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

        self.values.setdefault(path, _location(event))
        self._count_values(1, event)
        if len(path) > DEEPEST:
            raise _Refused("IL003", f"nested deeper than {DEEPEST} levels", event)
        if getattr(event, "tag", None) not in (None, "!"):
            raise _Refused("IL007", "tags are not allowed", event, "remove the tag")
        if isinstance(event, AliasEvent):
            if (anchor := event.anchor or "") not in self._anchors:
                raise _Refused("IL007", f"the alias '{event.anchor}' has no complete anchor before it", event)
            value, size = self._anchors[anchor]
            self._count_values(size, event)
            return value
        count_before = self._count
        if isinstance(event, ScalarEvent):
            value = event.value if event.style else plain_value(event.value)
        elif isinstance(event, SequenceStartEvent):
            members: list[Json] = []
            while not isinstance(member := next(events), SequenceEndEvent):
                members.append(self._value(member, events, (*path, len(members))))
            value = members
        else:
            value = self._mapping(events, path)
        if isinstance(event, NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - count_before + 1)
        return value

    def _count_values(self, values: int, event: Event) -> None:
        self._count += values
        if self._count > MOST_VALUES:
            raise _Refused("IL007", "the aliases expand to too many values", event)

    def _mapping(self, events: Iterator[Event], path: Path) -> dict[str, Json]:
        from yaml.events import MappingEndEvent, ScalarEvent

        fields: dict[str, Json] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            if not isinstance(event, ScalarEvent) or event.value == "<<":
                raise _Refused("IL007", "a key must be plain text", event)
            key: str = event.value
            if key in fields:
                self._report.add_at(self._file, "IL006", f"duplicate key '{key}'", _location(event))
            self.keys[(*path, key)] = _location(event)
            fields[key] = self._value(next(events), events, (*path, key))
        return fields


def _location(event: Event) -> Location:
    mark = event.start_mark
    return Location(mark.line + 1, mark.column + 1) if mark else Location()
