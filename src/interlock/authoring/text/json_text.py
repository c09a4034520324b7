"""Reads JSON: the value by the standard library, the locations by a scan when they are needed."""

from __future__ import annotations

import json
import re

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.locations import LineIndex, Location, Locations, Parsed, Path, Unreadable
from interlock.core.values import Json

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_COMMA_AT_END = re.compile(r",\s*[}\]]")
_LONGEST_INTEGER = 400
_MEANINGS = {
    "Expecting value": "a value is missing or wrong here",
    "Expecting property name enclosed in double quotes": "the name of a field must be in double quotes",
    "Expecting ':' delimiter": "a ':' is missing here",
    "Expecting ',' delimiter": "a ',' or a closing bracket is missing here",
    "Unterminated string starting at": "a quote that is not closed",
    "Extra data": "something follows the end of the value",
    "Invalid control character at": "a line break or control character inside quotes; write \\n",
}


def read_json(file: str, text: str, report: Report) -> Parsed | Unreadable:
    """Read a JSON text and report its duplicate keys."""
    has_duplicates = False

    def object_of(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal has_duplicates
        fields = dict(pairs)
        has_duplicates = has_duplicates or len(fields) < len(pairs)
        return fields

    try:
        # An integer that is too long for Python becomes infinite, and is reported where it occurs.
        value = json.loads(
            text,
            object_pairs_hook=object_of,
            parse_int=lambda digits: int(digits) if len(digits) < _LONGEST_INTEGER else float(digits),
        )
    except json.JSONDecodeError as error:
        return _syntax_error(text, error)
    except RecursionError:
        return Unreadable("IL003", "nested too deeply")
    if has_duplicates:
        for path, location in scan_json(text)[1]:
            report.add_at(file, "IL006", f"duplicate key '{path[-1]}'", location)
    return Parsed(file, value, lambda: scan_json(text)[0])


def _syntax_error(text: str, error: json.JSONDecodeError) -> Unreadable:
    """Return what the parser's error means, where it is, and what to do about it."""
    location = Location(error.lineno, error.colno)
    rest, before = text[error.pos :].lstrip(), text[: error.pos].rstrip()
    if not text.strip():
        return Unreadable("IL004", "the file is empty", Location(), "write a workflow, or remove the file")
    if rest.startswith(("//", "/*", "#")):
        return Unreadable("IL004", "JSON has no comments", location, "remove the comment, or write YAML")
    comma = error.pos if rest.startswith(",") else len(before) - 1  # Python 3.13 points at it, 3.12 past it
    if _COMMA_AT_END.match(text, max(comma, 0)):
        at = LineIndex(text).location(comma)
        return Unreadable("IL004", "a comma after the last entry", at, "remove the comma")
    if not rest:
        return Unreadable("IL004", "the text ends too early", location, "close every bracket and quote")
    return Unreadable("IL004", _MEANINGS.get(error.msg, error.msg), location)


def scan_json(text: str) -> tuple[Locations, list[tuple[Path, Location]]]:
    """Find where every key and value of valid JSON begins, and the duplicate keys."""
    scanner = _Scanner(LineIndex(text))
    for match in _TOKEN.finditer(text):
        scanner.take(match.group(), match.start())
    return Locations(scanner.values, scanner.keys), scanner.duplicates


class _Scanner:
    def __init__(self, lines: LineIndex) -> None:
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self.duplicates: list[tuple[Path, Location]] = []
        self._lines = lines
        self._path: list[str | int] = []
        self._expects_key = False

    def take(self, token: str, offset: int) -> None:
        match token:
            case "{" | "[":
                self._locate_value(offset)
                self._path.append("" if token == "{" else 0)
                self._expects_key = token == "{"
            case "}" | "]":
                self._path.pop()
                self._expects_key = False
            case ",":
                last = self._path[-1]
                if isinstance(last, int):
                    self._path[-1] = last + 1
                self._expects_key = isinstance(last, str)
            case ":":
                self._expects_key = False
            case _ if self._expects_key:
                self._path[-1] = json.loads(token)
                path, location = tuple(self._path), self._lines.location(offset)
                if path in self.keys:
                    self.duplicates.append((path, location))
                self.keys[path] = location
            case _:
                self._locate_value(offset)

    def _locate_value(self, offset: int) -> None:
        self.values[tuple(self._path)] = self._lines.location(offset)
