"""Whatever the database or the network does, every call on the store ends within its deadline."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple
from uuid import uuid4

import psycopg
import pytest

from interlock.store.lazy import LazyStore
from interlock.store.postgres.database import PostgresStore, open_store
from interlock.store.protocol import (
    SettingRow,
    Store,
    StoreAway,
    StoreBusy,
    StoreConflict,
    TraceRow,
)
from support.fault_proxy import FaultProxy, fault_proxy
from support.postgres_server import PostgresServer, require_postgres, shared_server
from support.store_rows import session_of, start, step

DEADLINE = 1.0
MORE = 1.5  # connecting may take two seconds, and the machine may be busy

Call = Callable[[Store], object]


class Remote(NamedTuple):
    """A store whose server is on the other side of a network that fails on demand."""

    store: PostgresStore
    network: FaultProxy
    server: PostgresServer
    url: str


@pytest.fixture
def remote() -> Iterator[Remote]:
    require_postgres()
    server, schema = shared_server(), f"deadline_{uuid4().hex[:8]}"
    direct = server.in_schema(schema)
    with fault_proxy("127.0.0.1", server.port) as network:
        url = direct.replace(f":{server.port}/", f":{network.port}/")
        with closing(open_store(url, deadline=DEADLINE)) as store:
            store.append(start())
            yield Remote(store, network, server, url)
            network.mend()
    server.execute(f"DROP SCHEMA {schema} CASCADE")


def read(store: Store) -> object:
    with store.reading() as reader:
        return reader.session("sess_a")


def write(store: Store) -> None:
    with store.writing() as writer:
        writer.set_setting(SettingRow("me", "mode", "a"))


CALLS: dict[str, Call] = {
    "load": lambda store: store.load("sess_a"),
    "append": lambda store: store.append(start(f"sess_{uuid4().hex[:6]}")),
    "append-two": lambda store: store.append(start(f"s1_{uuid4().hex[:6]}"), start(f"s2_{uuid4().hex[:6]}")),
    "trace": lambda store: store.trace([TraceRow("sess_a", 0, 1, b"")]),
    "read": read,
    "write": write,
    "probe": lambda store: store.probe(),
}


def seconds_of(call: Call, store: Store) -> float:
    """Make a call that fails as one that may be repeated; return how long that took."""
    began = time.monotonic()
    with pytest.raises((StoreAway, StoreBusy, StoreConflict)):
        call(store)
    return time.monotonic() - began


def until_it_works(call: Call, store: Store) -> None:
    """Repeat a call, which is refused at once for a while after the database was found away."""
    for _ in range(200):
        with suppress(StoreAway, StoreBusy, StoreConflict):
            call(store)
            return
        time.sleep(0.05)
    raise AssertionError("the store did not come back")


@contextmanager
def frozen_backends(server: PostgresServer) -> Iterator[None]:
    """Stop every process that serves a connection of a store, as a hung disk would."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'interlock'"
        ).fetchall()
    pids = [int(row[0]) for row in rows]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_a_network_that_stalls_ends_in_time(remote: Remote, name: str) -> None:
    CALLS[name](remote.store)
    remote.network.stall()
    assert seconds_of(CALLS[name], remote.store) < DEADLINE + MORE
    remote.network.mend()
    until_it_works(CALLS[name], remote.store)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_frozen_backends_ends_in_time(remote: Remote, name: str) -> None:
    CALLS[name](remote.store)
    with frozen_backends(remote.server):
        if name != "probe":  # its connection is its own, and the server takes new ones
            assert seconds_of(CALLS[name], remote.store) < DEADLINE + MORE
    until_it_works(CALLS[name], remote.store)


@pytest.mark.parametrize("name", ["append-two", "read", "write"])
def test_a_slow_network_does_not_add_the_deadlines_of_statements_up(remote: Remote, name: str) -> None:
    CALLS[name](remote.store)
    remote.network.slow(DEADLINE * 0.3)  # each statement takes 0.6 of the deadline, and there are several
    assert seconds_of(CALLS[name], remote.store) < DEADLINE + MORE
    remote.network.mend()
    until_it_works(CALLS[name], remote.store)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_a_half_closed_or_cut_network_ends_in_time(remote: Remote, name: str) -> None:
    CALLS[name](remote.store)
    remote.network.half_close()
    began = time.monotonic()
    with suppress(StoreAway, StoreBusy, StoreConflict):  # a read finds a new connection in time
        CALLS[name](remote.store)
    assert time.monotonic() - began < DEADLINE + MORE
    until_it_works(CALLS[name], remote.store)
    remote.network.cut()
    assert seconds_of(CALLS[name], remote.store) < DEADLINE + MORE
    remote.network.mend()
    until_it_works(CALLS[name], remote.store)


def test_many_callers_of_a_hung_database_do_not_wait_for_each_other(remote: Remote) -> None:
    remote.network.stall()
    began = time.monotonic()
    with ThreadPoolExecutor(40) as pool:
        waits = [pool.submit(remote.store.load, "sess_a") for _ in range(200)]
    assert all(isinstance(wait.exception(), StoreAway | StoreBusy) for wait in waits)
    assert time.monotonic() - began < DEADLINE + MORE


def test_one_call_that_takes_too_long_does_not_make_the_database_away_for_others(remote: Remote) -> None:
    def dawdle(store: Store) -> None:
        with store.reading() as reader:
            time.sleep(DEADLINE)
            reader.session("sess_a")

    seconds_of(dawdle, remote.store)
    assert remote.store.load("sess_a") is not None


def test_an_append_that_was_stored_after_its_caller_gave_up_is_found_by_its_repetition(
    remote: Remote,
) -> None:
    session = session_of(remote.store)
    remote.store.append(step(session, text="first"))
    session = session_of(remote.store)
    with frozen_backends(remote.server), pytest.raises(StoreAway, match="Repeat it"):
        remote.store.append(step(session, text="late"))
    until_it_works(CALLS["load"], remote.store)
    with suppress(StoreConflict):  # the backend went on and stored it, or noticed that nobody listens
        remote.store.append(step(session, text="late"))
    with remote.store.reading() as reader:
        assert [row.body.decode() for row in reader.commits("sess_a")] == ["[]", "first", "late"]


def test_threads_that_open_a_hung_database_wait_together(remote: Remote) -> None:
    remote.network.stall()
    lazy = LazyStore(lambda: open_store(remote.url, deadline=DEADLINE))
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(lazy.open) for _ in range(8)]
    assert all(isinstance(wait.exception(), StoreAway) for wait in waits)
    assert time.monotonic() - began < DEADLINE + MORE
    remote.network.mend()
    lazy.open()
    lazy.close()


def test_a_read_only_database_is_not_ready(remote: Remote) -> None:
    store = open_store(f"{remote.url}%20-cdefault_transaction_read_only%3Don")
    with closing(store), pytest.raises(StoreAway, match="takes no writes"):
        store.probe()
