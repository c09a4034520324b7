"""Arguments that name workflow files, folders or ids, as the authoring commands share them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from interlock.authoring.library import Diagnostic, Library, Loaded
from interlock.authoring.sources.paths import source_at
from interlock.authoring.sources.sources import Source
from interlock.cli.compose import library_of
from interlock.cli.config import Config
from interlock.cli.exits import CHECK_FAILED, NOT_FOUND
from interlock.cli.screen import stop

Command = Callable[..., None]


def paths_argument(command: Command) -> Command:
    """One or more `[NAME=]PATH`; NAME mounts the path under a namespace."""
    given: Any = click.argument("paths", metavar="[NAME=]PATH…", nargs=-1, required=True)
    return given(command)  # type: ignore[no-any-return]


def source_of(given: str) -> Source:
    """Read `PATH` or `NAME=PATH`, or end the command."""
    name, separator, rest = given.partition("=")
    mounted = bool(separator and name and "/" not in name)
    path = Path(rest if mounted else given).expanduser()
    if not path.exists():
        stop(NOT_FOUND, f"there is no file or folder {path}.")
    return source_at(path, name if mounted else None)


def loaded_of(config: Config, given: str) -> Loaded:
    """One workflow by id or by path, or the end of the command."""
    if "/" not in given and not Path(given).exists():
        return _usable(library_of(config).load(given))
    source = source_of(given)
    found = Library([source]).listing()
    if len(found.entries) == 1:
        return _usable(Library([source]).load(found.entries[0].id))
    if found.entries:
        names = ", ".join(entry.id for entry in found.entries)
        stop(NOT_FOUND, f"{given} holds several workflows; name the file of one: {names}.")
    fault = next((one for one in found.diagnostics if one.severity == "error"), None)
    reason = f": {fault.message} (line {fault.line})" if fault else ""
    return stop(CHECK_FAILED, f"{given} holds no usable workflow{reason}. See `interlock validate {given}`.")


def _usable(found: Loaded | Diagnostic) -> Loaded:
    if isinstance(found, Loaded):
        return found
    return stop(NOT_FOUND, f"{found.message}; {found.next_action or 'see `interlock list`'}.")
