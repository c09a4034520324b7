"""A path that a person names becomes a source: one file, one workflow folder, or a folder of many.

A file within a workflow folder stands for the whole folder, because nothing in it means much alone.
"""

from __future__ import annotations

from pathlib import Path

from interlock.authoring.library import BUNDLED
from interlock.authoring.sources.sources import HEADS, Source

INNER = ("activities", "skills", "resources", "guides", "templates", "steps")


def source_at(path: Path, namespace: str | None = None) -> Source:
    """The source that a path stands for; our own workflows keep their reserved names."""
    found = home_of(path)
    if found.resolve().is_relative_to(BUNDLED.path):
        return Source("bundled", found)
    return Source("configured", found, namespace)


def home_of(path: Path) -> Path:
    """The workflow folder that a file belongs to, or the path itself."""
    if path.is_dir():
        return path
    if path.name in HEADS:
        return path.parent
    above = [one for one in path.parents if one.name in INNER]
    return next((one.parent for one in above if _is_workflow(one.parent)), path)


def _is_workflow(folder: Path) -> bool:
    return any((folder / head).is_file() for head in HEADS)
