"""Reads the value of a YAML file that uses nothing unusual, without its locations, because that is quicker.

Any other file is left to `yaml_text`, which also knows what to report about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from interlock.authoring.text.locations import DEEPEST
from interlock.core.values import Json

MOST_VALUES = 200_000

_INTEGER = re.compile(r"[-+]?[0-9]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, Json] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


class Irregular(Exception):
    """The file needs the full reader."""


def read_plain(text: str) -> Json:
    """Return the value of a single document without anchors, tags, merges or duplicate keys."""
    import yaml

    loader = yaml.CSafeLoader(text)
    try:
        return _Reader(loader.get_event).document()
    except yaml.YAMLError as error:
        raise Irregular from error
    finally:
        loader.dispose()


class _Reader:
    def __init__(self, next_event: Callable[[], Any]) -> None:
        from yaml import events

        self._next = next_event
        self._scalar = events.ScalarEvent
        self._list, self._list_end = events.SequenceStartEvent, events.SequenceEndEvent
        self._object, self._object_end = events.MappingStartEvent, events.MappingEndEvent
        self._end = events.DocumentEndEvent, events.StreamEndEvent
        self._nodes = (self._scalar, self._list, self._object)
        self._left = MOST_VALUES

    def document(self) -> Json:
        self._next()
        self._next()
        value = self._value(self._next(), 0)
        if tuple(type(self._next()) for _ in self._end) != self._end:
            raise Irregular
        return value

    def _value(self, event: Any, depth: int) -> Json:
        kind = type(event)
        if kind not in self._nodes or event.anchor or event.tag not in (None, "!"):
            raise Irregular
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise Irregular
        if kind is self._scalar:
            text: str = event.value
            return text if event.style else plain_value(text)
        if kind is self._list:
            values: list[Json] = []
            while type(event := self._next()) is not self._list_end:
                values.append(self._value(event, depth + 1))
            return values
        fields: dict[str, Json] = {}
        while type(event := self._next()) is not self._object_end:
            key = event.value if type(event) is self._scalar else "<<"
            if key in fields or key == "<<":
                raise Irregular
            fields[key] = self._value(self._next(), depth + 1)
        return fields


def plain_value(text: str) -> Json:
    """Return the value of a scalar without quotes, by YAML 1.2: `yes` and `no` are text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
