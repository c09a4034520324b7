"""Recovery of the readable rows of a damaged file into a new one.

The damaged file is only read. Rows are copied unchanged; their digests tell later which of them are intact.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import apsw
from msgspec import Struct
from msgspec.structs import astuple

from interlock.store.protocol import StoreCorrupt
from interlock.store.sqlite.lock import FileLock
from interlock.store.sqlite.raw_commits import raw_commits
from interlock.store.sqlite.schema import FILE, MIGRATIONS, TABLES
from interlock.store.sqlite.store import (
    PAGE_SIZE,
    connect,
    has_own_schema,
    lock_path,
    make_private_file,
    migrate,
)

UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)
LOG_HEADER, FRAME_HEADER = 32, 24
EMPTY: Mapping[str, apsw.SQLiteValue] = {"TEXT": "", "INTEGER": 0, "BLOB": b""}
KINDS = {"TEXT": str, "INTEGER": int, "BLOB": bytes}
LARGEST_GAP = 2**40
LARGEST_FILE = 2**40
OF_A_SESSION = (
    " INTO commits SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 FROM sessions WHERE session_id = ?1 AND head_index >= ?3"
)
FORGET_COPIES = (
    "DELETE FROM commits WHERE session_id NOT IN (SELECT session_id FROM sessions) AND digest IN"
    " (SELECT digest FROM commits JOIN sessions USING (session_id))"
)
ADD_COMMIT, MEND_COMMIT = f"INSERT OR IGNORE{OF_A_SESSION}", f"INSERT OR REPLACE{OF_A_SESSION}"


class FewerRows(Exception):
    """A recovery would keep fewer rows than can be read; nothing was changed."""


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
    make_private_file(into)
    try:
        with TemporaryDirectory(dir=into.parent) as folder:
            target = connect(into)
            migrate(target, into, MIGRATIONS)
            copy = _folded_copy(path, Path(folder))
            sources = _readable(copy, target)
            target.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            try:
                if store_id := int.from_bytes(_store_id(copy), "big", signed=True):
                    target.pragma("application_id", store_id)
                salvaged = copy_tables(sources, target)
                salvaged.rows["commits"] += _add_hidden(copy, target)
                if salvaged.damaged and not any(salvaged.rows.values()):
                    raise apsw.CorruptError("no row of any table")
            finally:
                for source in sources:
                    source.close()
                target.close()
    except FewerRows:
        into.unlink()
        raise
    except UNREADABLE as error:
        into.unlink()
        raise StoreCorrupt(f"{path}: nothing in it can be read ({error})") from error
    return salvaged


def _folded_copy(path: Path, folder: Path) -> Path:
    """Copy the file, fold its log into the copy, and pad it: SQLite opens none shorter than its header says.

    SQLite itself ignores a log from its first damaged page on. Here every other page of it counts too.
    """
    copy, log = folder / path.name, path.with_name(f"{path.name}-wal")
    copyfile(path, copy)
    with copy.open("r+b") as file:
        for number, page in _logged_pages(log.read_bytes()) if log.exists() else ():
            file.seek((number - 1) * PAGE_SIZE)
            file.write(page)
        file.seek(0)
        size = PAGE_SIZE * int.from_bytes(file.read(32)[28:32], "big")
        if file.seek(0, os.SEEK_END) < size < LARGEST_FILE:
            file.truncate(size)
        file.seek(18)
        file.write(b"\1\1")  # the copy has no log
    return copy


def _logged_pages(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the pages of all transactions in a log that were committed, oldest first."""
    salts: Counter[bytes] = Counter()
    frames: list[
        tuple[int, int, bytes, int]
    ] = []  # page, size of the database if it is the last, salt, where
    for start in range(LOG_HEADER, len(log) - FRAME_HEADER - PAGE_SIZE + 1, FRAME_HEADER + PAGE_SIZE):
        number, size = (int.from_bytes(log[start + at : start + at + 4], "big") for at in (0, 4))
        frames.append((number, size, log[start + 8 : start + 16], start + FRAME_HEADER))
    for _, _, salt, _ in frames:
        salts[salt] += 1
    header_salt = log[16:24]
    current = header_salt if salts[header_salt] else next((salt for salt, _ in salts.most_common(1)), b"")
    newest = [frame for frame in frames if frame[2] == current]
    committed = max((place for place, frame in enumerate(newest) if frame[1]), default=-1) + 1
    largest = max((size for _, size, _, _ in newest), default=0)
    for number, _, _, at in newest[:committed]:
        if 0 < number <= largest:
            yield number, log[at : at + PAGE_SIZE]


def _readable(copy: Path, fresh: apsw.Connection) -> list[apsw.Connection]:
    """Open a copy by its own table definitions; where they are not ours, also by those of a fresh store.

    A store that was never migrated was made by the same statements: its tables begin on the same pages.
    """
    sources: list[apsw.Connection] = []
    with suppress(*UNREADABLE):
        sources.append(connect(copy))
        if _is_ours(sources[0]):
            return sources
    redefined = copy.with_name(f"{copy.name}.redefined")
    copyfile(copy, redefined)
    try:
        return [*sources, _redefined(redefined, fresh)]
    except UNREADABLE:
        if not sources:
            raise
        return sources


def _is_ours(source: apsw.Connection) -> bool:
    try:
        return has_own_schema(source)
    except (*UNREADABLE, apsw.SQLError, UnicodeDecodeError):
        return False


