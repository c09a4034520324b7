"""The shared store as a server: lost connections, lost answers, migrations, plans, words, copies."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import apsw
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.cli.compose import store_of
from interlock.cli.config import BadConfig, Config, without_password
from interlock.ledger.ledger import Ledger
from interlock.ledger.settings import Settings
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.ledger.transfer.store_copy import copy_store
from interlock.store.postgres import connections
from interlock.store.postgres.appending import append_statement
from interlock.store.postgres.connections import connect
from interlock.store.postgres.database import PostgresStore, database_status, migrate, open_store, version_of
from interlock.store.postgres.loading import LOAD_BY_ID
from interlock.store.postgres.queries import PostgresReader
from interlock.store.postgres.tables import MIGRATIONS
from interlock.store.protocol import (
    HandleRow,
    SearchRow,
    SessionFilter,
    SessionRow,
    SettingRow,
    StartRow,
    Store,
    StoreAway,
    StoreBusy,
    StoreConflict,
    StoreTooNew,
    StoreUnavailable,
    TombstoneRow,
    TraceRow,
)
from interlock.store.sqlite.store import open_store as open_sqlite
from interlock.store.word_split import words_in
from support import postgres_server
from support.harness import Bench, steps, workflow
from support.postgres_server import PostgresServer, require_postgres, shared_server
from support.store_rows import handle_of, session_of, start, step


@pytest.fixture
def server() -> PostgresServer:
    require_postgres()
    return shared_server()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PostgresStore]:
    opened = postgres_server.open_in(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def fresh_url(server: PostgresServer) -> Iterator[str]:
    """A database without tables."""
    schema = f"fresh_{uuid4().hex[:8]}"
    yield server.in_schema(schema)
    server.execute(f"DROP SCHEMA {schema} CASCADE")


def bodies(store: Store) -> list[str]:
    with store.reading() as reader:
        return [row.body.decode() for row in reader.commits("sess_a")]


# Connections and answers that are lost.


def cut_connections(server: PostgresServer) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'interlock'"
    )


def test_a_probe_whose_connection_was_cut_since_the_last_one_finds_the_server_ready(
    store: PostgresStore, server: PostgresServer
) -> None:
    for _ in range(3):
        store.probe()
        cut_connections(server)


def test_a_lost_connection_is_replaced_without_anyone_noticing(
    store: PostgresStore, server: PostgresServer
) -> None:
    store.append(start())
    session = session_of(store)
    cut_connections(server)
    assert store.load("sess_a") is not None
    cut_connections(server)
    with store.reading() as reader:
        assert reader.session("sess_a") == session
    cut_connections(server)
    with store.writing() as writer:
        writer.set_setting(SettingRow("me", "mode", "a"))
    cut_connections(server)
    try:
        store.append(step(session, text="once"))
    except StoreConflict:  # then the call is run again from its read
        assert bodies(store) == ["[]"]
        store.append(step(session, text="once"))
    assert bodies(store) == ["[]", "once"]


class Relay:
    """A network between a store and its server; `drop_answers` loses what the server says next."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.drop_answers = False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += (client, server)
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if answers and self.drop_answers:
                    self.drop_answers = False
                    break
                target.sendall(data)
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for end in (self._listener, *self._sockets):
            end.close()


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_commit_whose_answer_was_lost_is_found_again(server: PostgresServer, sessions: int) -> None:
    relay = Relay(server.port)
    schema = f"relay_{uuid4().hex[:8]}"
    store = open_store(server.in_schema(schema).replace(f":{server.port}/", f":{relay.port}/"))
    names = ["sess_a", "sess_b"][:sessions]
    store.append(*map(start, names))
    store.append(step(session_of(store)))  # its statement is prepared now, so the next answer is the commit's
    changes = [step(session_of(store, name), text="once") for name in names]
    if sessions == 1:
        relay.drop_answers = True
        store.append(*changes)
    else:  # only the answer of the last statement, the commit, is lost
        sent = store._send

        def send(connection: connections.PostgresConnection, statements: Any) -> None:
            execute = connection.execute

            def dropping(sql: Any, *args: Any, **kwargs: Any) -> Any:
                relay.drop_answers = sql == "COMMIT"
                return execute(sql, *args, **kwargs)

            connection.execute = dropping  # type: ignore[method-assign]
            sent(connection, statements)

        store._send = send  # type: ignore[method-assign]
        store.append(*changes)
    assert not relay.drop_answers
    assert bodies(store) == ["[]", "[]", "once"]
    with pytest.raises(StoreConflict):
        store.append(changes[0])
    store.close()
    relay.close()
    server.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.slow
