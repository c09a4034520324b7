"""Sources that are found rather than configured: packages that provide workflows, and cloned repositories.

Asking the installed packages is slow, so the answer is kept until something is installed or removed.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.sources.cache import keep_file
from interlock.authoring.sources.sources import Source
from interlock.authoring.sources.stamps import fingerprint

PLUGINS = "interlock.workflows"
CLONES = "sources"


class KnownPlugins(Struct, frozen=True):
    """Names and folders of the plugins, and the state of the import path when they were looked up."""

    state: str
    found: tuple[tuple[str, str], ...]


def plugins(kept: Path | None = None) -> list[Source]:
    """Return a source for each package in the entry point group; the entry's name is the namespace."""
    state = fingerprint(Path(folder) for folder in sys.path if folder)
    known: KnownPlugins | None = None
    if kept is not None:
        with suppress(OSError, msgspec.MsgspecError):
            known = msgspec.json.decode(kept.read_bytes(), type=KnownPlugins)
    if known is None or known.state != state:
        from importlib.metadata import entry_points
        from importlib.util import find_spec

        folders: list[tuple[str, str]] = []
        for point in entry_points(group=PLUGINS):
            with suppress(ImportError, ValueError):
                spec = find_spec(point.module)
                locations = (spec.submodule_search_locations or ()) if spec else ()
                folders += [(point.name, str(folder)) for folder in locations]
        known = KnownPlugins(state, tuple(folders))
        if kept is not None:
            keep_file(kept, msgspec.json.encode(known))
    return [Source("plugin", Path(folder), name) for name, folder in known.found]


def clones(data: Path) -> list[Source]:
    """Return a source for each cloned repository, mounted under its own name."""
    try:
        names = sorted(os.listdir(data / CLONES))
    except OSError:
        return []
    folders = [data / CLONES / name for name in names if not name.startswith(".")]
    return [Source("git", path, path.name) for path in folders if path.is_dir()]
