"""Recover what can be read from a file with damaged pages into a new one.

The damaged file is only read. Rows come back as they are; whether they are whole is for their digests to say.
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
from interlock.store.sqlite.schema import MIGRATIONS, TABLES
from interlock.store.sqlite.store import FILE, connect, lock_path, make_private, migrate, version_of

UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, UnicodeDecodeError)
FARTHEST = 2**40
LARGEST = 2**40


class Salvaged(Struct, frozen=True):
    """How many rows of each table were recovered, and in which tables some were lost."""

    rows: dict[str, int]
    damaged: tuple[str, ...]


class _Reading:
    """One table read past its damaged pages; `gaps` counts them."""

    def __init__(self, source: apsw.Connection, table: str) -> None:
        self.gaps = 0
        self._source = source
        self._sql = f"SELECT rowid, * FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"

    def rows(self) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        last: int | None = 0
        while last is not None:
            try:
                for rowid, *row in self._source.execute(self._sql, (last,)):
                    last = int(str(rowid))
                    yield tuple(row)
                return
            except UNREADABLE:
                self.gaps += 1
                last = self._beyond(last)

    def _beyond(self, last: int) -> int | None:
        """Find a place after a damaged one: leap ahead until a row can be read, then go back by halves."""
        low, high = last, last + 1
        while not self._readable(high):
            if high - last > FARTHEST:
                return None
            low, high = high, high + 2 * (high - last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._readable(middle) else (middle, high)
        return high

    def _readable(self, after: int) -> bool:
        try:
            next(iter(self._source.execute(self._sql, (after,))), None)
        except UNREADABLE:
            return False
        return True


def salvage(path: Path, into: Path) -> Salvaged:
    """Copy every readable row of the store file `path` into the new store file `into`."""
    if into.exists():
        raise FileExistsError(f"{into} exists; salvage writes a new file")
    make_private(into)
    try:
        with TemporaryDirectory(dir=into.parent) as folder:
            return _salvaged(_whole_copy(path, Path(folder)), into)
    except UNREADABLE as error:
        into.unlink()
        raise StoreCorrupt(f"{path}: nothing in it can be read ({error})") from error


def _whole_copy(path: Path, folder: Path) -> Path:
    """Copy the file and its log, filled up to the size its header names: SQLite opens no shorter one."""
    copy = folder / path.name
    for end in ("", "-wal"):
        if (part := path.with_name(path.name + end)).exists():
            copyfile(part, copy.with_name(copy.name + end))
    with copy.open("r+b") as file:
        header = file.read(32)
        size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
        if file.seek(0, os.SEEK_END) < size < LARGEST:
            file.truncate(size)
    return copy


def _salvaged(path: Path, into: Path) -> Salvaged:
    source, target = connect(path), connect(into)
    try:
        migrate(target, into, MIGRATIONS[: version_of(source)] or MIGRATIONS)
        saved = _copied(source, target)
        target.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    finally:
        source.close()
        target.close()
    return saved


def _copied(source: apsw.Connection, target: apsw.Connection) -> Salvaged:
    readings = {table: _Reading(source, table) for table in TABLES}
    with target:
        rows = {table: _copy(target, table, reading) for table, reading in readings.items()}
    return Salvaged(rows, tuple(table for table, reading in readings.items() if reading.gaps))


def _copy(target: apsw.Connection, table: str, reading: _Reading) -> int:
    width = sum(1 for _ in target.execute(f"PRAGMA table_info({table})"))
    sql = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * width)})"
    copied = 0
    for row in reading.rows():
        target.execute(sql, row)
        copied += target.changes()
    return copied


def replace_damaged(folder: Path, name: str = FILE) -> tuple[Salvaged, Path]:
    """Put a salvaged store in the place of a damaged one, which is kept beside it under the returned name."""
    path = folder / name
    lock, fresh = FileLock(lock_path(path)), path.with_name(f"{name}.salvaged")
    try:
        with lock:
            fresh.unlink(missing_ok=True)
            saved = salvage(path, fresh)
            kept = _free_name(path)
            for end in ("-shm", "-wal", ""):
                if (part := path.with_name(name + end)).exists():
                    part.rename(kept.with_name(kept.name + end))
            fresh.rename(path)
    finally:
        lock.close()
    return saved, kept


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    return next(name for name in names if not name.exists())
