"""Where workflows come from, in order of precedence, and which files of a folder may be workflows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

from msgspec import Struct

SourceKind = Literal["bundled", "plugin", "user", "configured", "git", "project"]

# Later ones outrank earlier ones: what the user chose outranks what others wrote (rule 38a).
PRECEDENCE: tuple[SourceKind, ...] = ("bundled", "plugin", "git", "project", "user", "configured")
HEADS = ("workflow.yaml", "workflow.yml", "workflow.toon")
ENDINGS = (".json", ".yaml", ".yml", ".toon")
DEEPEST_FOLDER = 5
MOST_UNITS = 5_000


class Source(Struct, frozen=True):
    """A folder (or one file) of workflows; a namespace is what it is mounted under (rule 38).

    `checks` is the file in which the project says what the checks run that workflows only name.
    """

    kind: SourceKind
    path: Path
    namespace: str | None = None
    checks: Path | None = None

    @property
    def root(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def label(self) -> str:
        """The kind, and what tells it apart from others of its kind."""
        if self.kind == "configured":
            return f"--workflows {self.namespace or self.path.name}"
        return f"{self.kind} {self.namespace}" if self.namespace else self.kind


class Unit(Struct, frozen=True):
    """One file or folder that may be a workflow; a legacy one is a TOON file beside its folder."""

    path: Path
    form: Literal["file", "folder", "legacy"]

    @property
    def head(self) -> Path:
        """The file that declares the workflow."""
        if self.form != "folder":
            return self.path
        heads = [self.path / name for name in HEADS]
        readable = (head for head in heads if os.path.isfile(head))
        return next(readable, None) or next(filter(os.path.lexists, heads), heads[0])

    @property
    def home(self) -> Path:
        """The folder of the files that belong to the workflow."""
        return self.path.with_suffix("") if self.form == "legacy" else self.path


def units(source: Source) -> Iterator[Unit]:
    """Find the files and folders of a source that may be workflows, in a stable order."""
    if os.path.isdir(source.path):
        yield from islice(_units_in(source.path, 0), MOST_UNITS)
    elif source.path.name in HEADS and source.path.is_file():
        yield Unit(source.path.parent, "folder")
    elif source.path.is_file():
        yield _file_unit(source.path)


def _units_in(folder: Path, depth: int) -> Iterator[Unit]:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        return
    entries = [
        entry for entry in entries if not entry.name.startswith((".", "_")) and entry.name != "node_modules"
    ]
    names = {entry.name for entry in entries}
    # A link that leads nowhere is meant as a head too, and is reported; a folder of that name is not.
    if any(name in names and not os.path.isdir(folder / name) for name in HEADS):
        yield Unit(folder, "folder")
        return
    for entry in entries:
        path = folder / entry.name
        if entry.is_symlink() and os.path.isdir(path):
            # A linked folder can be a workflow, but is not searched: links may be circular.
            if any(os.path.isfile(path / name) for name in HEADS):
                yield Unit(path, "folder")
        elif os.path.isdir(path):  # `Path.is_dir` raises if the target of a link cannot be looked at
            if depth < DEEPEST_FOLDER and f"{entry.name}.toon" not in names:
                yield from _units_in(path, depth + 1)
        elif path.suffix.lower() in ENDINGS and not path.stem.endswith((".scenario", ".schema")):
            yield _file_unit(path)


def _file_unit(path: Path) -> Unit:
    return Unit(path, "legacy" if path.suffix.lower() == ".toon" else "file")
