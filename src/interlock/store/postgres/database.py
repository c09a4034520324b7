"""The shared store: one PostgreSQL database, durable at every commit, used by any number of processes.

A command is one statement that compares the head, so no lock is held while a command is decided.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import random
from threading import Lock, local
from typing import Any, TypeVar

import psycopg
from msgspec import Struct
from msgspec.structs import astuple, replace

from interlock.store.postgres.appending import append_statement
from interlock.store.postgres.columns import slots
from interlock.store.postgres.connections import (
    POOL_SIZE,
    Connections,
    NoAnswer,
    PostgresConnection,
    connect,
    database_name,
    is_lost,
    translated,
)
from interlock.store.postgres.loading import LOAD_BY_BOTH, LOAD_BY_HANDLE, LOAD_BY_ID, loaded_rows
from interlock.store.postgres.queries import PostgresReader, PostgresWriter
from interlock.store.postgres.tables import IS_KNOWN, MIGRATIONS
from interlock.store.protocol import (
    Changes,
    LoadedRows,
    StoreAway,
    StoreConflict,
    StoreUnavailable,
    TraceRow,
    other_schema,
)

T = TypeVar("T")

OLDEST_SERVER = 150_000
MIGRATION_LOCK = 0x1E7E210C
KNOWN_HANDLES = 10_000
LONGEST_PAUSE = 0.05
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
ADD_TRACE = (  # the setting holds for this one statement, which is its own transaction
    "WITH later AS (SELECT set_config('synchronous_commit', 'off', true))"
    f" INSERT INTO traces SELECT {slots('traces')} FROM later WHERE {IS_KNOWN}"
)
PROBE_SECONDS = 2.0
PROBE = (
    "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool,"
    " (SELECT max(version) FROM interlock_schema)"
)
IS_STORED = "SELECT 1 FROM commits WHERE session_id = $1 AND last = $2::int8 AND digest = $3"


class Current(local):
    """The transaction that this thread is in."""

    connection: PostgresConnection | None = None
    writer: PostgresWriter | None = None


class PostgresStore:
    """A store in one database. Threads of a process share a bounded pool of connections."""

    def __init__(self, url: str, size: int = POOL_SIZE, deadline: float | None = None) -> None:
        self.name = database_name(url)
        self._url = url
        self._connections = Connections(url, size, deadline)
        self._current = Current()
        self._probe_turn = Lock()
        self._probing: PostgresConnection | None = None
        self._sessions: dict[bytes, str] = {}
        self._losses = 0

    def load(
        self, handle: bytes | str, *, node: int | None = None, attempt: int | None = None
    ) -> LoadedRows | None:
        """Read what a command needs, in one round trip and without a lock."""
        sql, values = LOAD_BY_ID, [handle, node, attempt]
        if isinstance(handle, bytes):
            sql = LOAD_BY_HANDLE
            if (session_id := self._sessions.get(handle)) is not None:
                sql, values = LOAD_BY_BOTH, [session_id, node, attempt, handle]

        def read(connection: PostgresConnection) -> LoadedRows | None:
            return loaded_rows(connection.execute(sql, values, binary=True).fetchall(), attempt)

        with translated(self.name):
            loaded = self._read_again_if_lost(read, self._connections.ends())
        if isinstance(handle, bytes) and loaded is None:
            self._sessions.pop(handle, None)
        elif isinstance(handle, bytes) and loaded is not None:
            if len(self._sessions) >= KNOWN_HANDLES:
                self._sessions.clear()
            self._sessions[handle] = loaded.session.session_id
        return loaded

    def _read_again_if_lost(self, read: Callable[[PostgresConnection], T], ends: float) -> T:
        """Run a read; once more on a new connection if the first one turns out to be lost."""
        if self._current.connection is not None:
            return read(self._current.connection)
        try:
            with self._connection(ends) as connection:
                return read(connection)
        except psycopg.Error as error:
            if not is_lost(connection, error):
                raise
        with self._connection(ends) as connection:
            return read(connection)

    def append(self, *changes: Changes) -> None:
        """Store what a command changed, durably, or raise StoreConflict and store nothing."""
        if self._current.connection is not None:
            raise RuntimeError("a transaction does not nest in another, nor in a reading")
        statements = [
            append_statement(change)
            for change in sorted(changes, key=lambda change: change.session.session_id)
        ]
        ends = self._connections.ends()
        try:
            with translated(self.name):
                try:
                    with self._connection(ends) as connection:
                        self._send(connection, statements)
                except psycopg.Error as error:
                    if not is_lost(connection, error):
                        raise
                    self._find_again(changes, error, ends)
            self._losses = 0
        except StoreConflict:
            self._let_others_finish()
            raise

    def _send(self, connection: PostgresConnection, statements: Sequence[tuple[str, list[Any]]]) -> None:
        if len(statements) == 1:
            _compare_and_set(connection, *statements[0], self.name)
            return
        with _transaction(connection, WRITE):
            for sql, values in statements:
                _compare_and_set(connection, sql, values, self.name)

    def _find_again(self, changes: Sequence[Changes], error: psycopg.Error, ends: float) -> None:
        """Look up, on a new connection, whether a command was stored whose answer was lost."""
        commit = changes[0].commit
        key = (commit.session_id, commit.last, commit.digest)
        try:
            stored = self._read_again_if_lost(lambda new: new.execute(IS_STORED, key).fetchone(), ends)
        except (psycopg.OperationalError, StoreAway) as away:
            raise StoreAway(
                f"The connection to {self.name} was lost while the call was stored."
                " Repeat it: if it was stored, its recorded response is returned."
            ) from away
        if stored is None:
            raise StoreConflict("the connection was lost before the command was stored") from error

    def _let_others_finish(self) -> None:
        """Pause a random time that grows with the races lost in a row, so that not all try again at once."""
        self._losses = min(self._losses + 1, 8)
        if self._losses > 1:
            time.sleep(random() * min(LONGEST_PAUSE, 0.001 * 2**self._losses))

    def trace(self, rows: Sequence[TraceRow]) -> None:
        """Keep traces of reading calls without waiting for the disk."""
        if not rows:
            return
        ends = self._connections.ends()
        with translated(self.name), self._connection(ends) as connection, connection.pipeline():
            for row in rows:
                connection.execute(ADD_TRACE, astuple(row))

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        """Give one consistent view; within `writing`, that of the transaction."""
        if self._current.connection is not None:
            yield self._current.writer or PostgresReader(self._current.connection)
            return
        with self._begun(READ) as connection:
            yield PostgresReader(connection)

    @contextmanager
    def writing(self) -> Iterator[PostgresWriter]:
        """Give one transaction; it is stored when the block is left without exception."""
        if self._current.connection is not None:
            raise RuntimeError("a transaction does not nest in another, nor in a reading")
        with self._begun(WRITE) as connection:
            _know_schema(connection, self.name)
            writer = self._current.writer = PostgresWriter(connection)
            yield writer
            writer.clear_unindexed()

    @contextmanager
    def _begun(self, begin: str) -> Iterator[PostgresConnection]:
        """Give a connection with an open transaction."""
        with translated(self.name):
            connection = self._begin(begin)
            failure: BaseException | None = None
            try:
                self._current.connection = connection
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                failure = error
                _roll_back(connection)
                raise
            finally:
                self._current.connection = self._current.writer = None
                self._connections.give_back(connection, failure)

    def _begin(self, begin: str) -> PostgresConnection:
        """Open a transaction; a connection that turns out to be lost is replaced once."""
        ends = self._connections.ends()
        for tries_left in (1, 0):
            connection = self._connections.take(ends)
            try:
                connection.execute(begin)
                return connection
            except BaseException as error:
                self._connections.give_back(connection, error)
                if not tries_left or not is_lost(connection, error):
                    raise
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _connection(self, ends: float) -> Iterator[PostgresConnection]:
        connection = self._connections.take(ends)
        try:
            yield connection
        except BaseException as error:
            self._connections.give_back(connection, error)
            raise
        self._connections.give_back(connection)

    def probe(self) -> None:
        """Make sure that the server answers, takes writes, and has the tables of this version.

        The connection is its own: calls that hold all of the pool's do not make the database look away.
        """
        with self._probe_turn:
            row = self._probed()
        if row is None or row[0] or row[1]:
            raise StoreAway(
                f"{self.name} takes no writes now: it is {'a standby' if row and row[0] else 'read-only'}"
            )
        if row[2] != len(MIGRATIONS):
            raise other_schema(self.name, row[2] or 0, len(MIGRATIONS))

    def _probed(self) -> tuple[Any, ...] | None:
        """Ask on the connection that is kept; on a new one if that was lost since the last time."""
        kept, self._probing = self._probing, None
        with translated(self.name):
            if kept is not None:
                try:
                    return self._asked(kept)
                except NoAnswer:
                    raise
                except psycopg.OperationalError:
                    pass
            return self._asked(connect(self._url, PROBE_SECONDS))

    def _asked(self, connection: PostgresConnection) -> tuple[Any, ...] | None:
        connection.ends = time.monotonic() + min(self._connections.deadline, PROBE_SECONDS)
        try:
            row = connection.execute(PROBE).fetchone()
        except BaseException:
            connection.close()
            raise
        self._probing = connection
        return row

    def make_room(self) -> None:
        """Do nothing: the disk is its server's business."""

    def give_back(self) -> None:
        """Do nothing: PostgreSQL's own vacuum uses the space of removed rows again."""

    def close(self) -> None:
        self._connections.close()
        if self._probing is not None:
            self._probing.close()


