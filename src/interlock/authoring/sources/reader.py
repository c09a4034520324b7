"""Reads the files of one source, never outside it, not even through links.

Every path that is looked at is stamped with size and time, so that the compile cache can detect changes.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.sources.stamps import Stamp, stamp_of
from interlock.authoring.text.formats import FORMATS, LARGEST_FILE, decode, parse_text
from interlock.authoring.text.locations import Parsed


class SourceReader:
    """Reads for one workflow: files are named relative to the root and must be within the boundary."""

    def __init__(
        self, root: Path, report: Report, stamps: dict[str, Stamp], boundary: Path | None = None
    ) -> None:
        self.root = root
        self.report = report
        self.stamps = stamps
        self._boundary = Path(os.path.realpath(boundary or root))

    def within(self, boundary: Path) -> SourceReader:
        """Return a reader with another boundary."""
        return SourceReader(self.root, self.report, self.stamps, boundary)

    def shown(self, path: Path) -> str:
        """Name a file relative to its source, never by its absolute path."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.name

    def names(self, folder: Path) -> list[str]:
        """Return the entries of a folder, sorted; none if it is missing or outside."""
        if not self._may_read(folder):
            return []
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    def has(self, path: Path) -> bool:
        """Say whether there is such a file; one that appears later is noticed."""
        return self._may_read(path) and os.path.isfile(path)

    def text(self, path: Path) -> str | None:
        """Return the text of a file, or report why it cannot be read."""
        shown = self.shown(path)
        if not self._may_read(path):
            self.report.add_at(shown, "IL009", "the file is outside its folder")
            return None
        try:
            # Opening a pipe would wait for its writer.
            if not S_ISREG(os.stat(path).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            with open(path, "rb") as stream:
                raw = stream.read(LARGEST_FILE + 1)
        except OSError as error:
            message, fix = f"cannot be read: {error.strerror}", "check that it is a file you may read"
            self.report.add_at(shown, "IL001", message, next_action=fix)
            return None
        return decode(shown, raw, self.report)

    def parsed(self, path: Path) -> Parsed | None:
        """Return the value of a file by its ending, or report why it has none."""
        if (form := FORMATS.get(path.suffix.lower())) is None:
            message, fix = f"the name ends in none of {', '.join(FORMATS)}", "rename the file by its format"
            self.report.add_at(self.shown(path), "IL001", message, next_action=fix)
            return None
        text = self.text(path)
        return None if text is None else parse_text(self.shown(path), text, form, self.report)

    def _may_read(self, path: Path) -> bool:
        """Stamp a path and say whether it is within the boundary."""
        self.stamps.setdefault(str(path), stamp_of(path))
        real_path = Path(os.path.realpath(path))
        return real_path == self._boundary or self._boundary in real_path.parents
