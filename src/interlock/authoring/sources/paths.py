"""Turns a path that a person names into a source: one file, one workflow folder, or a folder of many.

A file in a workflow folder means the whole folder, because it cannot be compiled alone.
"""

from __future__ import annotations

from pathlib import Path

from interlock.authoring.library import BUNDLED
from interlock.authoring.sources.sources import HEADS, Source

INNER = ("activities", "skills", "resources", "guides", "templates", "steps")


def source_at(path: Path, namespace: str | None = None) -> Source:
    """Return the source for a path; bundled workflows keep their reserved names."""
    home = home_of(path)
    if home.resolve().is_relative_to(BUNDLED.path):
        return Source("bundled", home)
    return Source("configured", home, namespace)


def home_of(path: Path) -> Path:
    """Return the workflow folder that a file belongs to, or the path itself."""
    if path.is_dir():
        return path
    if path.name in HEADS:
        return path.parent
    homes = [folder.parent for folder in path.parents if folder.name in INNER]
    return next((home for home in homes if any((home / head).is_file() for head in HEADS)), path)