class Status(Struct, frozen=True):
    """A database as it is: nothing is created or upgraded to look at it."""

    name: str
    server: str
    schema_version: int
    sessions: int = 0
    unindexed: int = 0
    unhealthy: int = 0
    size: int = 0


STATUS = (
    "SELECT count(*), count(*) FILTER (WHERE unindexed), count(*) FILTER (WHERE health <> 'healthy'),"
    " pg_database_size(current_database()) FROM sessions"
)


def database_status(url: str) -> Status:
    """Say which server and schema a database has and what is stored in it."""
    connection = connect(url)
    try:
        with translated(database_name(url)):
            version = version_of(connection)
            server = connection.execute("SELECT current_setting('server_version')").fetchone()
            status = Status(database_name(url), str(server[0]) if server else "", version)
            counts = connection.execute(STATUS).fetchone() if version else None
    finally:
        connection.close()
    if counts is None:
        return status
    sessions, unindexed, unhealthy, size = counts
    return replace(status, sessions=sessions, unindexed=unindexed, unhealthy=unhealthy, size=size)


def _compare_and_set(connection: PostgresConnection, sql: str, values: Sequence[Any], name: str) -> None:
    if connection.execute(sql, values).fetchone() is None:
        _know_schema(connection, name)
        raise StoreConflict(f"session {values[0]} has moved since it was read")


