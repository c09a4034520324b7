"""What can be seen of the project folder: git branch, HEAD and root, read from files, never by a process.

An agent can write those files, so only what looks like a branch or a commit is ever recorded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from interlock.ledger.log.records import ObservationRecorded

LONGEST_BRANCH = 80
LONGEST_ROOT = 512
LONGEST_REFERENCE = 255
SMALL_FILE = 4_096
PACKED_REFERENCES = 1_000_000

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The names that git itself allows: no empty or hidden part, none of the characters of revision syntax.
_REFERENCE = re.compile(r"refs(?:/(?!\.)[^\s/~^:?*\[\\]+(?<!\.)(?<!\.lock))+")
_BRANCHES = "refs/heads/"


def observe(project: Path | None) -> Iterator[ObservationRecorded]:
    """Yield what the project folder shows; nothing where it is not a git checkout."""
    root = _root(project)
    if root is None:
        return
    if str(root).isprintable():
        yield ObservationRecorded("repo_root", str(root)[-LONGEST_ROOT:])
    git = _git_dir(root)
    if git is None:
        return
    head = _read(git, "HEAD")
    reference = head.removeprefix("ref: ") if head.startswith("ref: ") else ""
    if reference and not _is_reference(reference):
        return
    if reference.startswith(_BRANCHES):
        yield ObservationRecorded("git_branch", reference.removeprefix(_BRANCHES)[:LONGEST_BRANCH])
    commit = _commit_of(git, reference) if reference else head
    if _COMMIT.fullmatch(commit):
        yield ObservationRecorded("git_head_sha", commit)


def _root(project: Path | None) -> Path | None:
    if project is None:
        return None
    folder = Path(os.path.realpath(project))
    return next((path for path in (folder, *folder.parents) if os.path.lexists(path / ".git")), None)


def _git_dir(root: Path) -> Path | None:
    """Return the git directory; the `.git` of a worktree or submodule is a file that names it."""
    marker = root / ".git"
    if marker.is_dir() and not marker.is_symlink():
        return marker
    line = "gitdir: .git" if marker.is_dir() else _read(root, ".git")
    if not line.startswith("gitdir: ") or not line.isprintable():
        return None
    git = Path(os.path.realpath(root / line.removeprefix("gitdir: ")))
    return git if _is_repository(git) or _repository_of(git) else None


def _is_repository(folder: Path) -> bool:
    return (folder / "objects").is_dir() and (folder / "refs").is_dir() and (folder / "HEAD").is_file()


def _repository_of(git: Path) -> Path | None:
    """Return the repository that a worktree's directory lies in, at `worktrees/NAME`."""
    named = _read(git, "commondir")
    repository = git.parent.parent
    is_around = git.parent.name == "worktrees" and os.path.realpath(git / named) == str(repository)
    return repository if named.isprintable() and is_around and _is_repository(repository) else None


def _is_reference(name: str) -> bool:
    return (
        len(name) <= LONGEST_REFERENCE
        and name.isprintable()
        and ".." not in name
        and "@{" not in name
        and _REFERENCE.fullmatch(name) is not None
    )


def _commit_of(git: Path, reference: str) -> str:
    repository = _repository_of(git) or git
    if loose := _read(git, reference) or _read(repository, reference):
        return loose
    for line in _read(repository, "packed-refs", PACKED_REFERENCES).splitlines():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""


def _read(folder: Path, name: str, most: int = SMALL_FILE) -> str:
    """Return the text of a regular file in a folder; nothing if it is large, linked or anything else."""
    path = folder / name
    if os.path.realpath(path) != os.path.join(os.path.realpath(folder), name):
        return ""
    try:
        # Opening a pipe would wait for its writer.
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return ""
        raw = os.read(opened, most + 1)
        return raw.decode().strip() if len(raw) <= most else ""
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(opened)
