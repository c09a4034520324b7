"""The embedded store: one SQLite file, durable at every commit, shared by any number of processes.

Writers take turns on an advisory lock; readers need none and never checkpoint.
"""

from __future__ import annotations

import os
import shutil
import sys
from _thread import RLock  # threading costs start-up and adds nothing here
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from time import monotonic

import apsw
from msgspec import Struct

from interlock.store.protocol import (
    Changes,
    LoadedRows,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
    TraceRow,
    other_schema,
)
from interlock.store.sqlite.lock import PATIENCE, FileLock
from interlock.store.sqlite.schema import FILE, MIGRATIONS
from interlock.store.sqlite.statements import SqliteReader, SqliteWriter
from interlock.store.sqlite.witness import Head, Witness

CHECKPOINT_PAGES = 2000
CACHE = -500  # in kB, as SQLite writes it: many chats have a server each, and the system caches the file
PROBE_PATIENCE = 1.0
PAGE_SIZE = 2048  # a step changes a few rows in many pages
LARGE, RESERVE = 16 * 2**20, 4 * 2**20
ROOM_FACTOR = 3  # a VACUUM writes its result to a temporary file, then to the log


NOT_WRITTEN = (apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_SHMSIZE)


class SqliteStore:
    """A store in one file. One connection; threads of a process take turns on it."""

    def __init__(
        self, connection: apsw.Connection, path: Path, lock: FileLock, deadline: float = PATIENCE
    ) -> None:
        self.path = path
        self.deadline = deadline
        self.sqlite_version = apsw.sqlite_lib_version()
        self._lock = lock
        self._turn = RLock()
        self.repairing = False  # then lost events do not keep it from writing
        self._use(connection)

    def _use(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._reader = SqliteReader(connection)
        self._writer = SqliteWriter(connection)
        self._file = _identity(self.path)
        self.witness = witness_of(connection, self.path)
        self._wrote = False
        self._lost = False
        self._closed = False

    @property
    def schema_version(self) -> int:
        return version_of(self._connection)

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        with self.reading() as reader:
            return reader.load(handle, node=node, attempt=attempt)

    def append(self, *changes: Changes) -> None:
        """Store what a command changed, durably, or raise StoreConflict and store nothing."""
        with self.writing() as writer:
            for change in changes:
                writer.append(change)

    def trace(self, rows: Sequence[TraceRow]) -> None:
        """Keep traces of reading calls without waiting for the disk."""
        with self._alone():
            self._connection.pragma("synchronous", "normal")
            try:
                with self.writing() as writer:
                    writer.trace(rows)
            finally:
                self._connection.pragma("synchronous", "full")

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        """Give one consistent view; within `writing`, that of the transaction."""
        with self._alone(), _translated(self.path):
            if self._lost:
                with self._lock:
                    self._open_again()
            if self._connection.in_transaction:
                yield self._reader
                return
            with _transaction(self._connection, "BEGIN"):
                yield self._reader

    @contextmanager
    def writing(self) -> Iterator[SqliteWriter]:
        """Give one transaction; it is on disk when the block is left without exception."""
        with self._alone(), _translated(self.path):
            if not self._lost and self._connection.in_transaction:
                raise RuntimeError("a transaction does not nest in another, nor in a reading")
            with self._lock:
                self._prepare_to_write()
                self._writer.heads.clear()
                with _transaction(self._connection, "BEGIN IMMEDIATE"):
                    self._know_schema()
                    yield self._writer
                self.witness.note(self._writer.heads)

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file or its indexes; nothing when it is sound."""
        try:
            lines = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")]
            damaged = (
                [] if has_own_schema(self._connection) else ["the definitions of its tables are damaged"]
            )
        except (apsw.Error, UnicodeDecodeError) as error:
            return [str(error)]
        return [line for line in (*lines, *damaged) if line != "ok"]

    def lost_triggers(self) -> dict[str, str]:
        """Return the triggers that this version has and the file has not, or has in other words."""
        with self.reading(), closing(_fresh()) as fresh:
            stored = triggers_of(self._connection)
            return {name: sql for name, sql in triggers_of(fresh).items() if stored.get(name) != sql}

    def restore_triggers(self, lost: Mapping[str, str]) -> None:
        """Define triggers that were lost again."""
        with self.writing():
            for name, sql in lost.items():
                self._connection.execute(f"DROP TRIGGER IF EXISTS {name}; {sql}")

    def missing(self) -> list[LostEvents]:
        """Return the sessions that once had a head which is not stored any more."""
        with self.reading() as reader:
            return [lost for head in self.witness.heads().values() if (lost := _missing(reader, head))]

    def accept_heads(self) -> None:
        """Let the witness forget what is missing, after it was told."""
        with self.writing() as writer:
            rows = [row for head in self.witness.heads() if (row := writer.session(head)) is not None]
            self.witness.replace(Head(row.session_id, row.head_index, row.head_digest) for row in rows)

    def probe(self) -> None:
        """Make sure that the file is there, can be read, and can be locked for writing within a second.

        The connection is its own: a call that waits for the lock holds the other one.
        """
        if _identity(self.path) != self._file:
            raise StoreUnavailable(f"{self.path} is not the file that was opened")
        for path in (self.path, self.path.parent):  # the log is made beside the file
            # Asked of the system: to open the file and close it would end the locks of this process.
            if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise StoreUnavailable(f"{path} is read-only")
        with (
            _translated(self.path),
            closing(apsw.Connection(str(self.path), apsw.SQLITE_OPEN_READONLY)) as own,
        ):
            own.set_busy_timeout(int(PROBE_PATIENCE * 1000))
            SqliteReader(own).session_ids("", 1)
        lock = FileLock(lock_path(self.path), PROBE_PATIENCE)
        try:
            with lock:
                pass
        finally:
            lock.close()

    def make_room(self) -> None:
        """Remove the file that holds space for removals, which need some on a full disk."""
        self._reserve.unlink(missing_ok=True)

    def give_back(self) -> None:
        """Write the file anew without what was removed from it, and hold space for the next time.

        The new content needs room beside the old one for a moment. Where there is none, or little to gain,
        the file keeps its size, and new sessions use the space in it.
        """
        with self._alone(), _translated(self.path), self._lock, suppress(apsw.FullError, apsw.IOError):
            self._prepare_to_write()
            self._connection.pragma("wal_checkpoint", "TRUNCATE")
            free, pages = (int(str(self._connection.pragma(n))) for n in ("freelist_count", "page_count"))
            room = shutil.disk_usage(self.path.parent).free
            if free > pages // 4 and room > ROOM_FACTOR * (pages - free) * PAGE_SIZE:
                self._connection.execute("VACUUM")
                self._connection.pragma("wal_checkpoint", "TRUNCATE")
        hold_room(self.path, self._reserve)

    @property
    def _reserve(self) -> Path:
        return self.path.with_name(f"{self.path.name.removesuffix('.db')}.reserve")

    def close(self) -> None:
        """Close the file, once; a store that wrote folds its log into it, if nobody else is at work."""
        with self._alone():
            if self._closed:
                return
            self._closed = True
            if self._wrote:
                self._lock.patience = 0
                try:
                    with self._lock:
                        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                        self._connection.close()
                        self.witness.shorten()
                        hold_room(self.path, self._reserve)
                except StoreBusy:
                    pass  # whoever holds the lock is a writer too, and will do it
            self._connection.close()
            self.witness.close()
            self._lock.close()

    def _prepare_to_write(self) -> None:
        """Under the lock, make sure that the path still names the open file, or open the one it names."""
        if self._lost or _identity(self.path) != self._file:
            self._open_again()
        if not self._wrote:
            head = self.witness.newest()
            if not self.repairing and head is not None and _missing(self._reader, head):
                raise StoreCorrupt(
                    f"{self.path} has lost its newest events, those of session {head.session_id} among them;"
                    " `interlock doctor --repair` recovers what is left"
                )
            self._connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            self._wrote = True

    def _know_schema(self) -> None:
        """Inside the transaction, refuse to write to tables that another version has migrated meanwhile."""
        if (version := self.schema_version) != len(MIGRATIONS):
            raise other_schema(str(self.path), version, len(MIGRATIONS))

    def _open_again(self) -> None:
        """Under the lock, open the file that the path names now; until that succeeds, every call fails."""
        self._connection.close()
        self.witness.close()
        self._wrote, self._lost = False, True
        make_private_file(self.path)
        self._use(opened_database(self.path, nullcontext()))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Take this process's turn; only what is left of the deadline is waited for other processes."""
        ends = monotonic() + self.deadline
        if not self._turn.acquire(timeout=self.deadline):
            raise StoreBusy(f"another thread has used the store for {self.deadline:g} seconds")
        try:
            self._lock.ends = ends
            yield
        finally:
            self._turn.release()


class LostEvents(Struct, frozen=True):
    """A session whose newest events are not stored any more, or all of them."""

    session_id: str
    had: int
    has: int


def _missing(reader: SqliteReader, head: Head) -> LostEvents | None:
    session = reader.session(head.session_id)
    if session is None:
        removed = reader.tombstone(head.session_id) is not None
        return None if removed else LostEvents(head.session_id, head.index + 1, 0)
    if session.head_index > head.index or session.head_digest == head.digest:
        return None
    return LostEvents(head.session_id, head.index + 1, session.head_index + 1)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file a path names now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def lock_path(path: Path) -> Path:
    """Return the file that writers of this database lock."""
    return path.with_name(f"{path.name.removesuffix('.db')}.lock")


def witness_of(connection: apsw.Connection, path: Path) -> Witness:
    """Return what bears witness of the heads in this database."""
    store_id = connection.pragma("application_id")
    assert isinstance(store_id, int)
    return Witness(path.with_name(f"{path.name.removesuffix('.db')}.heads"), store_id)


def open_store(folder: Path, name: str = FILE, deadline: float = PATIENCE) -> SqliteStore:
    """Open the database file in a folder, and create or upgrade it where needed.

    A call waits for other threads and processes until its deadline, in seconds.
    """
    path = folder / name
    make_private_file(path)
    lock = FileLock(lock_path(path))
    try:
        with _translated(path):
            connection = opened_database(path, lock)
    except BaseException:
        lock.close()
        raise
    return SqliteStore(connection, path, lock, deadline)


def opened_database(path: Path, lock: AbstractContextManager[object]) -> apsw.Connection:
    """Connect to a database, and bring it to the last migration under the lock."""
    connection = connect(path)
    try:
        if version_of(connection) != len(MIGRATIONS):
            with lock:
                migrate(connection, path, MIGRATIONS)
    except BaseException:
        connection.close()
        raise
    return connection


def migrate(connection: apsw.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    """Bring a database to the last migration, with a copy of it beside it before it changes."""
    version = version_of(connection)
    if version == 0 and has_own_schema(connection):
        raise StoreCorrupt(f"the header of {path} is damaged; `interlock doctor --repair` recovers it")
    if version > len(migrations):
        raise other_schema(str(path), version, len(migrations))
    if version == 0:
        if connection.pragma("application_id") and witness_of(connection, path).newest() is not None:
            raise StoreCorrupt(f"{path} has lost its log; `interlock doctor --repair` recovers what is left")
        connection.pragma("page_size", PAGE_SIZE)
        connection.pragma("application_id", int.from_bytes(os.urandom(4), "big", signed=True) or 1)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise StoreUnavailable(_NO_WAL.format(path=path))
    elif version < len(migrations):
        _back_up(connection, path.with_name(f"{path.name}.v{version}.backup"))
    with _transaction(connection, "BEGIN IMMEDIATE"):
        for script in migrations[version:]:
            list(connection.execute(script))  # a script stops at its first row until that is fetched
        connection.pragma("user_version", len(migrations))


def hold_room(database: Path, reserve: Path) -> None:
    """Hold space beside a database of some size, with a file that can be removed when the disk is full."""
    try:
        if database.stat().st_size < LARGE or reserve.exists():
            return
        with reserve.open("xb") as file:
            file.write(bytes(RESERVE))
    except OSError:
        reserve.unlink(missing_ok=True)


def make_private_file(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened for writing: {error.strerror}") from error
    try:
        if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(int(PATIENCE * 1000))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # else new values compile most statements anew
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 0)
    connection.pragma("cache_size", CACHE)
    if sys.platform == "darwin":
        connection.pragma("fullfsync", True)
    return connection


def schema_of(connection: apsw.Connection) -> list[tuple[object, ...]]:
    """Return the definitions of all tables and indexes but those in which ANALYZE keeps its statistics."""
    return list(
        connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master"
            " WHERE type <> 'trigger' AND name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY name"
        )
    )


def triggers_of(connection: apsw.Connection) -> dict[str, str]:
    """Return the definitions of all triggers by name."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    return {str(name): str(sql) for name, sql in rows}


def has_own_schema(connection: apsw.Connection) -> bool:
    """Say whether the tables are defined exactly as the migrations define them."""
    return schema_of(connection) == _own_schema()


@cache
def _own_schema() -> list[tuple[object, ...]]:
    with closing(_fresh()) as fresh:
        return schema_of(fresh)


def _fresh() -> apsw.Connection:
    """Make an empty database with the tables of this version, in memory."""
    fresh = apsw.Connection(":memory:")
    for script in MIGRATIONS:
        list(fresh.execute(script))
    return fresh


def is_mislabelled(path: Path) -> bool:
    """Say whether a database that seems to be of a newer version has the tables of this one."""
    connection = connect(path)
    try:
        return version_of(connection) > len(MIGRATIONS) and has_own_schema(connection)
    except (apsw.Error, UnicodeDecodeError):
        return False
    finally:
        connection.close()


def version_of(connection: apsw.Connection) -> int:
    version = connection.pragma("user_version")
    assert isinstance(version, int)
    return version


def _back_up(connection: apsw.Connection, target: Path) -> None:
    target.unlink(missing_ok=True)
    make_private_file(target)
    copy = apsw.Connection(str(target))
    with copy.backup("main", connection, "main") as backup:
        backup.step()
    copy.close()


@contextmanager
def _transaction(connection: apsw.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the store's, once, here."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(f"{path} is damaged ({error}); `interlock doctor --repair` recovers it") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"{path} is in use by another program ({error})") from error
    except apsw.ConstraintError as error:
        raise StoreConflict(str(error)) from error
    except UnicodeDecodeError as error:
        raise StoreCorrupt(f"{path} holds damaged text; `interlock doctor --repair` recovers it") from error
    except apsw.SQLError as error:
        raise StoreCorrupt(f"{path} has damaged tables ({error})") from error
    except apsw.ProtocolError as error:
        raise StoreUnavailable(_NO_WAL.format(path=path)) from error
    except (apsw.FullError, apsw.IOError) as error:
        result = getattr(error, "extendedresult", None)
        if isinstance(error, apsw.IOError) and result not in NOT_WRITTEN:
            raise StoreUnavailable(f"{path} cannot be used: {error}") from error
        raise StoreFull(f"{path} cannot be written: {error}. Is the disk full?") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise StoreUnavailable(f"{path} cannot be used: {error}") from error


_NO_WAL = (
    "{path} is on a file system that cannot share memory between processes, as network file systems cannot."
    " Put the data directory on a local disk."
)
