"""Sentences about a refusal, as tables: for each reason the ways to say it, the most exact one first.

A sentence has blanks for what is known of the refusal. The first one is said whose blanks can all be filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.definition.prompts import text_of
from interlock.core.run.outcomes import Code, Refusal
from interlock.core.values import Json


class When(Struct, frozen=True):
    """A sentence that is only said where something is known that it does not show."""

    known: str
    sentence: str


Ways: TypeAlias = str | When | tuple[str | When, ...]
Table: TypeAlias = Mapping[Code, Ways]

NOTHING = "(nothing)"  # where even the plainest sentence names something that the call left empty
CANNOT_TRANSITION = "Cannot transition to '{target}': "
LEFT_OUT = {
    "choice": "checkpoint '{left_out}' decides it, and its answer does not lead there from '{in_activity}'.",
    "step": "a path to it passes step '{left_out}' of activity '{in_activity}', which is not done.",
    "gate": "a path to it passes checkpoint '{left_out}' of activity '{in_activity}', which is not answered.",
}


def said(table: Table, refusal: Refusal) -> str:
    """Say what a table says about a refusal."""
    known, ways = _known(refusal), table[refusal.code]
    text, blanks = "", set[str]()
    for way in ways if isinstance(ways, tuple) else (ways,):
        text = way.sentence if isinstance(way, When) else way
        blanks = {name for _, name, _, _ in Formatter().parse(text) if name}
        if isinstance(way, When):
            blanks.add(way.known)
        if blanks <= known.keys():
            return text.format_map(known)
    return text.format_map(dict.fromkeys(blanks, NOTHING) | known)


def _known(refusal: Refusal) -> dict[str, str]:
    """Return what can be filled in: the data of the refusal that is not empty, and what is made of it."""
    about = refusal.about
    known = {name: _filled(value) for name, value in about.items() if _says_something(value)}
    known["to"] = CANNOT_TRANSITION.format_map(known) if "target" in known else ""
    known["round"] = _round(about)
    if "abandoned" in known:  # it may end with the user's own sentence
        known["abandoned"] = known["abandoned"].rstrip(".")
    if shape := _shape(about):
        known["shape"] = shape
    if gates := known.get("checkpoint") or known.get("pending"):
        known["gates"] = gates
    if isinstance(pending := about.get("pending"), (list, tuple)):
        known["count"] = str(len(pending))
    if "left_out" in known:
        known["path"] = LEFT_OUT.get(known["kind"], LEFT_OUT["gate"]).format_map(known)
    if isinstance(elapsed := about.get("elapsed_ms"), int) and isinstance(
        least := about.get("minimum_ms"), int
    ):
        known["waited"] = f"{elapsed // 1000}s < {least / 1000:g}s"
    return known


def _says_something(value: Json) -> bool:
    return value is not None and value is not False and value not in ("", [], ())


def _filled(value: Json) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _round(about: Mapping[str, Json]) -> str:
    """Name the round of a loop that a refusal is about, and its item."""
    if "iteration" not in about:
        return ""
    item = f": {text_of(about['item'])}" if "item" in about else ""
    return f" (iteration {about['iteration']}{item})"


def _shape(about: Mapping[str, Json]) -> str:
    """Write the variables that a refusal asks for, with placeholders for their values."""
    example, variables = about.get("example"), about.get("variables")
    return msgspec.json.encode(example).decode() if example else _filled(variables or ())
