"""The value of a parsed file, and the source location of each of its parts.

Locations are computed when a diagnostic asks for one, so that files without diagnostics cost nothing extra.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from interlock.core.values import Json

OUR_SCHEMAS = (
    "step-workflow.schema.json",
    "activity-workflow.schema.json",
    "activity.schema.json",
    "scenario.schema.json",
)
DEEPEST = 64  # levels of nesting, in every format

Path: TypeAlias = tuple[str | int, ...]
Strictness = Literal["strict", "resembling", "lenient"]


class Location(Struct, frozen=True):
    line: int = 1
    column: int = 1


START_OF_FILE = Location()


class Locations(Struct, frozen=True):
    """Where keys and values begin."""

    values: Mapping[Path, Location]
    keys: Mapping[Path, Location]


class Parsed:
    """A file's value, with the locations of its parts when they are needed."""

    def __init__(
        self, file: str, value: Json, locate: Callable[[], Locations], editor_schema: str = ""
    ) -> None:
        self.file = file
        self.value = value
        self._locate = locate
        self._editor_schema = editor_schema  # what a comment names for editors

    @cached_property
    def locations(self) -> Locations:
        return self._locate()

    @property
    def strictness(self) -> Strictness:
        """How surely an unknown name is a mistake: always if the file names one of our schemas.

        YAML may also be written for another server, so there a name is a mistake if it resembles one of ours.
        JSON and TOON are others' forms, where unknown names are warnings; `$lenient: true` asks for that too.
        Only Interlock has scenarios.
        """
        if ".scenario." in self.file:
            return "strict"
        fields = self.value if isinstance(self.value, Mapping) else {}
        if fields.get("$lenient") is True:
            return "lenient"
        schema = str(fields.get("$schema", self._editor_schema)).rpartition("/")[2]
        if schema in OUR_SCHEMAS or self.file.endswith(".md"):
            return "strict"
        return "resembling" if self.file.lower().endswith((".yaml", ".yml")) else "lenient"


class Unreadable(Struct, frozen=True):
    """Why a text has no value, as the parts of a diagnostic."""

    code: str
    message: str
    location: Location = START_OF_FILE
    next_action: str = ""


class SourceLocation(Struct, frozen=True):
    """A value in a file, by its path from the root; `on_key` points at the key instead."""

    parsed: Parsed
    path: Path = ()
    on_key: bool = False

    def __truediv__(self, step: str | int) -> SourceLocation:
        return SourceLocation(self.parsed, (*self.path, step))

    def key(self, name: str) -> SourceLocation:
        return SourceLocation(self.parsed, (*self.path, name), on_key=True)

    def either(self, *names: str) -> SourceLocation:
        """Return the first of these fields that the file has, or else the first name."""
        return self.first_of((name,) for name in names)

    def first_of(self, paths: Iterable[Path]) -> SourceLocation:
        """Return the first of these paths below that the file has, or else the first path."""
        below = [SourceLocation(self.parsed, (*self.path, *path)) for path in paths]
        return next((location for location in below if location._value() is not None), below[0])

    def holding(self, text: str) -> SourceLocation:
        """Return the first string at or below this value that contains the text, or else the value itself."""
        strings = _strings(self._value(), self.path)
        path = next((path for path, string in strings if text in string), self.path)
        return SourceLocation(self.parsed, path)

    def _value(self) -> Json:
        value = self.parsed.value
        for step in self.path:
            if isinstance(value, Mapping) and step in value:
                value = value[str(step)]
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def located(self) -> Location:
        """Return line and column; a value without a location has that of the nearest value around it."""
        locations = self.parsed.locations
        if self.on_key and self.path in locations.keys:
            return locations.keys[self.path]
        for length in range(len(self.path), -1, -1):
            if (location := locations.values.get(self.path[:length])) is not None:
                return location
        return Location()


def _strings(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _strings(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _strings(child, (*path, index))


class LineIndex:
    """Turns character offsets into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == "\n")]

    def location(self, offset: int) -> Location:
        row = bisect_right(self._starts, offset) - 1
        return Location(row + 1, offset - self._starts[row] + 1)


def no_locations() -> Locations:
    return Locations({}, {})
