"""TOON with places: strict first, then lenient with a visible warning, so that nothing is lost unnoticed."""

from __future__ import annotations

import re

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import Unreadable
from interlock.authoring.text.locations import Fault, Location, Locations, Parsed, Path
from interlock.core.values import Json

_KEY = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s:\[{"-][^:\[{]*)(\[[^\]]*\])?(\{[^}]*\})?:(?:\s|$)')
_LINE = re.compile(r"line (\d+)", re.IGNORECASE)


def read_toon(file: str, text: str, report: Report) -> Parsed | Unreadable:
    import toon_format

    try:
        value: Json = toon_format.decode(text)
    except (toon_format.ToonDecodeError, ValueError, RecursionError) as error:
        return _read_loosely(file, text, _fault("IL008", error), report)
    return Parsed(file, value, lambda: scan(text))


def _read_loosely(file: str, text: str, why: Fault, report: Report) -> Parsed | Unreadable:
    import toon_format

    try:
        value: Json = toon_format.decode(text, strict=False)
    except (toon_format.ToonDecodeError, ValueError, RecursionError) as error:
        return Unreadable(_fault("IL004", error))
    report.fault(file, why)
    return Parsed(file, value, lambda: scan(text))


def _fault(code: str, error: Exception) -> Fault:
    message = str(error).splitlines()[0] if str(error) else "not valid TOON"
    line = getattr(error, "line", None)
    if not isinstance(line, int):
        found = _LINE.search(message)
        line = int(found.group(1)) if found else 1
    return Fault(code, message, Location(line, 1))


def scan(text: str) -> Locations:
    """Find keys and list items by their indentation."""
    scanner = _Scanner()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            scanner.take(line, number)
    return Locations(scanner.values, scanner.keys)


class _Scanner:
    """Keeps, for each open indentation, the path that lies there."""

    def __init__(self) -> None:
        self.values: dict[Path, Location] = {(): Location()}
        self.keys: dict[Path, Location] = {}
        self._open: list[tuple[int, Path]] = [(-1, ())]
        self._counts: dict[Path, int] = {}

    def take(self, line: str, number: int) -> None:
        indent = len(line) - len(line.lstrip(" "))
        rest = line[indent:]
        while self._open[-1][0] >= indent:
            self._open.pop()
        if rest.startswith("- "):
            self._item(rest[2:], indent, number)
        elif (found := _KEY.match(rest)) is not None:
            self._key(found, indent, number)
        else:
            self._item(rest, indent, number)

    def _item(self, rest: str, indent: int, number: int) -> None:
        parent = self._open[-1][1]
        index = self._counts.get(parent, 0)
        self._counts[parent] = index + 1
        path = (*parent, index)
        self.values[path] = Location(number, indent + 1)
        self._open.append((indent, path))
        if (found := _KEY.match(rest)) is not None:
            self._key(found, indent + 2, number)

    def _key(self, found: re.Match[str], indent: int, number: int) -> None:
        name = found.group(1).strip()
        key = name[1:-1] if name.startswith('"') else name
        path = (*self._open[-1][1], key)
        self.keys[path] = Location(number, indent + 1)
        inline = found.end() < len(found.string)
        self.values[path] = Location(number, indent + 1 + found.end()) if inline else self.keys[path]
        self._open.append((indent, path))
