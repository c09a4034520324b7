"""Writes values as YAML that is easy to edit and that our reader reads back as the same values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.authoring.text.yaml_plain import plain_value
from interlock.core.values import Json

if TYPE_CHECKING:
    from yaml import Node, SafeDumper

WIDTH = 110
LONGEST_LEAF = 88


def as_yaml(value: Json) -> str:
    """Write a value in block style, short leaves on one line, texts of several lines as blocks."""
    import yaml

    text: str = yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


@cache
def _dumper() -> type[SafeDumper]:
    import yaml

    class Dumper(yaml.SafeDumper):
        """A class of our own, so that the library's dumper is not changed."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def scalar(dumper: SafeDumper, text: str) -> Node:
        quoted = None if isinstance(plain_value(text), str) else '"'
        style = "|" if "\n" in text else quoted
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def sequence(dumper: SafeDumper, values: list[Json] | tuple[Json, ...]) -> Node:
        return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=_is_leaf(values))

    def mapping(dumper: SafeDumper, fields: Mapping[str, Json]) -> Node:
        return dumper.represent_mapping("tag:yaml.org,2002:map", fields, flow_style=_is_leaf(fields))

    Dumper.add_representer(str, scalar)
    Dumper.add_representer(list, sequence)
    Dumper.add_representer(tuple, sequence)
    Dumper.add_representer(dict, mapping)
    return Dumper


def _is_leaf(value: Json) -> bool:
    """Say whether a value fits on one line without being hard to read."""
    encoded = msgspec.json.encode(value)
    return len(encoded) <= LONGEST_LEAF and _depth(value) <= 2 and b"\\n" not in encoded


def _depth(value: Json) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, (list, tuple)):
        return 1 + max(map(_depth, value), default=0)
    return 0
