"""The quick way through a YAML file that holds nothing unusual: values without places.

Whatever is not plainly right is left to the careful reader, which knows what to say about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.authoring.text.formats import DEEPEST
from interlock.core.values import Json

MOST_VALUES = 200_000


class Irregular(Exception):
    """The careful reader must look at this file."""


def read_plain(text: str) -> Json:
    """The value of a single document without anchors, tags, merges or repeated keys."""
    import yaml

    loader = yaml.CSafeLoader(text)
    try:
        return _Plain(loader.get_event).document()
    except yaml.YAMLError as error:
        raise Irregular from error
    finally:
        loader.dispose()


class _Plain:
    def __init__(self, following: Callable[[], Any]) -> None:
        from yaml import events

        from interlock.authoring.text.yaml_text import plain_value

        self._next = following
        self._read = plain_value
        self._scalar = events.ScalarEvent
        self._list, self._list_end = events.SequenceStartEvent, events.SequenceEndEvent
        self._object, self._object_end = events.MappingStartEvent, events.MappingEndEvent
        self._end = events.DocumentEndEvent, events.StreamEndEvent
        self._values = (self._scalar, self._list, self._object)
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
        if kind not in self._values or event.anchor or event.tag not in (None, "!"):
            raise Irregular
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise Irregular
        if kind is self._scalar:
            text: str = event.value
            return text if event.style else self._read(text)
        return self._sequence(depth + 1) if kind is self._list else self._mapping(depth + 1)

    def _sequence(self, depth: int) -> list[Json]:
        made: list[Json] = []
        while type(event := self._next()) is not self._list_end:
            made.append(self._value(event, depth))
        return made

    def _mapping(self, depth: int) -> dict[str, Json]:
        made: dict[str, Json] = {}
        while type(event := self._next()) is not self._object_end:
            key = event.value if type(event) is self._scalar else "<<"
            if key in made or key == "<<":
                raise Irregular
            made[key] = self._value(self._next(), depth)
        return made
