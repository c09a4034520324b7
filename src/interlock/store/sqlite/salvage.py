"""Recovery of the readable rows of a damaged file into a new one.

The damaged file is only read. Rows are copied unchanged; their digests tell later which of them are intact.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import apsw
from msgspec import Struct

from interlock.store.protocol import StoreCorrupt
from interlock.store.sqlite.lock import FileLock
from interlock.store.sqlite.schema import FILE, MIGRATIONS, TABLES
from interlock.store.sqlite.store import connect, lock_path, make_private, migrate, version_of

UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, UnicodeDecodeError)
LARGEST_GAP = 2**40
LARGEST_FILE = 2**40


class Salvaged(Struct, frozen=True):
    """How many rows of each table were recovered, and in which tables some were lost."""

    rows: dict[str, int]
    damaged: tuple[str, ...]


def replace_damaged(folder: Path, name: str = FILE) -> tuple[Salvaged, Path]:
    """Put a salvaged store in the place of a damaged one, which is kept beside it under the returned name."""
    path = folder / name
    lock, fresh = FileLock(lock_path(path)), path.with_name(f"{name}.salvaged")
    try:
        with lock:
            fresh.unlink(missing_ok=True)
            saved = salvage(path, fresh)
            names = (path.with_name(f"{name}.damaged-{number}") for number in count(1))
            kept = next(free for free in names if not free.exists())
            for end in ("-shm", "-wal", ""):
                if (part := path.with_name(name + end)).exists():
                    part.rename(kept.with_name(kept.name + end))
            fresh.rename(path)
    finally:
        lock.close()
    return saved, kept


def salvage(path: Path, into: Path) -> Salvaged:
    """Copy every readable row of the store file `path` into the new store file `into`."""
    if into.exists():
        raise FileExistsError(f"{into} exists; salvage writes a new file")
    make_private(into)
    try:
        with TemporaryDirectory(dir=into.parent) as folder:
            source, target = connect(_padded_copy(path, Path(folder))), connect(into)
            try:
                migrate(target, into, MIGRATIONS[: version_of(source)] or MIGRATIONS)
                salvaged = copy_tables(source, target)
                target.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            finally:
                source.close()
                target.close()
    except UNREADABLE as error:
        into.unlink()
        raise StoreCorrupt(f"{path}: nothing in it can be read ({error})") from error
    return salvaged


def _padded_copy(path: Path, folder: Path) -> Path:
    """Copy the file and its log, padded to the size that its header names: SQLite opens no shorter file."""
    copy = folder / path.name
    for suffix in ("", "-wal"):
        if (part := path.with_name(path.name + suffix)).exists():
            copyfile(part, copy.with_name(copy.name + suffix))
    with copy.open("r+b") as file:
        header = file.read(32)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if file.seek(0, os.SEEK_END) < size < LARGEST_FILE:
            file.truncate(size)
    return copy


def copy_tables(source: apsw.Connection, target: apsw.Connection) -> Salvaged:
    """Copy the readable rows of every table in one transaction."""
    copied: dict[str, int] = {}
    damaged: list[str] = []
    with target:
        for table in TABLES:
            width = sum(1 for _ in target.execute(f"PRAGMA table_info({table})"))
            sql = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * width)})"
            reader = TableReader(source, table)
            copied[table] = 0
            for row in reader.rows():
                target.execute(sql, row)
                copied[table] += target.changes()
            if reader.gaps:
                damaged.append(table)
        target.execute("UPDATE sessions SET unindexed = 1")  # the words are derived from the log again
    return Salvaged(copied, tuple(damaged))


class TableReader:
    """Reads one table and skips its damaged pages; `gaps` counts them."""

    def __init__(self, source: apsw.Connection, table: str) -> None:
        self.gaps = 0
        self._source = source
        self._sql = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"

    def rows(self) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        """Yield the readable rows in the order of their ids."""
        last: int | None = 0
        while last is not None:
            try:
                for rowid, *row in self._source.execute(self._sql, (last,)):
                    last = int(str(rowid))
                    yield tuple(row)
                return
            except UNREADABLE:
                self.gaps += 1
                last = self._after_gap(last)

    def _after_gap(self, last: int) -> int | None:
        """Find where reading works again: double the distance until it does, then bisect."""
        low, high = last, last + 1
        while not self._is_readable(high):
            if high - last > LARGEST_GAP:
                return None
            low, high = high, high + 2 * (high - last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_readable(middle) else (middle, high)
        return high

    def _is_readable(self, after: int) -> bool:
        try:
            next(iter(self._source.execute(self._sql, (after,))), None)
        except UNREADABLE:
            return False
        return True
