"""The composition root: a store, a keyring, a library, a ledger and a surface, wired together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.cli.config import BadConfig, Config
from interlock.core.run.preferences import PRESETS
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.lazy import LazyStore
from interlock.store.protocol import Store
from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.tool import Surface


def library_of(config: Config) -> Library:
    """All sources of workflows, by precedence."""
    return Library(list(_sources(config)), config.folder / "cache", lambda: _found(config))


def _sources(config: Config) -> Iterator[Source]:
    yield BUNDLED
    yield Source("user", config.folder / "workflows")
    for given in config.workflows:
        yield mounted(given)
    if config.project:
        yield Source("project", Path(config.project) / ".interlock" / "workflows")


def _found(config: Config) -> Iterator[Source]:
    """What packages bring and what was cloned; looked for only when workflows are asked for."""
    from interlock.authoring.sources.discovery import clones, plugins

    yield from plugins(config.folder / "cache" / "plugins.json")
    yield from clones(config.folder)


def mounted(given: str) -> Source:
    """Read `PATH` or `NAME=PATH`."""
    name, separator, path = given.partition("=")
    if separator and name and "/" not in name:
        return Source("configured", _existing(path), name)
    return Source("configured", _existing(given))


def _existing(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise BadConfig(f"--workflows: there is no file or folder {path}")
    return found


def settings_of(config: Config) -> Settings:
    """The user's terms as the ledger takes them."""
    return Settings(
        preferences=PRESETS[config.mode or "guided"],
        preferences_fixed=config.mode is not None,
        terms=config.terms,
        project=Path(config.project) if config.project else None,
    )


def ledger_of(config: Config) -> Ledger:
    """Open the store and everything around it."""
    return _ledger_on(_store_of(config).open(), config)


def _ledger_on(store: Store, config: Config) -> Ledger:
    return Ledger(store, Keys(config.folder), library_of(config), settings_of(config))


def _store_of(config: Config) -> LazyStore:
    if config.store and not config.store.startswith("sqlite://"):
        raise BadConfig(f"store: {config.store.partition(':')[0]} is not supported; use sqlite:///PATH")

    def open_sqlite() -> Store:
        from interlock.store.sqlite.store import open_store  # late: many chats never call a tool

        return open_store(config.folder)

    return LazyStore(open_sqlite)


def surface_of(config: Config) -> Surface:
    """Build the surface that was asked for, and import no other.

    The store is opened by the first tool call, so that a server whose store cannot be opened still starts,
    lists its tools, and answers every call with what is wrong.
    """
    if config.surface == "lookup":
        from interlock.surfaces.lookup import LookupSurface

        return LookupSurface(library_of(config))
    store = _store_of(config)
    surface = _surface_on(_ledger_on(store, config), config)
    _open_at_first_call(surface, store)
    return surface


def _open_at_first_call(surface: Surface, store: LazyStore) -> None:
    """Let the first call of any tool open the store, also of tools that do not use it."""
    tools = surface.tools

    def opening(handler: Callable[[Any, Call], Outcome]) -> Callable[[Any, Call], Outcome]:
        def opened(params: Any, call: Call) -> Outcome:
            store.open()
            surface.tools = tools
            return handler(params, call)

        return opened

    surface.tools = {name: replace(tool, handler=opening(tool.handler)) for name, tool in tools.items()}


def _surface_on(ledger: Ledger, config: Config) -> Surface:
    match config.surface:
        case "execution":
            from interlock.surfaces.execution import ExecutionSurface

            return ExecutionSurface(ledger, frozenset(config.disable_tools))
        case "navigation":
            from interlock.surfaces.navigation import NavigationSurface

            return NavigationSurface(ledger)
        case "session":
            from interlock.surfaces.session import SessionSurface

            return SessionSurface(ledger, frozenset(config.disable_tools))
        case "gated":
            from interlock.surfaces.gated import GatedSurface

            return GatedSurface(ledger, frozenset(config.disable_tools))
        case _:
            raise BadConfig(f"surface {config.surface} is not served")
