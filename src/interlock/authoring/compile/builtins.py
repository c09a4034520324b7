"""The built-in contracts, templates, features and references, read from data files when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from interlock.core.values import Json

S = TypeVar("S", bound=Struct)

LIBRARY = Path(__file__).parents[2] / "library"


class ContractPack(Struct, frozen=True):
    """A contract by name: the artifact's kind, its schema, and a valid example."""

    ref: str
    kind: str
    title: str
    schema: Mapping[str, Json]
    example: Mapping[str, Json]


class TemplatePack(Struct, frozen=True):
    """Items that a call expands in place, with `{arg}` filled in; `header` is what a routine adds."""

    ref: str
    title: str
    steps: tuple[Mapping[str, Json], ...]
    args: tuple[str, ...] = ()
    defaults: Mapping[str, str] = {}
    header: Mapping[str, Json] = {}


class FeatureSetting(Struct, frozen=True):
    """What a workflow may choose about a feature: one of the values, or several of them."""

    description: str
    values: tuple[str | int, ...]
    default: str | int | tuple[str | int, ...]
    several: bool = False

    def accepts(self, chosen: Json) -> bool:
        """Say whether the choice is one of the values, or a list of some of them."""
        if self.several:
            return isinstance(chosen, list) and bool(chosen) and all(each in self.values for each in chosen)
        return not isinstance(chosen, bool) and chosen in self.values

    def worded(self, chosen: Json) -> str:
        """Return the choice, or the default, as words of a sentence."""
        value = self.default if chosen is None else chosen
        words = value if isinstance(value, (list, tuple)) else (value,)
        return " and ".join(str(word).replace("_", " ") for word in words)


class FeaturePack(Struct, frozen=True):
    """Lines that a feature adds to the prompt blocks of every step, with `{setting}` filled in."""

    ref: str
    title: str
    constraints: tuple[str, ...] = ()
    procedure: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    settings: Mapping[str, FeatureSetting] = {}


class ReferencePack(Struct, frozen=True):
    """A short text that prompts may include by name."""

    ref: str
    title: str
    text: str


@cache
def contracts() -> dict[str, ContractPack]:
    return {pack.ref: pack for pack in _read("contracts", ContractPack)}


@cache
def templates() -> dict[str, TemplatePack]:
    return {pack.ref: pack for pack in _read("templates", TemplatePack)}


@cache
def features() -> dict[str, FeaturePack]:
    return {pack.ref: pack for pack in _read("features", FeaturePack)}


@cache
def references() -> dict[str, ReferencePack]:
    return {pack.ref: pack for pack in _read("refs", ReferencePack)}


def _read(folder: str, kind: type[S]) -> list[S]:
    entries = sorted((LIBRARY / folder).glob("*.json"))
    return [msgspec.json.decode(entry.read_bytes(), type=kind) for entry in entries]
