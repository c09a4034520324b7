"""Text in JSON, YAML, TOON or Markdown becomes one kind of value, with faults instead of exceptions.

Limits are the same for every format: 1 MB, 64 levels, no NUL, no number that canonical JSON cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, assert_never

from msgspec import Struct

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.locations import Fault, Location, Parsed, Path, SourceLocation
from interlock.core.values import Json

LARGEST_FILE = 1_000_000
DEEPEST = 64
LARGEST_INTEGER = 2**53 - 1

Format = Literal["json", "yaml", "toon"]

FORMATS: dict[str, Format] = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toon": "toon"}


class Unreadable(Struct, frozen=True):
    """The text has no value at all."""

    fault: Fault


def parse(file: str, text: str, form: Format, report: Report) -> Parsed | None:
    """Read a text, or report why it has no value."""
    if (offset := text.find("\0")) >= 0:
        report.fault(file, Fault("IL005", "the file holds a NUL character", place_of(text, offset)))
        return None
    read = _read(file, text, form, report)
    if isinstance(read, Unreadable):
        report.fault(file, read.fault)
        return None
    return read if _is_storable(read, report) else None


def decode(file: str, raw: bytes, report: Report) -> str | None:
    """Turn a file's bytes into text within the size limit."""
    if len(raw) > LARGEST_FILE:
        report.fault(file, Fault("IL002", f"the file has {len(raw)} bytes of at most {LARGEST_FILE}"))
        return None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        report.fault(file, Fault("IL001", f"not UTF-8 text: byte {error.start} is invalid"))
        return None


def place_of(text: str, offset: int) -> Location:
    before = text[:offset]
    return Location(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _read(file: str, text: str, form: Format, report: Report) -> Parsed | Unreadable:
    match form:
        case "json":
            from interlock.authoring.text.json_text import read_json

            return read_json(file, text, report)
        case "yaml":
            from interlock.authoring.text.yaml_text import read_yaml

            return read_yaml(file, text, report)
        case "toon":
            from interlock.authoring.text.toon_text import read_toon

            return read_toon(file, text, report)
        case _:
            assert_never(form)


def _is_storable(parsed: Parsed, report: Report) -> bool:
    """Refuse, at its place, the first value that could not be hashed, stored or sent."""
    if _is_harmless(parsed.value, 0):
        return True
    root = SourceLocation(parsed)
    for path, value in _values(parsed.value):
        if (fault := _fault_of(value, len(path))) is not None:
            report.add(fault.code, fault.message, SourceLocation(root.parsed, path))
            return False
    return True


def _is_harmless(value: Json, depth: int) -> bool:
    """The same question without places, which nearly every file answers with yes."""
    if isinstance(value, str):
        return _is_plain(value)
    if isinstance(value, dict):
        return depth < DEEPEST and all(
            _is_plain(key) and _is_harmless(one, depth + 1) for key, one in value.items()
        )
    if isinstance(value, list):
        return depth < DEEPEST and all(_is_harmless(one, depth + 1) for one in value)
    return _fault_of(value, depth) is None


def _values(value: Json) -> Iterator[tuple[Path, Json]]:
    todo: list[tuple[Path, Json]] = [((), value)]
    while todo:
        path, one = todo.pop()
        yield path, one
        if len(path) > DEEPEST:
            continue
        if isinstance(one, dict):
            for key, child in one.items():
                yield (*path, key), key
                todo.append(((*path, key), child))
        elif isinstance(one, list):
            todo.extend(((*path, index), child) for index, child in enumerate(one))


def _fault_of(value: Json, depth: int) -> Fault | None:
    if depth > DEEPEST:
        return Fault("IL003", f"nested deeper than {DEEPEST} levels")
    if isinstance(value, str) and not _is_plain(value):
        return Fault("IL005", "the text holds a NUL character or an unpaired surrogate")
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return Fault("IL010", "the integer needs more than 53 bits")
    if isinstance(value, float) and not math.isfinite(value):
        return Fault("IL010", "the number is not finite")
    return None


def _is_plain(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
