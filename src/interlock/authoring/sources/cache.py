"""What compiling found out, kept on disk: one index a source, one blob a workflow.

Writers replace whole files, so that two processes can share a folder; whatever does not verify is ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from interlock.authoring.diagnostics.diagnostic import Diagnostic, Mention
from interlock.authoring.sources.listing import Listed
from interlock.authoring.sources.sources import Source
from interlock.authoring.sources.stamps import Stamp, fingerprint
from interlock.core.definition.workflow import Workflow

PACKAGE = Path(__file__).parents[2]
COMPILER = ("authoring/**/*.py", "core/**/*.py", "library/*/*.json", "library/workflows/routines/*")
DIGEST_BYTES = 32

T = TypeVar("T")


class Content(Struct, frozen=True):
    """The heavy part of a compiled workflow: itself and its texts by digest."""

    workflow: Workflow
    texts: Mapping[str, str]


class CacheRecord(Struct, frozen=True):
    """The light part: enough to list it, and to know whether its files have changed.

    Without an entry the workflow cannot be used, and the problems say why; without an id it is none.
    """

    workflow_id: str
    entry: Listed | None
    diagnostics: tuple[Diagnostic, ...]
    stamps: tuple[Stamp, ...]
    read_at: int
    blob: str = ""
    mentions: tuple[Mention, ...] = ()


class Cache:
    """The folder of one source; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, source: Source) -> None:
        self._folder = folder / _key(source) if folder is not None else None

    def records(self) -> dict[str, CacheRecord]:
        """What is known, by the path of the file or folder."""
        if self._folder is None:
            return {}
        return _decoded(_verified(self._folder / "index"), dict[str, CacheRecord]) or {}

    def content(self, record: CacheRecord) -> Content | None:
        if self._folder is None or not record.blob:
            return None
        return _decoded(_verified(self._folder / record.blob), Content)

    def keep(self, content: Content) -> str:
        """Write a workflow and name its blob."""
        if self._folder is None:
            return ""
        raw = msgspec.msgpack.encode(content)
        name = sha256(raw).hexdigest()[:40]
        return name if _replace(self._folder / name, raw) else ""

    def write(self, records: Mapping[str, CacheRecord]) -> None:
        """Write the index, and remove the blobs that it does not name."""
        if self._folder is None or not _replace(self._folder / "index", msgspec.msgpack.encode(records)):
            return
        wanted = {"index", *(record.blob for record in records.values())}
        for path in self._folder.iterdir():
            if path.name not in wanted and not path.name.startswith("."):
                path.unlink(missing_ok=True)


def _key(source: Source) -> str:
    """A source compiled by another compiler, or with other built-ins, is another source."""
    parts = (source.kind, str(source.path), source.namespace or "", _compiler())
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _compiler() -> str:
    return fingerprint(path for pattern in COMPILER for path in PACKAGE.glob(pattern))


def _decoded(raw: bytes | None, kind: type[T]) -> T | None:
    if raw is None:
        return None
    try:
        return msgspec.msgpack.decode(raw, type=kind)
    except msgspec.MsgspecError:
        return None


def _verified(path: Path) -> bytes | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    digest, body = raw[:DIGEST_BYTES], raw[DIGEST_BYTES:]
    return body if sha256(body).digest() == digest else None


def _replace(path: Path, body: bytes) -> bool:
    """Write a file whole or not at all; a folder that cannot be written costs only time."""
    try:
        make_private(path.parent)
        made = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        made.write_bytes(sha256(body).digest() + body)
        os.replace(made, path)
    except OSError:
        return False
    return True


def make_private(folder: Path) -> None:
    """Make a folder for the user alone, and those above it: the data directory may be among them."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
