"""The sources of an ordinary installation, from what is bundled to what the project keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from interlock.authoring.library import BUNDLED
from interlock.authoring.sources import Source, configured

PLUGINS = "interlock.workflows"


def standard_sources(data: Path, project: Path | None = None, specs: Sequence[str] = ()) -> list[Source]:
    """All sources in order of precedence; those whose folders are missing are empty."""
    return [
        BUNDLED,
        *plugins(),
        Source("user", data / "workflows"),
        *map(configured, specs),
        *clones(data),
        *([Source("project", project / ".interlock" / "workflows")] if project is not None else []),
    ]


def plugins() -> Iterator[Source]:
    """Packages that bring workflows name their module in the entry point group; the name is the namespace."""
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
    """Repositories that were added, each under its own name."""
    folder = data / "sources"
    if not folder.is_dir():
        return []
    return [Source("git", path, path.name) for path in sorted(folder.iterdir()) if path.is_dir()]
