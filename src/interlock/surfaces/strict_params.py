"""What the parameters of all tools share."""

from __future__ import annotations

from msgspec import Struct


class Params(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all parameters: an unknown name is refused, not ignored."""


class NoParams(Params, frozen=True):
    """The parameters of a tool that takes none."""