def test_while_the_server_is_away_calls_fail_in_bounded_time_and_then_work_again() -> None:
    require_postgres()
    server = PostgresServer()
    try:
        server.start()
        store = open_store(server.url)
        store.append(start())
        session = session_of(store)
        server.stop("immediate")
        for call in (
            lambda: store.load("sess_a"),
            lambda: store.append(step(session)),
            lambda: store.trace([TraceRow("sess_a", 0, 1, b"")]),
            lambda: session_of(store),
        ):
            before = time.monotonic()
            with pytest.raises((StoreAway, StoreConflict)):
                call()
            assert time.monotonic() - before < 10 * connections.PATIENCE
        with pytest.raises(StoreAway, match="cannot be reached"):
            open_store(server.url)
        before = time.monotonic()
        with ThreadPoolExecutor(40) as pool:  # many callers do not add their waiting up
            waits = [pool.submit(store.load, "sess_a") for _ in range(40)]
        assert all(isinstance(wait.exception(), StoreAway | StoreBusy) for wait in waits)
        assert time.monotonic() - before < 10 * connections.PATIENCE
        server.start()
        while True:  # calls fail at once for a while after the server was found away
            with suppress(StoreAway):
                store.append(step(session, text="back"))
                break
            time.sleep(0.05)
        assert bodies(store) == ["[]", "back"]
        store.close()
    finally:
        server.remove()


def test_a_lock_is_waited_for_in_bounds(store: PostgresStore, server: PostgresServer) -> None:
    store.append(start())
    hasty = PostgresStore(server.in_schema("kit"), deadline=0.4)
    with store.writing() as writer:
        writer.set_keep("sess_a", True)
        with pytest.raises(StoreBusy):
            hasty.append(step(session_of(hasty)))
    hasty.append(step(session_of(hasty)))
    hasty.close()


def test_what_the_server_refuses_is_told_without_the_password(server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        open_store(f"postgresql://nobody:secret@127.0.0.1:{server.port}/none")
    assert "secret" not in str(refused.value)
    assert without_password("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert (
        without_password("postgresql://host/db?password=secret&x=1")
        == "postgresql://host/db?password=***&x=1"
    )
    assert without_password("sqlite:///a@b/c.db") == "sqlite:///a@b/c.db"


# Several processes.


def test_texts_are_sent_as_utf_8_whatever_the_url_says(fresh_url: str) -> None:
    store, first = open_store(f"{fresh_url}&client_encoding=latin1"), start()
    store.append(replace(first, session=replace(first.session, title="日本語")))
    assert session_of(store).title == "日本語"
    store.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(server: PostgresServer, encoding: str) -> None:
    name = f"encoded_{uuid4().hex[:8]}"
    server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreUnavailable, match=f"has the encoding {encoding}: create the database with"):
        open_store(f"{server.url.rpartition('/')[0]}/{name}")
    server.execute(f"DROP DATABASE {name}")


def test_a_search_path_without_a_schema_is_refused(server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match="none of the schemas"):
        open_store(f"{server.url}?options=-csearch_path%3Dnowhere")


@pytest.mark.parametrize(
    "setting",
    [
        "default_transaction_isolation=serializable",
        "default_transaction_deferrable=on",
        "timezone=Asia/Kathmandu",
        "bytea_output=escape",
        "standard_conforming_strings=off",
        "synchronous_commit=off",
    ],
)
def test_the_servers_defaults_change_nothing(fresh_url: str, setting: str) -> None:
    store = open_store(f"{fresh_url}%20-c{setting.replace('=', '%3D')}")
    store.append(start())
    store.append(step(session_of(store)))
    with store.writing() as writer:
        writer.index(SearchRow("sess_a", "me", "it's a \\ title", "", "", 1), [])
    with store.reading() as reader:
        assert reader.search(["it's"], owner="me", columns=["title"], limit=5) == ["sess_a"]
        durable = reader._rows("SELECT current_setting('synchronous_commit')")
    assert durable == [("on",)]
    assert session_of(store).head_index == 1
    store.close()


