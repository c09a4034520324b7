"""The project's files as one digest, so that a result can be said to hold for them and for no others.

Git is not asked: its index, its ignore lists and its configuration are the agent's to write.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

# What tools write by themselves. Nothing else is left out, whatever a project ignores.
FOLDERS_LEFT_OUT = frozenset(
    {
        ".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
        ".tox", ".nox", ".venv", "venv", "node_modules", ".gradle",
    }
)  # fmt: skip
FILES_LEFT_OUT = frozenset({".coverage", ".DS_Store"})
BUILD_FOLDER = "target"  # left out beside one of these files: elsewhere it is a word like any other
BUILD_FILES = frozenset({"Cargo.toml", "pom.xml", "build.sbt"})
MOST_READ = 256 * 1024 * 1024
MOST_FILES = 100_000
CHUNK = 1024 * 1024


class _Unknowable(Exception):
    """The folder has files that are not looked at, and that a command can still read."""


def digest_of_files(folder: Path) -> str:
    """Return a digest over names, kinds and contents of the files of a folder, or "" where none can be had.

    Beyond a quarter of a gigabyte, size and times stand for the content.
    """
    root = Path(os.path.realpath(folder))
    digest, left = sha256(), MOST_READ
    try:
        for number, path in enumerate(_files(root)):
            if number >= MOST_FILES:
                return ""
            try:
                known = path.lstat()
            except OSError:
                continue  # it was removed meanwhile
            content, read = _content(root, path, known, left)
            left -= read
            for field in (os.fsencode(path.relative_to(root)), b"%o" % known.st_mode, content):
                digest.update(b"%d:%b" % (len(field), field))
    except _Unknowable:
        return ""
    return f"sha256:{digest.hexdigest()}"


def _files(root: Path) -> Iterator[Path]:
    """Yield everything below a folder that is not a folder, in order."""
    for folder, folders, names in os.walk(root, onerror=_unlisted):
        left_out = FOLDERS_LEFT_OUT | ({BUILD_FOLDER} if BUILD_FILES.intersection(names) else set())
        counted = sorted(name for name in folders if name not in left_out)
        links = [name for name in counted if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in counted if name not in links]
        yield from (Path(folder, name) for name in sorted([*names, *links]) if name not in FILES_LEFT_OUT)


def _unlisted(error: OSError) -> None:
    """Stop at a folder whose files can be opened by name, though nobody may list them."""
    if not isinstance(error, FileNotFoundError):
        raise _Unknowable from error


def _content(root: Path, path: Path, known: os.stat_result, left: int) -> tuple[bytes, int]:
    """Return what stands for the content of a file, and how much of it was read."""
    try:
        if stat.S_ISLNK(known.st_mode):
            beyond, read = _beyond(root, path, left)
            return b"%b\0%b" % (os.fsencode(os.readlink(path)), beyond), read
        return _of_file(path, known, left)
    except OSError as error:
        return f"unreadable: {error.errno}".encode(), 0


def _beyond(root: Path, link: Path, left: int) -> tuple[bytes, int]:
    """Return the content of a link's target that is not among the files of the project anyway."""
    target, left_out = Path(os.path.realpath(link)), FOLDERS_LEFT_OUT | {BUILD_FOLDER}
    if target.is_relative_to(root) and left_out.isdisjoint(target.relative_to(root).parts):
        return b"", 0
    try:
        known = target.stat()
    except OSError:
        return b"", 0  # it leads nowhere
    if stat.S_ISDIR(known.st_mode):
        raise _Unknowable
    return _of_file(target, known, left) if stat.S_ISREG(known.st_mode) else (b"", 0)


def _of_file(path: Path, known: os.stat_result, left: int) -> tuple[bytes, int]:
    if not stat.S_ISREG(known.st_mode) or known.st_size > left:
        # The time of the last change is there because nobody can set it back.
        return f"{known.st_size} {known.st_mtime_ns} {known.st_ctime_ns}".encode(), 0
    return _digest_of_file(path, known.st_size), known.st_size


def _digest_of_file(path: Path, size: int) -> bytes:
    # Opening a pipe that was put there meanwhile would wait for its writer.
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    digest, left = sha256(), size + 1  # of one that grows all the time, no more is read than was there
    with open(opened, "rb") as file:
        while chunk := file.read(min(CHUNK, left)):
            digest.update(chunk)
            left -= len(chunk)
    return digest.digest()
