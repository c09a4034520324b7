"""What the parameters of all tools share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

RequestId: TypeAlias = Annotated[
    str,
    Meta(
        max_length=128,
        description="Your id for this start: the same call again returns the same answer.",
    ),
]
Find: TypeAlias = Annotated[
    str,
    Meta(max_length=256, description="Instead: words about earlier work, or its id"),
]
Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]


ASK_AGAIN = "New values of what a question shows; it is asked again"


class Params(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all parameters: an unknown name is refused, not ignored."""


class NoParams(Params, frozen=True):
    """The parameters of a tool that takes none."""
