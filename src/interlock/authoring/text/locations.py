"""A parsed file that can still say where each of its values stands.

Places are computed only when a diagnostic asks for one, so that files without faults cost nothing extra.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct

from interlock.core.values import Json

Path: TypeAlias = tuple[str | int, ...]


class Location(Struct, frozen=True):
    line: int = 1
    column: int = 1


class Locations(Struct, frozen=True):
    """Where keys and values begin."""

    values: Mapping[Path, Location]
    keys: Mapping[Path, Location]


class Fault(Struct, frozen=True):
    """A fault found while reading, which knows its own place."""

    code: str
    message: str
    location: Location = Location()
    fix: str = ""


class Parsed:
    """A file's value, with its places at hand when they are needed."""

    def __init__(self, file: str, value: Json, locate: Callable[[], Locations]) -> None:
        self.file = file
        self.value = value
        self._locate = locate

    @cached_property
    def locations(self) -> Locations:
        return self._locate()


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
        """The first of these entries that was written."""
        value = self._value()
        written = (name for name in names if isinstance(value, Mapping) and name in value)
        return self / next(written, names[0])

    def holding(self, text: str) -> SourceLocation:
        """The first text at or below this value that holds these characters, or else the value itself."""
        found = next((path for path, one in _texts(self._value(), self.path) if text in one), self.path)
        return SourceLocation(self.parsed, found)

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
        locations = self.parsed.locations
        if self.on_key and self.path in locations.keys:
            return locations.keys[self.path]
        for length in range(len(self.path), -1, -1):
            if (found := locations.values.get(self.path[:length])) is not None:
                return found
        return Location()


def _texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _texts(one, (*path, index))


class LineIndex:
    """Turns character offsets into lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == "\n")]

    def location(self, offset: int) -> Location:
        row = bisect_right(self._starts, offset) - 1
        return Location(row + 1, offset - self._starts[row] + 1)


def nowhere() -> Locations:
    return Locations({}, {})
