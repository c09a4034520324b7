"""The one list of the surfaces. Each is imported only when it is built, to keep start-up short."""

from __future__ import annotations

from typing import Protocol, assert_never, get_args

from interlock.authoring.library import Library
from interlock.core.run.surface_policy import SurfaceName
from interlock.ledger.ledger import Ledger
from interlock.surfaces.tool import Surface

SURFACES: tuple[SurfaceName, ...] = get_args(SurfaceName)


class Backend(Protocol):
    """What surfaces are built on. A surface opens only the part that it needs."""

    def ledger(self) -> Ledger: ...

    def library(self) -> Library: ...


class UnknownTool(Exception):
    """A tool to leave out that the surface does not have."""


def build_surface(name: SurfaceName, backend: Backend, disabled: frozenset[str] = frozenset()) -> Surface:
    """Build a surface without the tools that the user disabled; a disabled tool is an unknown one."""
    surface = _whole_surface(name, backend)
    unknown = disabled - set(surface.tools)
    if unknown:
        names = ", ".join(tool.name for tool in surface.tools.values() if tool.listed)
        raise UnknownTool(f"'{min(unknown)}' is not a tool of the {name} surface. Tools: {names}")
    surface.tools = {name: tool for name, tool in surface.tools.items() if name not in disabled}
    return surface


def _whole_surface(name: SurfaceName, backend: Backend) -> Surface:
    match name:
        case "execution":
            from interlock.surfaces.execution import ExecutionSurface

            return ExecutionSurface(backend.ledger())
        case "session":
            from interlock.surfaces.session import SessionSurface

            return SessionSurface(backend.ledger())
        case "gated":
            from interlock.surfaces.gated import GatedSurface

            return GatedSurface(backend.ledger())
        case "navigation":
            from interlock.surfaces.navigation import NavigationSurface

            return NavigationSurface(backend.ledger())
        case "lookup":
            from interlock.surfaces.lookup import LookupSurface

            return LookupSurface(backend.library())
        case _:
            assert_never(name)