def test_a_database_that_takes_no_writes_says_so(fresh_url: str) -> None:
    open_store(fresh_url).close()
    store = open_store(f"{fresh_url}%20-cdefault_transaction_read_only%3Don")
    with pytest.raises(StoreAway, match="takes no writes now"):
        store.append(start())
    store.close()


def test_a_full_disk_is_told_and_the_call_works_once_there_is_room(fresh_url: str, tmp_path: Path) -> None:
    """The server itself fails with what it says when a file cannot grow."""
    bench = Bench(tmp_path, lambda _: open_store(fresh_url))
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    began = agent.start("test.flow")
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END $$"
        )
        connection.execute("CREATE TRIGGER full_disk BEFORE INSERT ON commits EXECUTE FUNCTION full_disk()")
        refused = agent.ack("done")
        assert refused["code"] == "STORE_UNAVAILABLE"
        assert "could not extend file" in refused["message"]
        assert "free some space" in refused["message"] + str(refused["details"])
        assert refused["retry"]["afterMs"] > 0
        connection.execute("DROP TRIGGER full_disk ON commits")
    assert agent.ack("done", at=began)["pending"]["stepId"] == "two"
    bench.close()


def test_statements_that_a_pooler_has_forgotten_are_prepared_again(fresh_url: str) -> None:
    store = open_store(fresh_url, size=1)

    def forget() -> None:
        with store._connection(time.monotonic() + 60) as connection:
            connection.pgconn.exec_(b"DEALLOCATE ALL")

    store.append(start())
    for _ in range(2):
        for _ in range(2):
            store.append(step(session_of(store)))
        session = session_of(store)
        forget()
        with pytest.raises(StoreConflict):  # the command runs again from its read
            store.append(step(session))
        forget()
        assert store.load("sess_a") is not None
        forget()
        assert session_of(store) == session
    store.close()


def test_a_session_that_becomes_active_is_not_removed(store: PostgresStore, tmp_path: Path) -> None:
    store.append(start(at=1))
    other = postgres_server.open_in(tmp_path)
    with store.writing() as writer:
        assert writer.stale_sessions(5, "", 9) == ["sess_a"]
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(other.append, step(session_of(other), at=9))
            time.sleep(0.1)
            assert not late.done()
            writer.remove_session("sess_a", 7)
            writer._connection.execute("COMMIT")
            assert isinstance(late.exception(), StoreConflict)
    other.close()


def test_a_repair_of_a_session_that_moved_is_a_conflict(store: PostgresStore, tmp_path: Path) -> None:
    store.append(start())
    other = postgres_server.open_in(tmp_path)
    made = start()
    rows = {"runs": made.runs, "nodes": made.nodes, "blocked": (), "modes": (), "observations": {}}

    def repair() -> None:
        from interlock.store.protocol import SessionRows

        with store.writing() as writer:
            assert writer.session("sess_a") is not None
            other.append(step(session_of(other)))
            writer.replace_session(SessionRows(session=made.session, commits=[made.commit], **rows))

    with pytest.raises(StoreConflict):
        repair()
    assert len(bodies(other)) == 2
    other.close()


def test_processes_that_index_at_once_share_the_sessions(store: PostgresStore, tmp_path: Path) -> None:
    store.append(*(start(f"sess_{name}") for name in "abc"))
    other = postgres_server.open_in(tmp_path)
    with store.writing() as mine:
        assert mine.unindexed(2) == ["sess_a", "sess_b"]
        with other.writing() as others:
            assert others.unindexed(2) == ["sess_c"], "what is being indexed is left to who does it"
        store_rows = {row.session_id for row in mine.unindexed_of("me", 9)}
        assert store_rows == {"sess_a", "sess_b", "sess_c"}, "a search sees all of them"
        other.append(step(session_of(other)))  # a command does not wait for the index
        mine.index(SearchRow("sess_b", "me", "t", "n", "", 0), ["needle"])
    with other.reading() as reader:
        assert reader.unindexed(5) == ["sess_a", "sess_c"]
    other.close()


