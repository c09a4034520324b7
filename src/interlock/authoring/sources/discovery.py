"""Sources that are found rather than named: packages that bring workflows, and cloned repositories.

Asking the installed packages takes long, so the answer is kept until something is installed or removed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from interlock.authoring.sources.cache import make_private
from interlock.authoring.sources.sources import Source
from interlock.authoring.sources.stamps import fingerprint

PLUGINS = "interlock.workflows"
CLONES = "sources"


class Known(Struct, frozen=True):
    """What the packages said when the folders they lie in looked like this."""

    state: str
    found: tuple[tuple[str, str], ...]


def plugins(kept: Path | None = None) -> list[Source]:
    """Packages name their module in the entry point group; the entry's name is the namespace."""
    state = fingerprint(Path(location) for location in sys.path if location)
    known = _remembered(kept)
    if known is None or known.state != state:
        known = Known(state, tuple(_asked()))
        _remember(kept, known)
    return [Source("plugin", Path(location), name) for name, location in known.found]


def _asked() -> Iterator[tuple[str, str]]:
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for point in entry_points(group=PLUGINS):
        try:
            spec = find_spec(point.module)
        except (ImportError, ValueError):
            continue
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield point.name, str(location)


def _remembered(kept: Path | None) -> Known | None:
    if kept is None:
        return None
    try:
        return msgspec.json.decode(kept.read_bytes(), type=Known)
    except (OSError, msgspec.MsgspecError):
        return None


def _remember(kept: Path | None, known: Known) -> None:
    """Keep the answer; a folder that cannot be written costs only time."""
    if kept is None:
        return
    made = kept.with_name(f".{kept.name}.{os.getpid()}")
    try:
        make_private(kept.parent)
        made.write_bytes(msgspec.json.encode(known))
        os.replace(made, kept)
    except OSError:
        return


def clones(data: Path) -> list[Source]:
    """Repositories that were added, each mounted under its own name."""
    try:
        names = sorted(os.listdir(data / CLONES))
    except OSError:
        return []
    folders = [data / CLONES / name for name in names if not name.startswith(".")]
    return [Source("git", path, path.name) for path in folders if path.is_dir()]
