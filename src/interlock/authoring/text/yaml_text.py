"""YAML with places, built from the parser's events so that nothing but plain data can come out of it.

Plain words follow YAML 1.2 (`yes` and `no` are texts); tags are refused and aliases are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import DEEPEST, Unreadable
from interlock.authoring.text.locations import Fault, Location, Locations, Parsed, Path
from interlock.core.values import Json

if TYPE_CHECKING:
    from yaml.events import AliasEvent, Event, ScalarEvent

MOST_VALUES = 200_000

_INTEGER = re.compile(r"[-+]?[0-9]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Json] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


class _Refused(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def read_yaml(file: str, text: str, report: Report) -> Parsed | Unreadable:
    from interlock.authoring.text.yaml_plain import Irregular, read_plain

    try:
        return Parsed(file, read_plain(text), lambda: _places(file, text))
    except Irregular:
        return _read_carefully(file, text, report)


def _places(file: str, text: str) -> Locations:
    """Read once more, to say where things stand; faults have been reported before."""
    read = _read_carefully(file, text, Report())
    return read.locations if isinstance(read, Parsed) else Locations({}, {})


def _read_carefully(file: str, text: str, report: Report) -> Parsed | Unreadable:
    import yaml

    builder = _Builder(file, report)
    try:
        value = builder.document(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = Location(mark.line + 1, mark.column + 1) if mark else Location()
        return Unreadable(Fault("IL004", error.problem or "not valid YAML", location))
    except yaml.reader.ReaderError as error:
        return Unreadable(Fault("IL004", error.reason, _place_of(text.encode()[: error.position])))
    except yaml.YAMLError as error:
        return Unreadable(Fault("IL004", str(error).splitlines()[0]))
    except _Refused as error:
        return Unreadable(error.fault)
    locations = Locations(builder.values, builder.keys)
    return Parsed(file, value, lambda: locations)


def _place_of(before: bytes) -> Location:
    lines = before.decode(errors="ignore").split("\n")
    return Location(len(lines), len(lines[-1]) + 1)


class _Builder:
    """Composes one document; every value, also one that an alias repeats, counts against a bound."""

    def __init__(self, file: str, report: Report) -> None:
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self._file = file
        self._report = report
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._count = 0

    def document(self, events: Iterator[Event]) -> Json:
        from yaml import events as kinds

        value: Json = None
        documents = 0
        for event in events:
            if isinstance(event, kinds.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused(Fault("IL007", "a second document begins here", _place(event)))
            elif isinstance(event, kinds.NodeEvent):
                value = self._value(event, events, ())
        return value

    def _value(self, event: Event, events: Iterator[Event], path: Path) -> Json:
        from yaml import events as kinds

        self._admit(event, path)
        if isinstance(event, kinds.AliasEvent):
            return self._alias(event)
        before = self._count
        value = self._plain(event, events, path)
        if isinstance(event, kinds.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before + 1)
        return value

    def _plain(self, event: Event, events: Iterator[Event], path: Path) -> Json:
        from yaml import events as kinds

        if isinstance(event, kinds.ScalarEvent):
            return _scalar(event)
        if isinstance(event, kinds.SequenceStartEvent):
            return self._sequence(events, path)
        return self._mapping(events, path)

    def _admit(self, event: Event, path: Path) -> None:
        self.values.setdefault(path, _place(event))
        self._spend(1, event)
        if len(path) > DEEPEST:
            raise _Refused(Fault("IL003", f"nested deeper than {DEEPEST} levels", _place(event)))
        if getattr(event, "tag", None) not in (None, "!"):
            raise _Refused(Fault("IL007", "tags are not allowed", _place(event)))

    def _spend(self, values: int, event: Event) -> None:
        self._count += values
        if self._count > MOST_VALUES:
            raise _Refused(Fault("IL007", "the aliases multiply beyond all bounds", _place(event)))

    def _alias(self, event: AliasEvent) -> Json:
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise _Refused(
                Fault("IL007", f"the alias '{event.anchor}' has no finished anchor", _place(event))
            )
        value, size = found
        self._spend(size, event)
        return value

    def _sequence(self, events: Iterator[Event], path: Path) -> list[Json]:
        from yaml.events import SequenceEndEvent

        made: list[Json] = []
        while not isinstance(event := next(events), SequenceEndEvent):
            made.append(self._value(event, events, (*path, len(made))))
        return made

    def _mapping(self, events: Iterator[Event], path: Path) -> dict[str, Json]:
        from yaml.events import MappingEndEvent

        made: dict[str, Json] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            key = self._key(event)
            if key in made:
                fault = Fault("IL006", f"the key '{key}' stands twice", _place(event))
                self._report.fault(self._file, fault)
            self.keys[(*path, key)] = _place(event)
            made[key] = self._value(next(events), events, (*path, key))
        return made

    def _key(self, event: Event) -> str:
        from yaml.events import ScalarEvent

        if not isinstance(event, ScalarEvent) or event.value == "<<":
            raise _Refused(Fault("IL007", "a key must be one plain word", _place(event)))
        return event.value


def _place(event: Event) -> Location:
    mark = event.start_mark
    return Location(mark.line + 1, mark.column + 1) if mark else Location()


def _scalar(event: ScalarEvent) -> Json:
    text: str = event.value
    return text if event.style else plain_value(text)


def plain_value(text: str) -> Json:
    """What a word without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
