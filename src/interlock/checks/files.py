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
LEFT_OUT = frozenset(
    {
        ".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
        ".tox", ".nox", ".venv", "venv", "node_modules", "target", ".gradle", ".coverage", ".DS_Store",
    }
)  # fmt: skip
MOST_READ = 256 * 1024 * 1024
CHUNK = 1024 * 1024


def digest_of_files(folder: Path) -> str:
    """Return a digest over names, kinds and contents of the files of a folder.

    Links are not followed. Beyond a quarter of a gigabyte, size and time stand for the content.
    """
    digest, left = sha256(), MOST_READ
    for path in _files(folder):
        try:
            known = path.lstat()
        except OSError:
            continue  # it was removed meanwhile
        digest.update(f"{path.relative_to(folder).as_posix()}\0{known.st_mode:o}\0".encode(errors="replace"))
        digest.update(_content(path, known, left))
        left -= known.st_size if stat.S_ISREG(known.st_mode) else 0
    return f"sha256:{digest.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder that is not a folder, in order."""
    for root, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and name not in links)
        yield from (Path(root, name) for name in sorted([*names, *links]) if name not in LEFT_OUT)


def _content(path: Path, known: os.stat_result, left: int) -> bytes:
    try:
        if stat.S_ISLNK(known.st_mode):
            return os.readlink(path).encode(errors="replace")
        if not stat.S_ISREG(known.st_mode) or known.st_size > left:
            return f"{known.st_size} {known.st_mtime_ns}".encode()
        return _digest_of_file(path)
    except OSError as error:
        return f"unreadable: {error.errno}".encode()


def _digest_of_file(path: Path) -> bytes:
    # Opening a pipe that was put there meanwhile would wait for its writer.
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    digest = sha256()
    with open(opened, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.digest()