def test_what_a_process_was_indexing_when_it_died_is_indexed_by_another(
    store: PostgresStore, tmp_path: Path
) -> None:
    store.append(start())
    other = postgres_server.open_in(tmp_path)

    def die_before_the_end() -> None:
        with other.writing() as lost:
            assert lost.unindexed(5) == ["sess_a"]
            lost.index(SearchRow("sess_a", "me", "t", "n", "", 0), ["needle"])
            lost._connection.close()

    with pytest.raises(StoreAway):
        die_before_the_end()
    with store.writing() as writer:
        assert writer.search_row("sess_a") is None
        assert writer.unindexed(5) == ["sess_a"]
    other.close()


# Migrations.


def test_processes_that_start_at_once_migrate_once(fresh_url: str) -> None:
    assert database_status(fresh_url).schema_version == 0
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(fresh_url), range(8)))
    stores[0].append(start())
    assert session_of(stores[7]).session_id == "sess_a"
    status = database_status(fresh_url)
    assert (status.schema_version, status.sessions, status.unindexed) == (len(MIGRATIONS), 1, 1)
    for opened in stores:
        opened.close()


def test_a_newer_database_is_left_alone(fresh_url: str) -> None:
    open_store(fresh_url).close()
    connection = connect(fresh_url)
    migrate(connection, (*MIGRATIONS, "SELECT 1; CREATE TABLE later (x int)"), "db")
    assert version_of(connection) == len(MIGRATIONS) + 1
    with pytest.raises(StoreTooNew, match="update Interlock"):
        open_store(fresh_url)
    connection.close()


def test_a_migration_that_fails_changes_nothing(fresh_url: str) -> None:
    open_store(fresh_url).close()
    connection = connect(fresh_url)
    with pytest.raises(psycopg.Error):
        migrate(connection, (*MIGRATIONS, "CREATE TABLE later (x int); SELECT nonsense"), "db")
    assert version_of(connection) == len(MIGRATIONS)
    assert connection.execute("SELECT to_regclass('later')").fetchone() == (None,)
    connection.close()


# Plans.


def test_plans_made_on_an_empty_database_stay_right_on_a_full_one(fresh_url: str) -> None:
    store = open_store(fresh_url)
    connection = connect(fresh_url)
    kinds = "text, int8, int8"
    connection.execute(f"PREPARE loading ({kinds}) AS {LOAD_BY_ID}", prepare=False)
    connection.execute("EXPLAIN EXECUTE loading ('sess_a', NULL, 1)", prepare=False)
    store.append(start())
    session, changes = session_of(store), []
    for number in range(1500):
        changes.append(step(session, attempt=1, text=f"{number}"))
        session = changes[-1].session
    store.append(*changes)
    for analyzed in (False, True):
        if analyzed:
            connection.execute("ANALYZE")
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE loading ('sess_a', NULL, 1)"
        row = connection.execute(explain, prepare=False).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 80
        assert plan["Actual Rows"] <= 4
        assert "Rows Removed by Filter" not in str(plan)
    connection.close()
    store.close()


class ExplainedReader(PostgresReader):
    """Answers with the plan of a question."""

    decoders: ClassVar = {SessionRow: str}

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return super()._rows(f"EXPLAIN {sql}", *values)


@pytest.mark.parametrize(("owner", "index"), [("me", "sessions_recent"), (None, "sessions_latest")])
def test_the_newest_sessions_are_read_by_an_index_of_their_owner_or_of_all(
    fresh_url: str, owner: str | None, index: str
) -> None:
    open_store(fresh_url).close()
    connection = connect(fresh_url)
    plan = "\n".join(map(str, ExplainedReader(connection).sessions(SessionFilter(owner))))
    connection.close()
    assert f"Index Scan Backward using {index} on sessions" in plan
    assert plan.count("->  Sort") == 1  # the few that are left are put in order


def test_a_command_is_one_statement_of_few_shapes(store: PostgresStore) -> None:
    store.append(start())
    session = session_of(store)
    first, _ = append_statement(step(session, attempt=None))  # type: ignore[arg-type]
    second, _ = append_statement(step(session, attempt=2**40, text="long " * 1000))
    assert first == second
    assert first.count("INSERT") == 2


def test_heads_are_updated_in_place(store: PostgresStore) -> None:
    store.append(start())
    for _ in range(100):
        store.append(step(session_of(store), attempt=1))
    with store.reading() as reader:
        (size,) = reader._rows("SELECT pg_relation_size('sessions_recent') / 8192")[0]
        (keys,) = reader._rows("SELECT pg_relation_size('sessions_pkey') / 8192")[0]
    assert (size, keys) <= (2, 2)


