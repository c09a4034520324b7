"""The composition root: wire a store, a keyring, a library, a ledger and a surface together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source, SourceKind
from interlock.cli.config import BadConfig, Config, project_at, resolve, work_folder
from interlock.core.principals import LOCAL
from interlock.core.run.preferences import PRESETS
from interlock.ledger.ledger import Ledger
from interlock.ledger.outbox.announcements import Recipient
from interlock.ledger.outbox.courier import Courier
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.ledger.tokens.keyring import Keys
from interlock.store.lazy import LazyStore
from interlock.store.protocol import Store
from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.registry import UnknownTool, build_surface
from interlock.surfaces.tool import Surface

CHECKS_FILE = Path(".interlock", "checks.yaml")


def library_of(config: Config) -> Library:
    """Collect all sources of workflows."""
    sources = [BUNDLED, Source("user", config.folder / "workflows"), *mounted_sources(config)]

    def discovered() -> Iterator[Source]:
        """Look for packages and clones that bring workflows; called only when workflows are needed."""
        from interlock.authoring.sources.discovery import clones, plugins

        yield from plugins(config.folder / "cache" / "plugins.json")
        yield from clones(config.folder)

    return Library(sources, config.folder / "cache", discovered, checks_file_of(config))


def checks_file_of(config: Config) -> Path | None:
    """Return the file in which the project says what its checks run."""
    return Path(config.project) / CHECKS_FILE if config.project else None


def mounted_sources(config: Config) -> Iterator[Source]:
    """Yield the sources that the settings and the project name."""
    arguments: dict[SourceKind, tuple[str, ...]] = {
        "configured": config.workflows,
        "project": config.project_workflows,
    }
    for kind, argument in ((kind, argument) for kind, named in arguments.items() for argument in named):
        name, path = split_mount(argument)
        if not path.exists():
            raise BadConfig(f"workflows: there is no file or folder {path}")
        yield Source(kind, path, name)
    if config.project:
        yield Source("project", Path(config.project) / ".interlock" / "workflows")


def split_mount(argument: str) -> tuple[str | None, Path]:
    """Split `NAME=PATH` into the namespace and the path; a bare `PATH` has no namespace."""
    name, separator, path = argument.partition("=")
    if separator and name and "/" not in name:
        return name, Path(path).expanduser()
    return None, Path(argument).expanduser()


def ledger_of(config: Config) -> Ledger:
    """Open the database and everything around it."""
    folder = work_folder(os.environ)
    return _ledger_on(opener_of(config), config, folder)


def store_of(config: Config) -> Store:
    """Open the database that the settings name."""
    return opener_of(config)()


def opener_of(config: Config, deadline: float | None = None) -> Callable[[], Store]:
    """Return what opens the database that the settings name; settings that name none are refused here.

    A server gives every call on it a deadline; a command may read for as long as there are answers.
    """
    if (url := config.postgres_url) is not None:
        require_postgres()
        return lambda: _postgres_at(url, deadline)
    database = config.database
    return lambda: _sqlite_at(database, deadline)


def _postgres_at(url: str, deadline: float | None) -> Store:
    from interlock.store.postgres.database import open_store  # late: many chats never call a tool

    return open_store(url, deadline=deadline)


def _sqlite_at(path: Path, deadline: float | None) -> Store:
    from interlock.store.sqlite.lock import PATIENCE
    from interlock.store.sqlite.store import open_store

    return open_store(path.parent, path.name, deadline or PATIENCE)


def require_postgres() -> None:
    """Refuse a PostgreSQL store where its packages are not installed."""
    from importlib.util import find_spec

    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise BadConfig("store: PostgreSQL needs more packages; run `pip install 'interlock[postgres]'`")


def _ledger_on(open_store: Callable[[], Store], config: Config, folder: Path | None) -> Ledger:
    settings, data = settings_of(config, folder), config.folder
    library = library_of(config)
    ledger = Ledger(open_store(), Keys(data), library, settings)
    tokens = AccessTokens(data)
    ledger.approvers, ledger.principal_of = tokens.approver, tokens.principal_of
    ledger.may_decide = tokens.may_decide

    def courier() -> Courier:
        from interlock.ledger.outbox.wording import equip  # late: most servers send nothing

        return equip(ledger)

    ledger.courier = courier
    return ledger


def settings_of(config: Config, folder: Path | None) -> Settings:
    """Return what sessions copy at their start. `folder` is the one worked in where no project is named.

    Checks run there for the local user; a server of many clients names folders for whom it runs them.
    """
    project = Path(config.project) if config.project else folder
    return Settings(
        preferences=PRESETS[config.mode or "guided"],
        preferences_fixed=config.mode is not None,
        terms=config.terms,
        project=project,
        check_folders={LOCAL.name: project} if project else {},
        retention_days=config.retention_days,
        stale_hours=config.stale_hours,
        console_url=config.console_url.rstrip("/"),
        recipients=_recipients(config.folder),
    )


def _recipients(folder: Path) -> Mapping[str, Recipient]:
    if not (folder / "notify.toml").is_file():
        return {}
    from interlock.cli.notify.notify_file import recipients_in  # late: most servers send nothing

    return recipients_in(folder)


class ConfiguredBackend:
    """What a surface is built on, as the settings say. The store is not opened yet.

    `folder` is the one that the client works in; a server of many clients has none.
    """

    def __init__(
        self, config: Config, flags: Mapping[str, Any] = MappingProxyType({}), folder: Path | None = None
    ) -> None:
        self._config = config
        self._flags = flags
        self._folder = folder
        self._ledger: Ledger | None = None
        self.store = LazyStore(opener_of(config, config.store_deadline))

    def ledger(self) -> Ledger:
        self._ledger = _ledger_on(lambda: self.store, self._config, self._folder)
        return self._ledger

    def library(self) -> Library:
        return library_of(self._config)

    def take_folders(self, folders: Sequence[Path]) -> None:
        """Work in the client's first folder; make the first project in or around them this server's."""
        if not folders or self._config.project is not None or self._ledger is None:
            return
        self._folder = folders[0]
        self._ledger.settings = settings_of(self._config, self._folder)
        project = next(filter(None, map(project_at, folders)), None)
        if project is None:
            return
        known = set(mounted_sources(self._config))
        try:
            config = resolve({**self._flags, "project": project})
            added = [source for source in mounted_sources(config) if source not in known]
        except BadConfig as error:
            print(f"interlock mcp: the project {project} is not used: {error}", file=sys.stderr)
            return
        self._config, self._ledger.settings = config, settings_of(config, self._folder)
        self._ledger.library.add(added, checks_file_of(config))


def surface_of(config: Config, flags: Mapping[str, Any] = MappingProxyType({})) -> Surface:
    """Build the surface that is to be served.

    The store is opened by the first tool call, so that a server whose store cannot be opened still starts,
    lists its tools, and answers every call with what is wrong.
    """
    backend = ConfiguredBackend(config, flags, work_folder(os.environ))
    try:
        surface = build_surface(config.surface, backend, frozenset(config.disable_tools))
    except UnknownTool as error:
        raise BadConfig(f"disable-tools: {error}") from error
    tools = surface.tools

    def opening(handler: Callable[[Any, Call], Outcome]) -> Callable[[Any, Call], Outcome]:
        """Open the store before the first call of a tool that uses it."""

        def opened(params: Any, call: Call) -> Outcome:
            backend.store.open()
            surface.tools = tools
            return handler(params, call)

        return opened

    if config.project is None and "CLAUDE_PROJECT_DIR" not in os.environ:
        surface.take_folders = backend.take_folders
    surface.tools = {
        name: replace(tool, handler=opening(tool.handler)) if tool.uses_store else tool
        for name, tool in tools.items()
    }
    return surface
