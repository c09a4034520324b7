"""JSON with places: the value comes from the standard library, the places from a scan when asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.formats import Unreadable
from interlock.authoring.text.locations import (
    Fault,
    LineIndex,
    Location,
    Locations,
    Parsed,
    Path,
)
from interlock.core.values import Json

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_LONGEST_INTEGER = 400


def read_json(file: str, text: str, report: Report) -> Parsed | Unreadable:
    repeated: list[str] = []
    try:
        value = json.loads(text, object_pairs_hook=_noting(repeated), parse_int=_integer)
    except json.JSONDecodeError as error:
        return Unreadable(Fault("IL004", error.msg, Location(error.lineno, error.colno)))
    except RecursionError:
        return Unreadable(Fault("IL003", "nested too deeply"))
    parsed = Parsed(file, value, lambda: scan(text)[0])
    if repeated:
        _report_repeated(parsed, scan(text)[1], report)
    return parsed


class _Pairs:
    """Builds objects and notes the keys that stand twice in one of them."""

    def __init__(self, repeated: list[str]) -> None:
        self._repeated = repeated

    def __call__(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        made = dict(pairs)
        if len(made) < len(pairs):
            self._repeated.append(pairs[0][0])
        return made


def _noting(repeated: list[str]) -> _Pairs:
    return _Pairs(repeated)


def _integer(word: str) -> int | float:
    """An integer too long for Python becomes infinite, which is told at its place like any such number."""
    return int(word) if len(word) < _LONGEST_INTEGER else float(word)


def _report_repeated(parsed: Parsed, repeats: list[tuple[Path, Location]], report: Report) -> None:
    for path, location in repeats:
        report.fault(parsed.file, Fault("IL006", f"the key '{path[-1]}' stands twice", location))


def scan(text: str) -> tuple[Locations, list[tuple[Path, Location]]]:
    """Find where every key and value of valid JSON begins, and the keys that are repeated."""
    scanner = _Scanner(LineIndex(text))
    for token, offset in _tokens(text):
        scanner.take(token, offset)
    return Locations(scanner.values, scanner.keys), scanner.repeats


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    return ((found.group(), found.start()) for found in _TOKEN.finditer(text))


class _Scanner:
    def __init__(self, lines: LineIndex) -> None:
        self.values: dict[Path, Location] = {}
        self.keys: dict[Path, Location] = {}
        self.repeats: list[tuple[Path, Location]] = []
        self._lines = lines
        self._path: list[str | int] = []
        self._expects_key = False

    def take(self, token: str, offset: int) -> None:
        match token:
            case "{" | "[":
                self._place_value(offset)
                self._path.append("" if token == "{" else 0)
                self._expects_key = token == "{"
            case "}" | "]":
                self._path.pop()
                self._expects_key = False
            case ",":
                self._next()
            case ":":
                self._expects_key = False
            case _ if self._expects_key:
                self._key(token, offset)
            case _:
                self._place_value(offset)

    def _next(self) -> None:
        last = self._path[-1]
        if isinstance(last, int):
            self._path[-1] = last + 1
        self._expects_key = isinstance(last, str)

    def _key(self, token: str, offset: int) -> None:
        self._path[-1] = json.loads(token)
        path, location = tuple(self._path), self._lines.location(offset)
        if path in self.keys:
            self.repeats.append((path, location))
        self.keys[path] = location

    def _place_value(self, offset: int) -> None:
        self.values[tuple(self._path)] = self._lines.location(offset)
