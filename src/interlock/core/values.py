"""The few shapes that every room shares: JSON values, variables, numbers, and text measured in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:
    from typing import Any

    Json = Any  # msgspec resolves annotations at run time and knows no recursive aliases

Variables: TypeAlias = Mapping[str, Json]

_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")

TRUNCATED = "\n\n[TRUNCATED]"


def cut(text: str, limit: int, marker: str = TRUNCATED) -> str:
    """Shorten text to at most `limit` UTF-8 bytes, marker included, at a character boundary."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    room = limit - len(marker.encode())
    return raw[:room].decode(errors="ignore") + marker


def lookup(variables: Variables, path: str) -> Json | Missing:
    """Follow a dotted path through nested objects; a key with a dot is never looked at."""
    value: Json = variables
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif part == "length" and isinstance(value, (list, tuple, str)):
            value = len(value)
        else:
            return MISSING
    return value


def same(left: Json, right: Json) -> bool:
    """Compare by value; a boolean is never a number, at any depth."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def number_of(value: Json | Missing) -> float | None:
    """Read a number, also from text; whole numbers stay exact, and a boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return value


def set_names(variables: Variables) -> set[str]:
    """Name the variables that have a value; `null` says that it is not known."""
    return {name for name, value in variables.items() if value is not None}


def with_member(whole: Json | Missing, members: Sequence[str], value: Json) -> Json:
    """Return a value with another one where the names of members lead to; the rest of it stays."""
    if not members:
        return value
    kept = whole if isinstance(whole, Mapping) else {}
    return {**kept, members[0]: with_member(kept.get(members[0]), members[1:], value)}


def merged(variables: Variables, delta: Variables) -> dict[str, Json]:
    """Merge shallowly what the workflow itself sets; there `null` deletes (rule 19)."""
    result = dict(variables)
    for name, value in delta.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


class Missing:
    """The value of a variable that nobody has set; distinct from every JSON value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()