def _redefined(copy: Path, fresh: apsw.Connection) -> apsw.Connection:
    """Open a copy with the table definitions of a fresh store in the place of its own."""
    pages = fresh.execute("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'").fetchall()
    begun = bytearray(fresh.serialize("main"))
    count = copy.stat().st_size // PAGE_SIZE
    begun[18:20] = b"\1\1"
    begun[68:72] = _store_id(copy)
    begun[28:40] = count.to_bytes(4, "big") + bytes(8)  # as many pages as there are, and none of them free
    with copy.open("r+b") as file:
        for (number,) in pages:
            start = (int(str(number)) - 1) * PAGE_SIZE
            file.seek(start)
            file.write(begun[start : start + PAGE_SIZE])
    return connect(copy)


def _store_id(copy: Path) -> bytes:
    """Return the id of a store from the header of its file."""
    with copy.open("rb") as file:
        file.seek(68)
        return file.read(4)


def copy_tables(sources: Sequence[apsw.Connection], target: apsw.Connection) -> Salvaged:
    """Copy the readable rows of every table in one transaction."""
    copied: dict[str, int] = {}
    damaged: list[str] = []
    with target:
        for table in TABLES:
            reader = _best_reader(sources, table, target)
            sql = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * reader.width)})"
            copied[table] = 0
            for row in reader.rows():
                if table == "commits" and not row[0]:
                    reader.gaps += 1  # bytes that are not a row
                    continue
                target.execute(sql, row)
                if not target.changes() and table == "commits":
                    # Its key was damaged into another one's: the chain will tell where it belongs.
                    target.execute(sql, (f"{row[0]}?{copied[table]}", *row[1:]))
                reader.gaps += not target.changes()
                copied[table] += target.changes()
            if reader.gaps:
                damaged.append(table)
        target.execute("UPDATE sessions SET unindexed = 1")  # the words are derived from the log again
    return Salvaged(copied, tuple(damaged))


def _best_reader(sources: Sequence[apsw.Connection], table: str, fresh: apsw.Connection) -> TableReader:
    """Return a reader of the source in which most rows of a table can be read, or refuse to lose some."""
    if _is_ours(sources[0]):
        return TableReader(sources[0], table, fresh)
    counts = [TableReader(source, table, fresh).count() for source in sources]
    stored = _stored_rows(sources[0], table) if counts[0] is None else 0
    found = [count or 0 for count in counts]
    if stored > max(found):
        raise FewerRows(
            f"its table '{table}' is not the one of this version: {stored} rows are there, and"
            f" {max(found)} of them would be kept. Nothing was changed. Open it with the version of Interlock"
            " that wrote it, or restore a backup"
        )
    best = max(range(len(sources)), key=lambda number: (found[number], number))
    return TableReader(sources[best], table, fresh)


def _stored_rows(source: apsw.Connection, table: str) -> int:
    try:
        return int(str(source.execute(f"SELECT count(*) FROM {table} NOT INDEXED").get))
    except (*UNREADABLE, apsw.SQLError):
        return 0


def _add_hidden(copy: Path, target: apsw.Connection) -> int:
    """Add the commits that SQLite could not read to the sessions that miss them; returns how many."""
    added = 0
    with target:
        for raw in raw_commits(copy):
            target.execute(MEND_COMMIT if raw.mended else ADD_COMMIT, astuple(raw.row))
            added += target.changes()
        target.execute(FORGET_COPIES)
    return added


class TableReader:
    """Reads one table and skips its damaged pages; `gaps` counts them."""

    def __init__(self, source: apsw.Connection, table: str, fresh: apsw.Connection) -> None:
        self.gaps = 0
        self._source = source
        columns = [
            (str(name), str(kind), EMPTY[str(kind)] if not_null else None)
            for _, name, kind, not_null, *_ in fresh.execute(f"PRAGMA table_info({table})")
        ]
        self.width = len(columns)
        self._kinds = [(KINDS[kind], empty) for _, kind, empty in columns]
        # Text is read as bytes, because damaged text may not be valid.
        listed = ", ".join(
            f"CAST({name} AS BLOB)" if kind == "TEXT" else f"iif(typeof({name}) = 'text', x'', {name})"
            for name, kind, _ in columns
        )
        self._sql = f"SELECT rowid, {listed} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"

    def count(self) -> int | None:
        """Count the readable rows; None if the table is defined otherwise."""
        try:
            return sum(1 for _ in self.rows())
        except apsw.SQLError:
            return None

    def rows(self) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        """Yield the readable rows in the order of their ids; one with a value of another type is none.

        An id that does not rise is damage too: to go on from there would lead in a circle.
        """
        last: int | None = 0
        while last is not None:
            try:
                for rowid, *row in self._source.execute(self._sql, (last,)):
                    if int(str(rowid)) <= last:
                        raise apsw.CorruptError("rows are out of order")
                    last = int(str(rowid))
                    values = [
                        value.decode(errors="replace")
                        if kind is str and isinstance(value, bytes)
                        else empty
                        if value is None
                        else value
                        for value, (kind, empty) in zip(row, self._kinds, strict=True)
                    ]
                    kinds = (kind for kind, _ in self._kinds)
                    if all(
                        value is None or isinstance(value, kind)
                        for value, kind in zip(values, kinds, strict=True)
                    ):
                        yield tuple(values)
                    else:
                        self.gaps += 1
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
            first = next(iter(self._source.execute(self._sql, (after,))), None)
        except UNREADABLE:
            return False
        return first is None or int(str(first[0])) > after
