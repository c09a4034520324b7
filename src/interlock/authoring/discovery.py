"""Sources that are found rather than named: packages that bring workflows, and cloned repositories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interlock.authoring.sources import Source

PLUGINS = "interlock.workflows"


def plugins() -> Iterator[Source]:
    """Packages name their module in the entry point group; the entry's name is the namespace."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for point in entry_points(group=PLUGINS):
        try:
            spec = find_spec(point.module)
        except (ImportError, ValueError):
            continue
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield Source("plugin", Path(place), point.name)


def clones(data: Path) -> list[Source]:
    """Repositories that were added, each mounted under its own name."""
    folder = data / "sources"
    if not folder.is_dir():
        return []
    return [Source("git", path, path.name) for path in sorted(folder.iterdir()) if path.is_dir()]
