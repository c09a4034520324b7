"""The compile cache on disk: one index per source, one blob per workflow.

Writers replace whole files, so that two processes can share a folder; files with a wrong digest are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from interlock.authoring.diagnostics.diagnostic import Diagnostic, Mention
from interlock.authoring.sources.atomic_write import replace_file
from interlock.authoring.sources.listing import Listed
from interlock.authoring.sources.sources import Source
from interlock.authoring.sources.stamps import Stamp, fingerprint
from interlock.core.definition.workflow import Workflow

_PACKAGE = Path(__file__).parents[2]
_COMPILER_FILES = ("authoring/**/*.py", "core/**/*.py", "library/*/*.json", "library/workflows/routines/*")
DIGEST_BYTES = 32

T = TypeVar("T")


class Content(Struct, frozen=True):
    """The large part of a compiled workflow: itself, and its texts by digest."""

    workflow: Workflow
    texts: Mapping[str, str]


class CacheRecord(Struct, frozen=True):
    """The small part: enough to list the workflow, and to detect whether its files have changed.

    Without an entry the diagnostics say why it cannot be used; without an id it is not a workflow. It owns
    its id unless that was guessed from the file's name, or is reserved for the bundled workflows.
    """

    workflow_id: str
    entry: Listed | None
    diagnostics: tuple[Diagnostic, ...]
    stamps: tuple[Stamp, ...]
    read_at: int
    blob: str = ""
    mentions: tuple[Mention, ...] = ()
    owns_id: bool = True


class Cache:
    """The folder of one source; without a folder nothing is cached."""

    def __init__(self, folder: Path | None, source: Source) -> None:
        self._folder: Path | None = None
        if folder is not None:
            # A source compiled by another compiler, or with other built-ins, is cached apart.
            parts = (source.kind, str(source.path), source.namespace or "", str(source.checks), _compiler())
            self._folder = folder / sha256("\0".join(parts).encode()).hexdigest()[:32]

    def records(self) -> dict[str, CacheRecord]:
        """Return the cached records by the path of the file or folder."""
        if self._folder is None:
            return {}
        return _read(self._folder / "index", dict[str, CacheRecord]) or {}

    def content(self, record: CacheRecord) -> Content | None:
        if self._folder is None or not record.blob:
            return None
        return _read(self._folder / record.blob, Content)

    def keep(self, content: Content) -> str:
        """Write a workflow and return the name of its blob, or nothing if it cannot be written."""
        if self._folder is None:
            return ""
        raw = msgspec.msgpack.encode(content)
        name = sha256(raw).hexdigest()[:40]
        return name if keep_file(self._folder / name, _with_digest(raw)) else ""

    def write(self, records: Mapping[str, CacheRecord]) -> None:
        """Write the index, and remove the blobs that it does not name."""
        if self._folder is None:
            return
        if not keep_file(self._folder / "index", _with_digest(msgspec.msgpack.encode(records))):
            return
        wanted = {"index", *(record.blob for record in records.values())}
        for path in self._folder.iterdir():
            if path.name not in wanted and not path.name.startswith("."):
                path.unlink(missing_ok=True)


@cache
def _compiler() -> str:
    return fingerprint(path for pattern in _COMPILER_FILES for path in _PACKAGE.glob(pattern))


def _read(path: Path, kind: type[T]) -> T | None:
    """Read a file that begins with its digest; None if it is missing, damaged or of another type."""
    try:
        raw = path.read_bytes()
        digest, body = raw[:DIGEST_BYTES], raw[DIGEST_BYTES:]
        return msgspec.msgpack.decode(body, type=kind) if sha256(body).digest() == digest else None
    except (OSError, msgspec.MsgspecError):
        return None


def _with_digest(body: bytes) -> bytes:
    return sha256(body).digest() + body


def keep_file(path: Path, content: bytes) -> bool:
    """Keep a file that can be made again; a folder that cannot be written only costs time."""
    try:
        make_private_folder(path.parent)
        replace_file(path, content)
    except OSError:
        return False
    return True


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents, accessible to the user alone."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
