"""Bundled texts as one surface reads them: what is marked for other surfaces is left out (rule 36).

A list entry, an entry of a mapping or a line of Markdown may begin with the names of surfaces, as in
`session and gated: …`. Only texts that come with the product are read so: elsewhere it may mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from interlock.core.values import MISSING, Json, Missing

WHOLE = ("when", "cause")  # a tool or an error of another surface is left out whole
_NAMES = r"(?:execution|session|gated|navigation|lookup)"
_MARK = re.compile(rf"({_NAMES}(?:(?:, | and ){_NAMES})*): ", re.IGNORECASE)
_LINE = re.compile(rf"(\s*(?:- |\d+\. )){_MARK.pattern}(.*)", re.IGNORECASE | re.DOTALL)


@lru_cache(maxsize=64)
def for_surface(text: str, surface: str, *, is_toon: bool) -> str:
    """Return a text without what is marked for other surfaces."""
    if not is_toon:
        return "".join(_line(line, surface) for line in text.splitlines(keepends=True))
    import toon_format

    from interlock.surfaces.shared.workflow_shapes import as_toon

    kept = _kept(toon_format.decode(text, strict=False), surface)
    return f"{as_toon(kept)}\n" if isinstance(kept, Mapping) else text


def _line(line: str, surface: str) -> str:
    marked = _LINE.match(line)
    if marked is None:
        return line
    return f"{marked[1]}{marked[3]}" if surface in marked[2].lower() else ""


def _kept(value: Json, surface: str) -> Json | Missing:
    match value:
        case str():
            marked = _MARK.match(value)
            if marked is None:
                return value
            return value[marked.end() :] if surface in marked[1].lower() else MISSING
        case list() | tuple():
            return [kept for member in value if not isinstance(kept := _kept(member, surface), Missing)]
        case Mapping():
            members = {name: _kept(member, surface) for name, member in value.items()}
            if any(isinstance(members.get(name), Missing) for name in WHOLE):
                return MISSING
            return {name: kept for name, kept in members.items() if not isinstance(kept, Missing)}
        case _:
            return value