# Words.

SAMPLES = (
    "Crème BRÛLÉE naïve Ångström",
    "wr.bug-fix_x a1b2 3.14",
    "Ärger straße ÉCOLE ὈΔΟΣ ДОМ йод",
    "日本語 한국어 שלום हिन्दी",
    "don't «quoted» “x” \\ ' \" : & | ! <-> *",
    "e\u0301te\u0301 combining",
    "ﬁne ① Ⅷ ½ ǅ İstanbul ς",
)


def sqlite_words(*texts: str) -> list[str]:
    memory = apsw.Connection(":memory:")
    memory.execute("CREATE VIRTUAL TABLE w USING fts5 (t, tokenize='unicode61 remove_diacritics 2')")
    memory.execute("CREATE VIRTUAL TABLE v USING fts5vocab (w, instance)")
    for text in texts:
        memory.execute("INSERT INTO w VALUES (?)", (text,))
    return [str(term) for (term,) in memory.execute("SELECT term FROM v ORDER BY doc, offset")]


@pytest.mark.parametrize("text", SAMPLES)
def test_words_are_those_of_the_embedded_store(text: str) -> None:
    assert words_in(text) == sqlite_words(text)


ALPHABET = st.characters(max_codepoint=0x24F, exclude_characters="\0Ǡǡ")


@given(st.text(ALPHABET, max_size=30))
def test_latin_words_are_those_of_the_embedded_store(text: str) -> None:
    assert words_in(text) == sqlite_words(text)


def test_long_texts_and_words_are_indexed_in_part(store: PostgresStore) -> None:
    store.append(start())
    text = " ".join(f"word{number}" for number in range(200_000))
    with store.writing() as writer:
        writer.index(SearchRow("sess_a", "me", "y" * 5000, "a\0b", "", 0), [text, "z" * 3_000_000])
    with store.reading() as reader:
        assert reader.search(["y" * 5000], owner="me", columns=["title"], limit=5) == ["sess_a"]
        assert reader.search_outputs(["word7"], owner="me", limit=5) == ["sess_a"]
        assert reader.search_outputs(["z" * 3_000_000], owner="me", limit=5) == ["sess_a"]


# Copies.


def filled(folder: Path) -> Bench:
    bench = Bench(folder)
    bench.write(workflow(*steps("first", "second", "third")))
    for number in range(3):
        agent = bench.agent()
        agent.start("test.flow", goal=f"Goal {number}")
        agent.ack(f"Note {number}")
        agent.ledger.close()
    return bench


def test_a_copy_there_and_back_is_the_same(tmp_path: Path, store: PostgresStore) -> None:
    bench = filled(tmp_path)
    source = open_sqlite(tmp_path)
    with source.writing() as writer:
        session_id = writer.session_ids("", 1)[0]
        writer.set_setting(SettingRow("me", "mode", "x"))
        writer.set_keep(session_id, True)
        writer.set_tombstone(TombstoneRow("sess_gone", "me", 5))
        writer.add_start(StartRow("me", b"id", b"q", session_id, b"handle", b"answer", 5))
        writer.add_handle(HandleRow(b"second", session_id, "worker"))
    source.trace([TraceRow(session_id, 0, 1, b"{}")])
    assert [row.outcome for row in copy_store(source, store)] == ["copied"] * 3
    assert [row.outcome for row in copy_store(source, store)] == ["present"] * 3
    back = open_sqlite(tmp_path / "back")
    assert [row.outcome for row in copy_store(store, back)] == ["copied"] * 3
    for name in ("session", "runs", "modes", "handles", "observations", "starts"):
        with source.reading() as ours, back.reading() as theirs:
            assert getattr(ours, name)(session_id) == getattr(theirs, name)(session_id)
    with source.reading() as ours, back.reading() as theirs, store.reading() as middle:
        for name in ("nodes", "commits", "blocked"):
            rows = list(getattr(ours, name)(session_id))
            assert rows == list(getattr(middle, name)(session_id)) == list(getattr(theirs, name)(session_id))
        assert ours.content_digests("", 99) == theirs.content_digests("", 99) != []
        assert theirs.setting("me", "mode") == "x"
        assert theirs.tombstone("sess_gone") == TombstoneRow("sess_gone", "me", 5)
        assert theirs.traces(session_id, 0, 9, 9) == [TraceRow(session_id, 0, 1, b"{}")]
    agent = bench.agent()
    agent.start("test.flow")
    grown, kept = agent.last["session"]["sessionId"], agent.last
    copy_all(source, store)
    agent.ack("more", at=kept)
    assert {row.session_id: row.outcome for row in copy_store(source, store)}[grown] == "copied"
    agent.ledger.close()
    with store.writing() as writer:
        writer.set_health(grown, "corrupt_tail", "x")
    store.append(step(session_of(store, grown)))
    refused = [row for row in copy_store(source, store) if row.outcome == "refused"]
    assert [(row.session_id, row.reason) for row in refused] == [
        (grown, "the target has another log under this id")
    ]
    source.close()
    back.close()


