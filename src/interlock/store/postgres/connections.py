"""Connections to one PostgreSQL database: a bounded pool, deadlines, and errors in the store's words.

Waiting is bounded here, by the client: a server that hangs, or that nothing arrives from, keeps no promise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from interlock.store.protocol import (
    StoreAway,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
)

T = TypeVar("T")

POOL_SIZE = 8
MOST_WAITING = 64
PATIENCE = 4.0  # seconds that a call waits for a connection
AWAY_SECONDS = 1.0
CONNECT_TIMEOUT = 3
SHORTEST_CONNECT = 2  # libpq waits no shorter
STATEMENT_SECONDS = 15.0  # for one statement of a command that a person waits for
IDLE_TIMEOUT = 60_000  # milliseconds
WAIT_INTERVAL = 0.1

# Every statement names its rows by an index, and few of them. Cached generic plans save planning each time;
# without the plans that read whole tables they are right on an empty database and on a full one.
SETTINGS = {
    "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT),
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
DURABLE = (
    "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
    " THEN set_config('synchronous_commit', 'on', false) END"
)

CONFLICTS = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ExclusionViolation,
)
BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.IdleInTransactionSessionTimeout)
UNUSABLE = (
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


def database_name(url: str) -> str:
    """Name a database without its password."""
    known = conninfo_to_dict(url)
    host, port = known.get("host") or "localhost", known.get("port") or 5432
    database = known.get("dbname") or known.get("user") or ""
    return f"PostgreSQL at {host}:{port}/{database}"


class NoAnswer(psycopg.OperationalError):
    """The deadline has passed. What was sent may still be done."""

    def __init__(self, waited: float) -> None:
        super().__init__(f"no answer within {waited:.1f} seconds")
        self.waited = waited


class PostgresConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that waits for an answer until the deadline of the call that has taken it.

    The server's own time limits do not help where the server hangs. A connection that gave no answer is
    closed: a late one would be taken for the answer to the next statement.
    """

    statement_seconds = STATEMENT_SECONDS
    ends = inf
    heard = 0.0

    def wait(self, gen: PQGen[T], interval: float = WAIT_INTERVAL, timeout: float | None = None) -> T:
        sent = monotonic()
        left = min(self.ends - sent, self.statement_seconds)
        try:
            if left <= 0:
                raise NoAnswer(0.0)
            answer = super().wait(gen, interval, left)
        except psycopg.OperationalError as error:
            if monotonic() - sent < left:
                raise
            self.close()
            raise NoAnswer(max(0.0, left)) from error
        self.heard = monotonic()
        return answer


def connect(url: str, deadline: float = STATEMENT_SECONDS) -> PostgresConnection:
    """Open one connection outside the pool, with the reason at once where that fails."""
    ends = monotonic() + deadline
    with translated(database_name(url)):
        connection = PostgresConnection.connect(
            _bounded(url, deadline), autocommit=True, context=ADAPTERS, cursor_factory=psycopg.RawCursor
        )
        connection.ends = ends
        configure(connection)
    return connection


def configure(connection: PostgresConnection, seconds: float = STATEMENT_SECONDS) -> None:
    """Set the limits and the kind of plans.

    The server gives up a little earlier than the client: a statement that it has ended is known to have done
    nothing.
    """
    connection.statement_seconds = seconds
    connection.prepare_threshold = 0  # a statement is prepared when it is first sent
    limits = {
        "statement_timeout": f"{seconds * 900:.0f}",
        "lock_timeout": f"{min(5.0, seconds * 0.75) * 1000:.0f}",
    }
    settings = (f"set_config('{name}', '{value}', false)" for name, value in (SETTINGS | limits).items())
    connection.execute(f"SELECT {', '.join(settings)}, {DURABLE}".encode(), prepare=False)


def _bounded(url: str, deadline: float) -> str:
    """Add a time limit for connecting and the detection of dead peers, where the URL says nothing else.

    Texts are always sent as UTF-8, whatever the URL and the environment say.
    """
    defaults: dict[str, Any] = {
        "connect_timeout": max(SHORTEST_CONNECT, min(CONNECT_TIMEOUT, int(deadline))),
        "application_name": "interlock",
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
    }
    known = conninfo_to_dict(url)
    return make_conninfo(**{**defaults, **known, "client_encoding": "UTF8"})


class Connections:
    """A pool that opens connections as they are needed.

    With a `deadline` a whole call on the store has that many seconds; without one each of its statements has
    STATEMENT_SECONDS, for commands that read everything.
    """

    def __init__(self, url: str, size: int = POOL_SIZE, deadline: float | None = None) -> None:
        self.name = database_name(url)
        self.deadline = inf if deadline is None else deadline
        self._patience = PATIENCE if deadline is None else deadline
        self._away_until = 0.0
        self._heard = 0.0
        seconds = STATEMENT_SECONDS if deadline is None else deadline
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # callers get the error instead
        self._pool: ConnectionPool[PostgresConnection] = ConnectionPool(
            _bounded(url, self._patience),
            connection_class=PostgresConnection,
            kwargs={"autocommit": True, "context": ADAPTERS, "cursor_factory": psycopg.RawCursor},
            configure=lambda connection: configure(connection, seconds),
            min_size=0,
            max_size=size,
            max_waiting=MOST_WAITING,
            max_idle=300,
            reconnect_timeout=self._patience,
            num_workers=1,
            open=True,
        )

    def ends(self) -> float:
        """Return when a call that begins now is over."""
        return monotonic() + self.deadline

    def take(self, ends: float) -> PostgresConnection:
        """Take a connection; for a second after nobody got an answer nobody waits, so that no queue grows."""
        now = monotonic()
        if now < self._away_until:
            raise StoreAway(f"{self.name} cannot be reached. Nothing was changed.")
        try:
            connection = self._pool.getconn(max(0.0, min(self._patience, ends - now)))
        except PoolTimeout as error:
            self._away_until = monotonic() + AWAY_SECONDS
            raise StoreAway(
                f"{self.name} gave no connection within {self._patience:g} seconds. Nothing was changed."
            ) from error
        except TooManyRequests as error:
            raise StoreBusy(f"{MOST_WAITING} calls wait for {self.name} already") from error
        except PoolClosed as error:
            raise StoreUnavailable("the store is closed") from error
        connection.ends = ends
        return connection

    def give_back(self, connection: PostgresConnection, error: BaseException | None = None) -> None:
        """Return a connection. After one is lost, the others of the pool are not trusted either."""
        self._heard = max(self._heard, connection.heard)
        if isinstance(error, NoAnswer) and self._hangs(error.waited):
            self._away_until = monotonic() + AWAY_SECONDS
        lost = is_lost(connection, error)
        if lost:
            connection.close()
        self._pool.putconn(connection)
        if lost:
            self._pool.drain()

    def _hangs(self, waited: float) -> bool:
        """Tell a database that hangs, which has answered nobody, from a call that asked for too much."""
        return min(waited, monotonic() - self._heard) > self.deadline / 2

    def close(self) -> None:
        with suppress(PoolTimeout):
            self._pool.close()


def is_lost(connection: PostgresConnection, error: BaseException | None) -> bool:
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
    except errors.DiskFull as error:
        raise StoreFull(f"{name} cannot be written: {_text(error)}") from error
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
