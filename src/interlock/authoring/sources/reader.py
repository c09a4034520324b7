"""Reads the files of one source: never outside it, links included, and remembers what was looked at.

What was looked at, with size and time, tells the compile cache later whether anything has changed.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.sources.stamps import Stamp, stamp_of
from interlock.authoring.text.formats import FORMATS, LARGEST_FILE, decode, parse
from interlock.authoring.text.locations import Parsed


class SourceReader:
    """Reads for one workflow: files are named relative to the root and must lie within the fence."""

    def __init__(
        self, root: Path, report: Report, stamps: dict[str, Stamp], fence: Path | None = None
    ) -> None:
        self.root = root
        self.report = report
        self.stamps = stamps
        self._fence = Path(os.path.realpath(fence or root))

    def within(self, fence: Path) -> SourceReader:
        return SourceReader(self.root, self.report, self.stamps, fence)

    def shown(self, path: Path) -> str:
        """Name a file relative to its source, never by its absolute path."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.name

    def names(self, folder: Path) -> list[str]:
        """The entries of a folder, sorted; none if it is missing or leads outside."""
        self._note(folder)
        if not self._is_inside(folder):
            return []
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    def text(self, path: Path) -> str | None:
        """The text of a file, or None with the reason reported."""
        shown = self.shown(path)
        self._note(path)
        if not self._is_inside(path):
            self.report.add_at(shown, "IL009", "the file is outside its folder")
            return None
        try:
            raw = _start_of(path)
        except OSError as error:
            self.report.add_at(shown, "IL001", f"cannot be read: {error.strerror}")
            return None
        return decode(shown, raw, self.report)

    def parsed(self, path: Path) -> Parsed | None:
        """The value of a file by its ending, or None with the reason reported."""
        text = self.text(path)
        return None if text is None else parse(self.shown(path), text, FORMATS[path.suffix], self.report)

    def exists(self, path: Path) -> bool:
        self._note(path)
        return path.is_file()

    def _note(self, path: Path) -> None:
        self.stamps.setdefault(str(path), stamp_of(path))

    def _is_inside(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return real == self._fence or self._fence in real.parents


def _start_of(path: Path) -> bytes:
    """What may be read of a regular file; to open a pipe would wait for its writer."""
    if not S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with open(path, "rb") as stream:
        return stream.read(LARGEST_FILE + 1)
