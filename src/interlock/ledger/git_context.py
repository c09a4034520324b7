"""What can be seen of the project folder: git branch, HEAD and root, read from files, never by a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interlock.ledger.log.records import ObservationRecorded

LONGEST = 80


def observe(project: Path | None) -> Iterator[ObservationRecorded]:
    """Yield what the project folder shows; nothing where it is no git checkout."""
    root = _root(project)
    if root is None:
        return
    yield ObservationRecorded("repo_root", str(root)[-512:])
    head = _read(_git_dir(root) / "HEAD")
    branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else ""
    if branch:
        yield ObservationRecorded("git_branch", branch[:LONGEST])
    sha = _sha(_git_dir(root), head)
    if sha:
        yield ObservationRecorded("git_head_sha", sha)


def _root(project: Path | None) -> Path | None:
    if project is None:
        return None
    folder = project.resolve()
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def _git_dir(root: Path) -> Path:
    """The git directory; a worktree's `.git` is a file that names it."""
    marker = root / ".git"
    if marker.is_dir():
        return marker
    named = _read(marker).removeprefix("gitdir: ")
    return (root / named) if named else marker


def _sha(git: Path, head: str) -> str:
    if not head.startswith("ref: "):
        return head if len(head) == 40 else ""
    name = head.removeprefix("ref: ")
    shared = git / _read(git / "commondir") if (git / "commondir").exists() else git
    loose = _read(git / name) or _read(shared / name)
    return loose or _packed(shared, name)


def _packed(git: Path, name: str) -> str:
    for line in _read(git / "packed-refs").splitlines():
        sha, _, ref = line.partition(" ")
        if ref == name:
            return sha
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
