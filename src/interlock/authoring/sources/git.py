"""Workflows from git repositories: cloned into the data directory, and checked before they are checked out.

A repository is not trusted: it gets no hooks, links, submodules or unusual paths, and limited disk space.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from interlock.authoring.compile.ids import RESERVED
from interlock.authoring.sources.atomic_write import replace_file
from interlock.authoring.sources.cache import make_private_folder
from interlock.authoring.sources.discovery import CLONES

SCHEMES = ("https", "ssh", "file")
MOST_FILES = 5_000
MOST_BYTES = 50_000_000
MOST_FETCHED = 200_000_000
PATIENCE = 300.0

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_NOT_IN_REF = ("..", "@{", "//", "/.", ".lock/")
_SAFE_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "transfer.fsckObjects=true",
    "advice.detachedHead=false",
)


class Repository(Struct, frozen=True, omit_defaults=True):
    """A repository that was added, and the commit that is checked out."""

    name: str
    url: str
    commit: str
    ref: str | None = None


class GitError(Struct, frozen=True):
    """Why a repository was not cloned; nothing has changed."""

    reason: str
    taken: bool = False


class _Refused(Exception):
    """Ends a clone, so that it is cleaned up in one place."""


def repositories(data: Path) -> list[Repository]:
    """Return all repositories that were added, by name."""
    try:
        known = msgspec.json.decode((data / CLONES / ".index.json").read_bytes(), type=dict[str, Repository])
    except (OSError, msgspec.MsgspecError):
        return []
    return [known[name] for name in sorted(known) if (data / CLONES / name).is_dir()]


def add_repository(
    data: Path, url: str, name: str | None = None, ref: str | None = None
) -> Repository | GitError:
    """Clone a repository and remember it; without a name, it is named after the URL."""
    if name is None or not name:
        last = url.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git").lower()
        name = re.sub(r"[^a-z0-9_-]+", "-", last).strip("-_0123456789")[:64]
    if reason := _objection(url, name, ref):
        return GitError(reason)
    if (data / CLONES / name).exists():
        return GitError(f"there is already a source '{name}'; choose another name with --name", taken=True)
    return _cloned(data, url, name, ref)


def update_repository(data: Path, known: Repository) -> Repository | GitError:
    """Clone again and replace the old clone, which stays until the new one is complete."""
    if reason := _objection(known.url, known.name, known.ref):
        return GitError(reason)
    return _cloned(data, known.url, known.name, known.ref)


def remove_repository(data: Path, name: str) -> bool:
    """Forget a repository and delete its files."""
    if not NAME.fullmatch(name) or not (data / CLONES / name).is_dir():
        return False
    shutil.rmtree(data / CLONES / name, ignore_errors=True)
    _write_index(data, [repository for repository in repositories(data) if repository.name != name])
    return True


def _objection(url: str, name: str, ref: str | None) -> str:
    """Return what is wrong with the arguments that git would get."""
    if not NAME.fullmatch(name) or f"{name}." == RESERVED:
        return f"'{name}' cannot be the name of a source; choose one with --name"
    if ref is not None and (not REF.fullmatch(ref) or any(part in f"{ref}/" for part in _NOT_IN_REF)):
        return f"'{ref}' is not the name of a branch or tag"
    try:
        parts = urlsplit(url)
        has_secret = parts.password is not None or (parts.scheme == "https" and parts.username is not None)
    except ValueError:
        return "this is not a URL"
    if any(not letter.isprintable() or letter.isspace() for letter in url):
        return "the URL contains blanks or control characters"
    if parts.scheme not in SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        return f"the URL of a source starts with one of {schemes}; got '{url[:80]}'"
    if has_secret:
        return "the URL contains a password or token; use git's credential helper instead"
    if parts.netloc.startswith("-") or parts.path.startswith("-") or not parts.path.strip("/"):
        return "this is not the URL of a repository"
    return ""


def _cloned(data: Path, url: str, name: str, ref: str | None) -> Repository | GitError:
    """Fetch into a new folder, check the tree before it is checked out, then replace the old clone."""
    make_private_folder(data / CLONES)
    clone, target = data / CLONES / f".{name}.{os.getpid()}.{time.monotonic_ns()}", data / CLONES / name
    old = clone.with_name(f"{clone.name}.old")
    branch = ["--branch", ref] if ref else []
    shape = ["--depth", "1", "--single-branch", "--no-tags", "--no-checkout", "--no-recurse-submodules"]
    try:
        _git("clone", "--quiet", "--template=", *shape, *branch, "--", url, str(clone), watched=clone)
        _check_tree(_git("-C", str(clone), "ls-tree", "-r", "-l", "-z", "HEAD"))
        _git("-C", str(clone), "checkout", "--quiet", "--force", "HEAD", "--", watched=clone)
        commit = _git("-C", str(clone), "rev-parse", "HEAD").strip()
        if target.exists():
            os.rename(target, old)
        os.rename(clone, target)
        shutil.rmtree(old, ignore_errors=True)
    except _Refused as refused:
        return GitError(str(refused))
    finally:
        shutil.rmtree(clone, ignore_errors=True)
    cloned = Repository(name, url, commit, ref)
    _write_index(data, [*(known for known in repositories(data) if known.name != name), cloned])
    return cloned


def _check_tree(listing: str) -> None:
    entries = [entry.partition("\t") for entry in listing.split("\0") if entry]
    if len(entries) > MOST_FILES:
        raise _Refused(f"the repository has {len(entries):,} files; the limit is {MOST_FILES:,}")
    total = 0
    for details, _, path in entries:
        mode, _, _, size = details.split()
        total += int(size) if size.isdigit() else 0
        if mode == "120000":
            raise _Refused(f"'{path}' is a symbolic link")
        if any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/")):
            raise _Refused(f"'{path}' is not a path that can be checked out safely")
        if not path.isprintable() or "\\" in path:
            raise _Refused("a path contains control characters or backslashes")
    if total > MOST_BYTES:
        raise _Refused(f"the repository has {total:,} bytes; the limit is {MOST_BYTES:,}")


def _git(*arguments: str, watched: Path | None = None) -> str:
    """Run git without prompts, within limits of time and of the size of the watched folder."""
    settings = [word for setting in _SAFE_SETTINGS for word in ("-c", setting)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {
        **inherited,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise _Refused(f"git cannot be run: {error.strerror}") from error
    with process:
        output, errors = _output_of(process, watched)
    if process.returncode:
        lines = [line for line in errors.splitlines() if line.strip()]
        raise _Refused(lines[-1].removeprefix("fatal: ") if lines else "git failed without a message")
    return output


def _output_of(process: subprocess.Popen[str], watched: Path | None) -> tuple[str, str]:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return process.communicate(timeout=0.25)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                reason = f"git took more than {PATIENCE:.0f} seconds"
            elif watched is not None and _size_of(watched) > MOST_FETCHED:
                reason = f"the repository takes more than {MOST_FETCHED:,} bytes"
            else:
                continue
            process.kill()
            process.communicate()
            raise _Refused(reason) from None


def _size_of(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue
    return total


def _write_index(data: Path, known: Sequence[Repository]) -> None:
    index = {repository.name: repository for repository in known}
    replace_file(data / CLONES / ".index.json", msgspec.json.encode(index))
