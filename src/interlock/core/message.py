"""A notification as its channels send it: one value for webhooks, mail, chats and phones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from interlock.core.values import Json

Occasion = Literal["opened", "reminded", "escalated", "answered", "ended"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)


class Link(Struct, frozen=True):
    """An address that a notification offers, and what it is for."""

    label: str
    url: str


class Message(Struct, frozen=True):
    """What is sent. `id` is the same at every try; `data` is for programs, the rest for people."""

    id: str
    occasion: Occasion
    at: int
    title: str
    text: str
    url: str = ""
    links: tuple[Link, ...] = ()
    data: Mapping[str, Json] = {}


class Undelivered(Exception):
    """A channel did not take a notification. One that is `final` is not tried again."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.final = reason, final


Send: TypeAlias = Callable[[Message], None]
