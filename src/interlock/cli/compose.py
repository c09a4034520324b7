"""The composition root: wire a store, a keyring, a library, a ledger and a surface together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.cli.config import BadConfig, Config
from interlock.core.run.preferences import PRESETS
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.sqlite.store import open_store
from interlock.surfaces.registry import UnknownTool, build_surface
from interlock.surfaces.tool import Surface


def library_of(config: Config) -> Library:
    """Collect all sources of workflows."""
    sources = [BUNDLED, Source("user", config.folder / "workflows")]
    for argument in config.workflows:
        name, path = split_mount(argument)
        if not path.exists():
            raise BadConfig(f"workflows: there is no file or folder {path}")
        sources.append(Source("configured", path, name))
    if config.project:
        sources.append(Source("project", Path(config.project) / ".interlock" / "workflows"))

    def discovered() -> Iterator[Source]:
        """Look for packages and clones that bring workflows; called only when workflows are needed."""
        from interlock.authoring.sources.discovery import clones, plugins

        yield from plugins(config.folder / "cache" / "plugins.json")
        yield from clones(config.folder)

    return Library(sources, config.folder / "cache", discovered)


def split_mount(argument: str) -> tuple[str | None, Path]:
    """Split `NAME=PATH` into the namespace and the path; a bare `PATH` has no namespace."""
    name, separator, path = argument.partition("=")
    if separator and name and "/" not in name:
        return name, Path(path).expanduser()
    return None, Path(argument).expanduser()


def ledger_of(config: Config) -> Ledger:
    """Open the database and everything around it."""
    folder, database = config.folder, config.database
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = Settings(
        preferences=PRESETS[config.mode or "guided"],
        preferences_fixed=config.mode is not None,
        terms=config.terms,
        project=Path(config.project) if config.project else None,
    )
    store = open_store(database.parent, database.name)
    return Ledger(store, Keys(folder), library_of(config), settings)


class ConfiguredBackend:
    """What a surface is built on, opened as the settings say."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def ledger(self) -> Ledger:
        return ledger_of(self._config)

    def library(self) -> Library:
        return library_of(self._config)


def surface_of(config: Config) -> Surface:
    """Build the surface that is to be served."""
    try:
        return build_surface(config.surface, ConfiguredBackend(config), frozenset(config.disable_tools))
    except UnknownTool as error:
        raise BadConfig(f"disable-tools: {error}") from error
