"""Preparation for a server with threads. msgspec builds its knowledge of a Struct on first use.

Two threads that do so at the same time can crash the process, so it is built here, before threads start.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

import msgspec
from msgspec import Struct

from interlock.surfaces.tool import Surface

ROOMS = ("interlock.core", "interlock.authoring", "interlock.ledger", "interlock.surfaces")


def warm_up(*surfaces: Surface) -> None:
    """Import every module that a call may reach and let msgspec build all that it builds on first use."""
    for room in ROOMS:
        for module in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
            import_module(module.name)
    for struct in struct_types():
        with suppress(msgspec.ValidationError, TypeError):  # TypeError: a type that is never decoded
            msgspec.convert({}, struct)
    for surface in surfaces:
        for tool in surface.tools.values():
            tool.argument_schema()


def struct_types(base: type[Struct] = Struct) -> Iterator[type[Struct]]:
    """Yield every Struct of ours that is imported."""
    for struct in base.__subclasses__():
        if struct.__module__.startswith("interlock."):
            yield struct
        yield from struct_types(struct)
