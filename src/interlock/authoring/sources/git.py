"""Workflows from git repositories: cloned into the data directory, and looked at before they are checked out.

A repository is somebody else's: it gets no hooks, links, submodules or odd paths, and only so much room.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from interlock.authoring.compile.ids import RESERVED
from interlock.authoring.sources.cache import make_private
from interlock.authoring.sources.discovery import CLONES

SCHEMES = ("https", "ssh", "file")
MOST_FILES = 5_000
MOST_BYTES = 50_000_000
MOST_FETCHED = 200_000_000
PATIENCE = 300.0

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_NEVER = ("..", "@{", "//", "/.", ".lock/")
_CAREFUL = (
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "transfer.fsckObjects=true",
    "advice.detachedHead=false",
)


class Repository(Struct, frozen=True, omit_defaults=True):
    """A repository that was added, and the commit it stands at."""

    name: str
    url: str
    commit: str
    ref: str | None = None


class GitError(Struct, frozen=True):
    """Why a repository was not taken; nothing has changed."""

    reason: str
    taken: bool = False


class _Refusal(Exception):
    """Carried up to the one place that cleans up."""


def repositories(data: Path) -> list[Repository]:
    """All that were added, by name."""
    try:
        found = msgspec.json.decode((data / CLONES / ".index.json").read_bytes(), type=dict[str, Repository])
    except (OSError, msgspec.MsgspecError):
        return []
    return [found[name] for name in sorted(found) if (data / CLONES / name).is_dir()]


def add(data: Path, url: str, name: str | None = None, ref: str | None = None) -> Repository | GitError:
    """Clone a repository and remember it."""
    chosen = name or _named_after(url)
    if reason := _unfit(url, chosen, ref):
        return GitError(reason)
    if (data / CLONES / chosen).exists():
        return GitError(f"a source is called '{chosen}' already; choose another with --name", taken=True)
    return _taken(data, url, chosen, ref)


def update(data: Path, known: Repository) -> Repository | GitError:
    """Clone anew and put it in the place of the old one; until then the old one stays."""
    if reason := _unfit(known.url, known.name, known.ref):
        return GitError(reason)
    return _taken(data, known.url, known.name, known.ref)


def remove(data: Path, name: str) -> bool:
    """Forget a repository and its files."""
    if not NAME.fullmatch(name) or not (data / CLONES / name).is_dir():
        return False
    _discard(data / CLONES / name)
    _write_index(data, [one for one in repositories(data) if one.name != name])
    return True


def _named_after(url: str) -> str:
    last = url.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git").lower()
    return re.sub(r"[^a-z0-9_-]+", "-", last).strip("-_0123456789")[:64]


def _unfit(url: str, name: str, ref: str | None) -> str:
    """What is wrong with the words that git would be given."""
    if not NAME.fullmatch(name) or f"{name}." == RESERVED:
        return f"'{name}' cannot be the name of a source; choose one with --name"
    if ref is not None and (not REF.fullmatch(ref) or any(one in f"{ref}/" for one in _NEVER)):
        return f"'{ref}' is not the name of a branch or tag"
    return _unfit_url(url)


def _unfit_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or (parts.scheme == "https" and parts.username is not None)
    except ValueError:
        return "this is not a URL"
    if any(not one.isprintable() or one.isspace() for one in url):
        return "the URL holds blanks or control characters"
    if parts.scheme not in SCHEMES:
        return f"a source is added by {', '.join(f'{one}://' for one in SCHEMES)}, not by '{url[:80]}'"
    if secret:
        return "the URL holds a password or token; let git's credential helper keep it"
    if parts.netloc.startswith("-") or parts.path.startswith("-") or not parts.path.strip("/"):
        return "this is not the URL of a repository"
    return ""


def _taken(data: Path, url: str, name: str, ref: str | None) -> Repository | GitError:
    folder = data / CLONES
    make_private(folder)
    made = folder / f".{name}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        commit = _cloned(url, made, ref)
        _put(made, folder / name)
    except _Refusal as refusal:
        return GitError(str(refusal))
    finally:
        _discard(made)
    found = Repository(name, url, commit, ref)
    _write_index(data, [*(one for one in repositories(data) if one.name != name), found])
    return found


def _cloned(url: str, made: Path, ref: str | None) -> str:
    """Fetch, look at what would be checked out, and only then check it out."""
    branch = ["--branch", ref] if ref else []
    shape = ["--depth", "1", "--single-branch", "--no-tags", "--no-checkout", "--no-recurse-submodules"]
    _git("clone", "--quiet", "--template=", *shape, *branch, "--", url, str(made), watched=made)
    _check_tree(_git("-C", str(made), "ls-tree", "-r", "-l", "-z", "HEAD"))
    _git("-C", str(made), "checkout", "--quiet", "--force", "HEAD", "--", watched=made)
    return _git("-C", str(made), "rev-parse", "HEAD").strip()


def _check_tree(listed: str) -> None:
    entries = [entry.partition("\t") for entry in listed.split("\0") if entry]
    if len(entries) > MOST_FILES:
        raise _Refusal(f"the repository has {len(entries):,} files of at most {MOST_FILES:,}")
    total = 0
    for about, _, path in entries:
        mode, _, _, size = about.split()
        _check_entry(mode, path)
        total += int(size) if size.isdigit() else 0
    if total > MOST_BYTES:
        raise _Refusal(f"the repository has {total:,} bytes of at most {MOST_BYTES:,}")


def _check_entry(mode: str, path: str) -> None:
    parts = path.split("/")
    if mode == "120000":
        raise _Refusal(f"'{path}' is a symbolic link")
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise _Refusal(f"'{path}' is not a path that can be checked out safely")
    if not path.isprintable() or "\\" in path:
        raise _Refusal("a path holds control characters or backslashes")


def _git(*arguments: str, watched: Path | None = None) -> str:
    """Run git without questions, and with an eye on the time and the room it takes."""
    settings = [word for one in _CAREFUL for word in ("-c", one)]
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise _Refusal(f"git cannot be run: {error.strerror}") from error
    with process:
        out, err = _awaited(process, watched)
    if process.returncode:
        raise _Refusal(_last_line(err))
    return out


def _awaited(process: subprocess.Popen[str], watched: Path | None) -> tuple[str, str]:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            return process.communicate(timeout=0.25)
        except subprocess.TimeoutExpired:
            reason = _excess(watched, ends)
            if reason:
                process.kill()
                process.communicate()
                raise _Refusal(reason) from None


def _excess(watched: Path | None, ends: float) -> str:
    if time.monotonic() > ends:
        return f"git took more than {PATIENCE:.0f} seconds"
    if watched is not None and _size(watched) > MOST_FETCHED:
        return f"the repository takes more than {MOST_FETCHED:,} bytes"
    return ""


def _size(folder: Path) -> int:
    total = 0
    for location, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(location, name)).st_size
            except OSError:
                continue
    return total


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("fatal: ") if lines else "git failed without a word"


def _put(made: Path, location: Path) -> None:
    """Swap the new clone in; the old one is in the way for a moment only."""
    old = made.with_name(f"{made.name}.old")
    if location.exists():
        os.rename(location, old)
    os.rename(made, location)
    _discard(old)


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _write_index(data: Path, found: Sequence[Repository]) -> None:
    path = data / CLONES / ".index.json"
    made = path.with_name(f".index.{os.getpid()}")
    made.write_bytes(msgspec.json.encode({one.name: one for one in found}))
    os.replace(made, path)
