"""Parses JSON, YAML or TOON into one kind of value, and reports diagnostics instead of raising exceptions.

The limits are the same for every format: 1 MB, 64 levels, no NUL, no number that canonical JSON cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, assert_never

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.text.json_text import read_json
from interlock.authoring.text.locations import DEEPEST, LineIndex, Parsed, Path, SourceLocation, Unreadable
from interlock.authoring.text.toon_text import read_toon
from interlock.authoring.text.yaml_text import read_yaml
from interlock.core.values import Json

LARGEST_FILE = 1_000_000
LARGEST_INTEGER = 2**53 - 1

Format = Literal["json", "yaml", "toon"]

FORMATS: dict[str, Format] = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toon": "toon"}


def parse_text(file: str, text: str, form: Format, report: Report) -> Parsed | None:
    """Parse a text, or report why it has no value."""
    if (offset := text.find("\0")) >= 0:
        report.add_at(file, "IL005", "the file contains a NUL character", LineIndex(text).location(offset))
        return None
    match form:
        case "json":
            parsed = read_json(file, text, report)
        case "yaml":
            parsed = read_yaml(file, text, report)
        case "toon":
            parsed = read_toon(file, text, report)
        case _:
            assert_never(form)
    if isinstance(parsed, Unreadable):
        report.add_at(file, parsed.code, parsed.message, parsed.location, parsed.next_action)
        return None
    if _is_storable(parsed.value, 0):
        return parsed
    for path, value in _values(parsed.value):
        if (objection := _objection(value, len(path))) is not None:
            report.add(*objection, SourceLocation(parsed, path))
            break
    return None


def decode(file: str, raw: bytes, report: Report) -> str | None:
    """Decode a file's bytes as text, or report that they are too many or not UTF-8."""
    if len(raw) > LARGEST_FILE:
        report.add_at(file, "IL002", f"the file has {len(raw)} bytes; the limit is {LARGEST_FILE}")
        return None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        report.add_at(file, "IL001", f"not UTF-8 text: byte {error.start} is invalid")
        return None


def _is_storable(value: Json, depth: int) -> bool:
    """Say whether a value can be hashed, stored and sent; nearly all can, so this keeps no paths."""
    if isinstance(value, str):
        return _has_valid_characters(value)
    if isinstance(value, dict):
        return depth < DEEPEST and all(
            _has_valid_characters(key) and _is_storable(child, depth + 1) for key, child in value.items()
        )
    if isinstance(value, list):
        return depth < DEEPEST and all(_is_storable(child, depth + 1) for child in value)
    return _objection(value, depth) is None


def _values(root: Json) -> Iterator[tuple[Path, Json]]:
    """Yield every key and value with its path, down to the first level that is too deep."""
    pending: list[tuple[Path, Json]] = [((), root)]
    while pending:
        path, value = pending.pop()
        yield path, value
        if len(path) > DEEPEST:
            continue
        if isinstance(value, dict):
            for key, child in value.items():
                yield (*path, key), key
                pending.append(((*path, key), child))
        elif isinstance(value, list):
            pending.extend(((*path, index), child) for index, child in enumerate(value))


def _objection(value: Json, depth: int) -> tuple[str, str] | None:
    """Return code and message of what makes a value unstorable."""
    if depth > DEEPEST:
        return "IL003", f"nested deeper than {DEEPEST} levels"
    if isinstance(value, str) and not _has_valid_characters(value):
        return "IL005", "the text contains a NUL character or an unpaired surrogate"
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "IL010", "the integer needs more than 53 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "IL010", "the number is not finite"
    return None


def _has_valid_characters(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