def test_a_bundle_that_two_import_at_once_is_there_twice(tmp_path: Path, store: PostgresStore) -> None:
    bench = filled(tmp_path)
    ledger = bench.ledger()
    with ledger.store.reading() as reader:
        session = reader.session(reader.session_ids("", 1)[0])
    assert session is not None
    bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
    mine = Ledger(store, ledger.keys, ledger.library, Settings(owner="me"), bench.clock)
    with ThreadPoolExecutor(4) as pool:
        imported = list(pool.map(lambda _: import_bundle(mine, bundle).session_id, range(4)))
    assert len({*imported}) == 4
    assert session.session_id in imported


def test_a_copy_that_was_interrupted_is_completed(
    tmp_path: Path, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    source = open_sqlite(tmp_path)
    with source.reading() as reader:
        session_id = reader.session_ids("", 1)[0]
    source.trace([TraceRow(session_id, 0, 1, b"{}")])

    def lose_power(rows: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "trace", lose_power)
        with pytest.raises(KeyboardInterrupt):
            copy_all(source, store)
    copy_all(source, store)
    source.trace([TraceRow(session_id, 0, 2, b"{}")])
    copy_all(source, store)
    with source.reading() as ours, store.reading() as theirs:
        assert theirs.session_ids("", 9) == ours.session_ids("", 9)
        assert theirs.traces(session_id, 0, 9, 9) == ours.traces(session_id, 0, 9, 9) != []
    source.close()


def test_what_the_target_has_under_the_same_keys_stays_and_the_copy_goes_on(
    tmp_path: Path, store: PostgresStore
) -> None:
    filled(tmp_path)
    source = open_sqlite(tmp_path)
    with source.writing() as writer:
        first, second, _ = writer.session_ids("", 9)
        writer.add_start(StartRow("me", b"id", b"q", first, b"handle", b"answer", 5))
        writer.add_handle(HandleRow(b"ours", second, "worker"))
    with store.writing() as writer:
        writer.add_start(StartRow("me", b"id", b"q", "sess_other", b"other", b"another", 6))
        writer.add_handle(HandleRow(b"theirs", second, "worker"))
    outcomes = {row.session_id: row for row in copy_store(source, store)}
    assert [outcomes.pop(second).outcome, *(row.outcome for row in outcomes.values())] == [
        *("refused", "copied", "copied")
    ]
    with store.reading() as reader:
        start = reader.start("me", b"id")
        assert start is not None
        assert start.response == b"another"
        assert reader.session(second) is None
    source.close()


def copy_all(source: Store, target: Store) -> None:
    for _ in copy_store(source, target):
        pass


def test_a_damaged_session_is_not_copied(tmp_path: Path, store: PostgresStore) -> None:
    source = open_sqlite(tmp_path)
    source.append(start())  # its digests are not those of a chain
    assert [(row.outcome, row.reason[:18]) for row in copy_store(source, store)] == [
        ("refused", "its log is damaged")
    ]
    assert store.load(handle_of("sess_a")) is None
    source.close()


# The command line.


def test_without_the_packages_the_error_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BadConfig, match=r"interlock\[postgres\]"):
        store_of(Config(store="postgresql://localhost/x"))


def test_nothing_of_postgresql_is_loaded_for_the_embedded_store(tmp_path: Path) -> None:
    program = (
        "import sys; from interlock.cli.compose import ledger_of; from interlock.cli.config import Config;"
        f"ledger_of(Config(data_dir={str(tmp_path)!r})).close();"
        "print([name for name in sys.modules if 'psycopg' in name or 'postgres' in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
