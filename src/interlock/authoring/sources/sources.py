"""Where workflows come from, in order of precedence, and which files of a folder are workflows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

SourceKind = Literal["bundled", "plugin", "user", "configured", "git", "project"]

PRECEDENCE: tuple[SourceKind, ...] = ("bundled", "plugin", "user", "configured", "git", "project")
HEADS = ("workflow.yaml", "workflow.yml", "workflow.toon")
DEEPEST_FOLDER = 5
MOST_UNITS = 5_000


class Source(Struct, frozen=True):
    """A folder (or one file) of workflows; a namespace is what it is mounted under (rule 38)."""

    kind: SourceKind
    path: Path
    namespace: str | None = None

    @property
    def root(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent


class Unit(Struct, frozen=True):
    """One file or folder that may be a workflow."""

    path: Path
    form: Literal["file", "folder", "legacy"]


def units(source: Source) -> Iterator[Unit]:
    """Find the candidates of a source, in a stable order."""
    if source.path.is_dir():
        found = _in_folder(source.path, 0)
        yield from (unit for unit, _ in zip(found, range(MOST_UNITS), strict=False))
    elif source.path.is_file():
        yield _single(source.path)


def _single(path: Path) -> Unit:
    if path.name in HEADS:
        return Unit(path.parent, "folder")
    return Unit(path, "legacy" if path.suffix == ".toon" else "file")


def _in_folder(folder: Path, depth: int) -> Iterator[Unit]:
    entries = _entries(folder)
    names = {entry.name for entry in entries}
    if not names.isdisjoint(HEADS):
        yield Unit(folder, "folder")
        return
    for entry in entries:
        path = folder / entry.name
        if entry.is_symlink() and path.is_dir():
            yield from (Unit(path, "folder") for _ in _heads(path))
        elif path.is_dir():
            if depth < DEEPEST_FOLDER and f"{entry.name}.toon" not in names:
                yield from _in_folder(path, depth + 1)
        elif _may_be_workflow(entry.name):
            yield Unit(path, "legacy" if path.suffix == ".toon" else "file")


def _heads(folder: Path) -> Iterator[str]:
    """The head file of a linked folder; links are not searched further, for they may lead in circles."""
    return iter([name for name in HEADS if (folder / name).is_file()][:1])


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            visible = [entry for entry in found if not entry.name.startswith((".", "_"))]
    except OSError:
        return []
    return sorted((one for one in visible if one.name != "node_modules"), key=lambda one: one.name)


def _may_be_workflow(name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return ending in ("json", "yaml", "yml", "toon") and not stem.endswith((".scenario", ".schema"))
