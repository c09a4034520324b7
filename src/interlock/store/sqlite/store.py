"""The embedded store: one SQLite file, durable at every commit, shared by any number of processes.

Writers take turns on an advisory lock; readers need none and never checkpoint.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock  # threading costs start-up and adds nothing here
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from interlock.store.protocol import (
    Changes,
    LoadedRows,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
    TraceRow,
)
from interlock.store.sqlite.lock import PATIENCE, FileLock
from interlock.store.sqlite.schema import FILE, MIGRATIONS
from interlock.store.sqlite.statements import SqliteReader, SqliteWriter

CHECKPOINT_PAGES = 2000


class SqliteStore:
    """A store in one file. One connection; threads of a process take turns on it."""

    def __init__(self, connection: apsw.Connection, path: Path, lock: FileLock) -> None:
        self.path = path
        self.sqlite_version = apsw.sqlite_lib_version()
        self._lock = lock
        self._turn = RLock()
        self._use(connection)

    def _use(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._reader = SqliteReader(connection)
        self._writer = SqliteWriter(connection)
        self._file = _identity(self.path)
        self._wrote = False
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
            if self._connection.in_transaction:
                yield self._reader
                return
            with _transaction(self._connection, "BEGIN"):
                yield self._reader

    @contextmanager
    def writing(self) -> Iterator[SqliteWriter]:
        """Give one transaction; it is on disk when the block is left without exception."""
        with self._alone(), _translated(self.path):
            if self._connection.in_transaction:
                raise RuntimeError("a transaction does not nest in another, nor in a reading")
            with self._lock:
                self._prepare_to_write()
                with _transaction(self._connection, "BEGIN IMMEDIATE"):
                    yield self._writer

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file; nothing when it is sound."""
        try:
            lines = [str(line) for (line,) in self._connection.execute("PRAGMA quick_check")]
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return [str(error)]
        return [line for line in lines if line != "ok"]

    def close(self) -> None:
        """Close the file, once; a store that wrote folds its log into it, if nobody else is at work."""
        with self._alone():
            if self._closed:
                return
            self._closed = True
            if self._wrote:
                self._close_as_writer()
            self._connection.close()
            self._lock.close()

    def _close_as_writer(self) -> None:
        self._lock.patience = 0
        try:
            with self._lock:
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                self._connection.close()
        except StoreBusy:
            pass  # whoever holds the lock is a writer too, and will do it

    def _prepare_to_write(self) -> None:
        """Under the lock, make sure that the path still names the open file, or open the one it names."""
        if _identity(self.path) != self._file:
            self._connection.close()
            make_private(self.path)
            connection = connect(self.path)
            if version_of(connection) != len(MIGRATIONS):
                migrate(connection, self.path, MIGRATIONS)
            self._use(connection)
        if not self._wrote:
            self._connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            self._wrote = True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=PATIENCE):
            raise StoreBusy(f"another thread has used the store for {PATIENCE:g} seconds")
        try:
            yield
        finally:
            self._turn.release()


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


def open_store(folder: Path, name: str = FILE) -> SqliteStore:
    """Open the database file in a folder, and create or upgrade it where needed."""
    path = folder / name
    make_private(path)
    lock = FileLock(lock_path(path))
    try:
        with _translated(path):
            connection = connect(path)
            if version_of(connection) != len(MIGRATIONS):
                _upgrade(connection, path, lock)
    except BaseException:
        lock.close()
        raise
    return SqliteStore(connection, path, lock)


def migrate(connection: apsw.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    """Bring a database to the last migration, with a copy of it beside it before it changes."""
    version = version_of(connection)
    if version > len(migrations):
        raise StoreTooNew(
            f"{path} has schema {version}, and this Interlock knows {len(migrations)}: update Interlock"
        )
    if version == 0:
        _use_wal(connection, path)
    elif version < len(migrations):
        _back_up(connection, path.with_name(f"{path.name}.v{version}.backup"))
    with _transaction(connection, "BEGIN IMMEDIATE"):
        for script in migrations[version:]:
            list(connection.execute(script))  # a script stops at its first row until that is fetched
        connection.pragma("user_version", len(migrations))


def _upgrade(connection: apsw.Connection, path: Path, lock: FileLock) -> None:
    with lock:
        migrate(connection, path, MIGRATIONS)


def make_private(path: Path) -> None:
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
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 0)
    if sys.platform == "darwin":
        connection.pragma("fullfsync", True)
    return connection


def version_of(connection: apsw.Connection) -> int:
    version = connection.pragma("user_version")
    assert isinstance(version, int)
    return version


def _use_wal(connection: apsw.Connection, path: Path) -> None:
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreUnavailable(_NO_WAL.format(path=path))


def _back_up(connection: apsw.Connection, target: Path) -> None:
    target.unlink(missing_ok=True)
    make_private(target)
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
    except apsw.ProtocolError as error:
        raise StoreUnavailable(_NO_WAL.format(path=path)) from error
    except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise StoreUnavailable(f"{path} cannot be used: {error}") from error


_NO_WAL = (
    "{path} is on a file system that cannot share memory between processes, as network file systems cannot."
    " Put the data directory on a local disk."
)
