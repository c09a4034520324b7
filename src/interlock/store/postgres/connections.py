"""Connections to one PostgreSQL database: a bounded pool, time limits, and errors in the store's words.

Waiting is bounded everywhere: while the database is away a call fails within seconds and may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, TypeAlias

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from interlock.store.protocol import (
    StoreAway,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreUnavailable,
)

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

POOL_SIZE = 8
MOST_WAITING = 64
PATIENCE = 4.0  # seconds that a call waits for a connection
AWAY_SECONDS = 1.0
CONNECT_TIMEOUT = 3
STATEMENT_TIMEOUT = 15_000  # milliseconds
LOCK_TIMEOUT = 5_000
IDLE_TIMEOUT = 60_000

# Every statement names its rows by an index, and few of them. Cached generic plans save planning each time;
# without the plans that read whole tables they are right on an empty database and on a full one.
SETTINGS = {
    "statement_timeout": str(STATEMENT_TIMEOUT),
    "lock_timeout": str(LOCK_TIMEOUT),
    "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT),
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
CONFIGURE = "SELECT " + ", ".join(
    (
        *(f"set_config('{name}', '{value}', false)" for name, value in SETTINGS.items()),
        "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
        " THEN set_config('synchronous_commit', 'on', false) END",
    )
)

CONFLICTS = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ExclusionViolation,
)
BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.IdleInTransactionSessionTimeout)
UNUSABLE = (
    errors.DiskFull,
    errors.InsufficientPrivilege,
    errors.UndefinedTable,
    errors.DataError,
    errors.ProgramLimitExceeded,
)
DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
# A pooler has put another server connection behind this one, without what was prepared on the first.
FORGOTTEN = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
SHUT_DOWN = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)
AWAY = (psycopg.OperationalError, psycopg.InterfaceError)


class AnyInteger(Dumper):
    """Sends integers without a type, so that a statement is prepared once and not for each size of number."""

    def dump(self, obj: int) -> Buffer:
        return b"%d" % obj


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(int, AnyInteger)
    return adapters


ADAPTERS = _adapters()


def name_of(url: str) -> str:
    """Name a database without its password."""
    known = conninfo_to_dict(url)
    host, port = known.get("host") or "localhost", known.get("port") or 5432
    database = known.get("dbname") or known.get("user") or ""
    return f"PostgreSQL at {host}:{port}/{database}"


def connect(url: str) -> Connection:
    """Open one connection outside the pool, with the reason at once where that fails."""
    with translated(name_of(url)):
        connection = psycopg.connect(
            _bounded(url), autocommit=True, context=ADAPTERS, cursor_factory=psycopg.RawCursor
        )
    configure(connection)
    return connection


def configure(connection: Connection) -> None:
    """Set the limits and the kind of plans."""
    connection.prepare_threshold = 0  # a statement is prepared when it is first sent
    connection.execute(CONFIGURE, prepare=False)


def _bounded(url: str) -> str:
    """Add a time limit for connecting and the detection of dead peers, where the URL says nothing else.

    Texts are always sent as UTF-8, whatever the URL and the environment say.
    """
    defaults: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": "interlock",
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }
    known = conninfo_to_dict(url)
    return make_conninfo(**{**defaults, **known, "client_encoding": "UTF8"})


class Connections:
    """A pool that opens connections as they are needed."""

    def __init__(self, url: str, size: int = POOL_SIZE) -> None:
        self.name = name_of(url)
        self._away_until = 0.0
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # callers get the error instead
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            _bounded(url),
            connection_class=psycopg.Connection[tuple[Any, ...]],
            kwargs={"autocommit": True, "context": ADAPTERS, "cursor_factory": psycopg.RawCursor},
            configure=configure,
            min_size=0,
            max_size=size,
            timeout=PATIENCE,
            max_waiting=MOST_WAITING,
            max_idle=300,
            reconnect_timeout=PATIENCE,
            num_workers=1,
            open=True,
        )

    def take(self) -> Connection:
        """Take a connection; right after a vain wait nobody waits, so that calls do not pile up."""
        if monotonic() < self._away_until:
            raise StoreAway(f"{self.name} cannot be reached. Nothing was changed.")
        try:
            return self._pool.getconn()
        except PoolTimeout as error:
            self._away_until = monotonic() + AWAY_SECONDS
            raise StoreAway(
                f"{self.name} gave no connection within {PATIENCE:g} seconds. Nothing was changed."
            ) from error
        except TooManyRequests as error:
            raise StoreBusy(f"{MOST_WAITING} calls wait for {self.name} already") from error
        except PoolClosed as error:
            raise StoreUnavailable("the store is closed") from error

    def give_back(self, connection: Connection, error: BaseException | None = None) -> None:
        """Return a connection. After one is lost, the others of the pool are not trusted either."""
        lost = is_lost(connection, error)
        if lost:
            connection.close()
        self._pool.putconn(connection)
        if lost:
            self._pool.drain()

    def close(self) -> None:
        with suppress(PoolTimeout):
            self._pool.close()


def is_lost(connection: Connection, error: BaseException | None) -> bool:
    """Say whether an error means that the connection is gone."""
    return connection.closed or isinstance(error, SHUT_DOWN + FORGOTTEN)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn PostgreSQL's errors into the store's, once, here."""
    try:
        yield
    except CONFLICTS as error:
        raise StoreConflict(_text(error)) from error
    except BUSY as error:
        raise StoreBusy(f"{name}: {_text(error)}") from error
    except DAMAGED as error:
        raise StoreCorrupt(f"{name} is damaged ({_text(error)}); restore it from a backup") from error
    except UNUSABLE as error:
        raise StoreUnavailable(f"{name} cannot be used: {_text(error)}") from error
    except errors.InvalidAuthorizationSpecification as error:
        raise StoreUnavailable(f"{name} refused the login: {_text(error)}") from error
    except errors.ReadOnlySqlTransaction as error:
        raise StoreAway(f"{name} takes no writes now: {_text(error)}") from error
    except FORGOTTEN as error:
        raise StoreAway(
            f"{name} is behind a pooler that changes connections between transactions ({_text(error)});"
            " it has to pool sessions, or to keep track of prepared statements"
        ) from error
    except AWAY as error:
        raise StoreAway(f"{name} cannot be reached: {_text(error)}") from error


def _text(error: Exception) -> str:
    """The first line of a message: details may hold stored values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
