"""Reads TOON: strictly first, then leniently with a warning, so that nothing is lost unnoticed."""

from __future__ import annotations

import re

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.locations import Location, Locations, Parsed, Path, Unreadable
from interlock.core.values import Json

_KEY = re.compile(r'("(?:[^"\\]|\\.)*"|[^\s:\[{"-][^:\[{]*)(\[[^\]]*\])?(\{[^}]*\})?:(?:\s|$)')
_LINE = re.compile(r"line (\d+)", re.IGNORECASE)


def read_toon(file: str, text: str, report: Report) -> Parsed | Unreadable:
    """Read a TOON text, and report what only the lenient decoder accepts."""
    import toon_format

    decode_errors = (toon_format.ToonDecodeError, ValueError, RecursionError)
    try:
        value: Json = toon_format.decode(text)
    except decode_errors as strict_error:
        try:
            value = toon_format.decode(text, strict=False)
        except decode_errors as error:
            return Unreadable("IL004", *_message_and_location(error))
        report.add_at(file, "IL008", *_message_and_location(strict_error))
    return Parsed(file, value, lambda: scan_toon(text))


def _message_and_location(error: Exception) -> tuple[str, Location]:
    message = str(error).splitlines()[0] if str(error) else "not valid TOON"
    line = getattr(error, "line", None)
    if not isinstance(line, int):
        match = _LINE.search(message)
        line = int(match.group(1)) if match else 1
    return message, Location(line, 1)


def scan_toon(text: str) -> Locations:
    """Find keys and list items by their indentation."""
    scanner = _Scanner()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):  # the decoder skips comments too
            scanner.take(line, number)
    return Locations(scanner.values, scanner.keys)


class _Scanner:
    """Keeps the path that each open indentation belongs to."""

    def __init__(self) -> None:
        self.values: dict[Path, Location] = {(): Location()}
        self.keys: dict[Path, Location] = {}
        self._open: list[tuple[int, Path]] = [(-1, ())]
        self._counts: dict[Path, int] = {}
        self._tables: set[Path] = set()

    def take(self, line: str, number: int) -> None:
        indent = len(line) - len(line.lstrip(" "))
        rest = line[indent:]
        while self._open[-1][0] >= indent:
            self._open.pop()
        if rest.startswith("- "):
            self._locate_item(rest[2:], indent, number)
        elif self._open[-1][1] not in self._tables and (match := _KEY.match(rest)) is not None:
            self._locate_key(match, indent, number)
        else:
            self._locate_item(rest, indent, number)

    def _locate_item(self, rest: str, indent: int, number: int) -> None:
        """Locate an item of a list or a row of a table, whose texts may look like keys."""
        parent = self._open[-1][1]
        index = self._counts.get(parent, 0)
        self._counts[parent] = index + 1
        path = (*parent, index)
        self.values[path] = Location(number, indent + 1)
        self._open.append((indent, path))
        if parent not in self._tables and (match := _KEY.match(rest)) is not None:
            self._locate_key(match, indent + 2, number)

    def _locate_key(self, match: re.Match[str], indent: int, number: int) -> None:
        name = match.group(1).strip()
        key = name[1:-1] if name.startswith('"') else name
        path = (*self._open[-1][1], key)
        self.keys[path] = Location(number, indent + 1)
        if match.group(3):
            self._tables.add(path)
        has_inline_value = match.end() < len(match.string)
        self.values[path] = (
            Location(number, indent + 1 + match.end()) if has_inline_value else self.keys[path]
        )
        self._open.append((indent, path))
