"""Decoders that are built when they are first needed: it takes milliseconds, and many chats call no tool."""

from __future__ import annotations

from _thread import allocate_lock  # threading costs start-up and adds nothing here
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

_building = allocate_lock()


class LazyDecoder(Generic[T]):
    """A decoder of JSON. Threads take turns to build decoders: two at once can crash msgspec."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decoder: msgspec.json.Decoder[T] | None = None

    def decode(self, body: bytes | str) -> T:
        """Decode a body, or raise what msgspec raises."""
        if self._decoder is None:
            with _building:
                self._decoder = self._decoder or msgspec.json.Decoder(self._kind)
        return self._decoder.decode(body)