def _know_schema(connection: PostgresConnection, name: str) -> None:
    """Refuse to write to tables that another version has migrated meanwhile."""
    if (version := version_of(connection)) != len(MIGRATIONS):
        raise other_schema(name, version, len(MIGRATIONS))


@contextmanager
def _transaction(connection: PostgresConnection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: PostgresConnection) -> None:
    if not connection.closed:
        with suppress(psycopg.OperationalError):
            connection.rollback()


def open_store(url: str, size: int = POOL_SIZE, deadline: float | None = None) -> PostgresStore:
    """Connect to a database, and create or upgrade its tables where needed.

    With a `deadline` every call on the store ends within that many seconds.
    """
    name = database_name(url)
    connection = connect(url) if deadline is None else connect(url, deadline)
    try:
        with translated(name):
            if connection.info.server_version < OLDEST_SERVER:
                raise StoreUnavailable(f"{name} is older than PostgreSQL 15, which Interlock needs")
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise StoreUnavailable(
                    f"{name} has the encoding {encoding}: create the database with ENCODING 'UTF8'"
                )
            if connection.execute("SELECT current_schema()").fetchone() == (None,):
                raise StoreUnavailable(f"{name} has none of the schemas that its search_path names")
            if version_of(connection) != len(MIGRATIONS):
                migrate(connection, MIGRATIONS, name)
    finally:
        connection.close()
    return PostgresStore(url, size, deadline)


def version_of(connection: PostgresConnection) -> int:
    """Return the number of migrations that a database has; 0 if it has no tables yet."""
    known = connection.execute("SELECT to_regclass('interlock_schema') IS NOT NULL").fetchone()
    if known != (True,):
        return 0
    row = connection.execute("SELECT max(version) FROM interlock_schema").fetchone()
    return int(row[0]) if row and row[0] is not None else 0


def migrate(connection: PostgresConnection, migrations: Sequence[str], name: str) -> None:
    """Bring a database to the last migration; processes that start at once take turns."""
    connection.ends, connection.statement_seconds = math.inf, math.inf  # cut short it would never be done
    with _transaction(connection, WRITE):
        connection.execute(
            "SELECT set_config('lock_timeout', '60s', true), set_config('statement_timeout', '0', true)"
        )
        connection.execute(
            "SELECT pg_advisory_xact_lock($1::int4, hashtext(current_schema()))", (MIGRATION_LOCK,)
        )
        version = version_of(connection)
        if version > len(migrations):
            raise other_schema(name, version, len(migrations))
        for number, script in enumerate(migrations[version:], version + 1):
            if number == 1:
                connection.execute("CREATE TABLE interlock_schema (version int8 PRIMARY KEY)", prepare=False)
            connection.execute(script, prepare=False)
            connection.execute("INSERT INTO interlock_schema VALUES ($1::int8)", (number,))
