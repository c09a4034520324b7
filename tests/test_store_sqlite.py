"""The embedded store as a file: private, shared by processes, safe against kills, clear about damage."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import apsw
import pytest

from interlock.store.lock import FileLock
from interlock.store.protocol import (
    EventRow,
    OutputRow,
    SessionFilter,
    SessionRow,
    StoreBusy,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
)
from interlock.store.salvage import salvage
from interlock.store.schema import MIGRATIONS
from interlock.store.sqlite import CHECKPOINT_PAGES, SqliteStore, connect, migrate, open_store, version_of

posix = pytest.mark.skipif(os.name != "posix", reason="checks POSIX file permissions and signals")

APPENDER = """
import sys, pathlib
from msgspec.structs import replace
from interlock.store.protocol import EventRow, NodeRow, OutputRow
from interlock.store.sqlite import open_store
store = open_store(pathlib.Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    with store.writing() as writer:
        session = writer.session("sess_a")
        index = session.head_index + 1
        writer.set_session(replace(session, head_index=index, updated_at=index))
        writer.add_events([EventRow("sess_a", index, "noted", b"x" * 500, b"d", 1, dedupe_key=str(index))])
        writer.add_outputs([OutputRow("sess_a", index, 0, 0, "notes", "step", f"word{index}")])
    print(index, flush=True)
"""


def begin(folder: Path) -> SqliteStore:
    store = open_store(folder)
    with store.writing() as writer:
        writer.add_session(SessionRow("sess_a", "me", "t", 1, 1, -1, b"", 0))
    return store


def appender(folder: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPENDER, str(folder), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def indexes(store: SqliteStore) -> list[int]:
    with store.reading() as reader:
        return [event.index for event in reader.events("sess_a")]


def fill(store: SqliteStore, count: int) -> None:
    with store.writing() as writer:
        writer.add_events(
            [EventRow("sess_a", index, "noted", b"x" * 1000, b"d", 1) for index in range(count)]
        )
        writer.add_outputs(
            [OutputRow("sess_a", 1, 0, index, "notes", "s", f"w{index}") for index in range(count)]
        )


def folded(folder: Path, count: int = 400) -> Path:
    """Make a store whose rows are all in the main file: the last writer out folds its log into it."""
    store = begin(folder)
    fill(store, count)
    store.close()
    assert not store.path.with_name("interlock.db-wal").exists()
    return store.path


def root_page(path: Path, name: str) -> int:
    connection = connect(path)
    found = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get
    connection.close()
    return int(str(found))


def spoil(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xaa" * 4096)


def leaf_of(path: Path, table: str) -> int:
    """Find a page in the middle of a table, by the layout of the table's root page."""
    with path.open("rb") as file:
        file.seek((root_page(path, table) - 1) * 4096)
        root = file.read(4096)
    assert root[0] == 5
    cells = int.from_bytes(root[3:5], "big")
    cell = int.from_bytes(root[12 + cells // 2 * 2 :][:2], "big")
    return int.from_bytes(root[cell : cell + 4], "big")


@posix
def test_only_the_owner_can_read_the_store(tmp_path: Path) -> None:
    store = begin(tmp_path / "deep" / "data")
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()}
    assert {"interlock.db", "interlock.db-wal", "interlock.lock"} <= modes.keys()
    assert set(modes.values()) == {0o600}
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    store.close()


@posix
def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    path = folded(tmp_path)
    path.chmod(0o644)
    open_store(tmp_path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_commit_is_synced_to_disk(tmp_path: Path) -> None:
    store = begin(tmp_path)
    assert store._connection.pragma("journal_mode") == "wal"
    assert store._connection.pragma("synchronous") == 2
    assert store._connection.pragma("wal_autocheckpoint") == CHECKPOINT_PAGES
    store.close()


def test_the_store_says_what_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.path == tmp_path / "interlock.db"
    assert store.schema_version == len(MIGRATIONS)
    assert tuple(map(int, store.sqlite_version.split("."))) > (3, 51, 2)
    assert store.integrity() == []
    store.close()


def test_events_cannot_be_changed(tmp_path: Path) -> None:
    store = begin(tmp_path)
    fill(store, 1)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        store._connection.execute("UPDATE events SET payload = x'00'")
    store.close()


def test_large_content_is_stored_small(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store.writing() as writer:
        writer.add_content("sha256:1", b"a" * 100_000)
    assert int(str(store._connection.execute("SELECT length(body) FROM contents").get)) < 1000
    store.close()


@posix
def test_a_reader_leaves_the_log_as_it_is_even_as_the_last_one_out(tmp_path: Path) -> None:
    begin(tmp_path).close()
    subprocess.run(
        [sys.executable, "-c", APPENDER + "import os; os._exit(0)", str(tmp_path), "3"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    log = tmp_path / "interlock.db-wal"
    before = log.read_bytes()
    reader = open_store(tmp_path)
    assert indexes(reader) == [0, 1, 2]
    assert reader._connection.pragma("wal_autocheckpoint") == 0
    reader.close()
    assert log.read_bytes() == before != b""


def test_a_writer_waits_a_bounded_time(tmp_path: Path) -> None:
    lock, other = FileLock(tmp_path / "x.lock"), FileLock(tmp_path / "x.lock", patience=0.05)
    with lock, pytest.raises(StoreBusy, match=r"x\.lock"), other:
        pass
    with other:
        pass
    lock.close()
    other.close()


def test_writers_take_their_turn_on_the_lock_file_and_readers_do_not(tmp_path: Path) -> None:
    store, holder = begin(tmp_path), FileLock(tmp_path / "interlock.lock")
    store._lock.patience = 0.05
    with holder:
        assert indexes(store) == []
        with pytest.raises(StoreBusy):
            fill(store, 1)
    fill(store, 1)
    holder.close()
    store.close()


def test_readers_are_served_while_another_writes(tmp_path: Path) -> None:
    ours, theirs = begin(tmp_path), open_store(tmp_path)
    with ours.writing() as writer:
        writer.add_events([EventRow("sess_a", 0, "noted", b"", b"", 1)])
        assert indexes(theirs) == []
    assert indexes(theirs) == [0]
    ours.close()
    theirs.close()


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    store = begin(tmp_path)

    def append() -> None:
        for _ in range(20):
            with store.writing() as writer:
                last = writer.last_event("sess_a")
                index = 0 if last is None else last.index + 1
                writer.add_events([EventRow("sess_a", index, "noted", b"", b"", 1)])

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert indexes(store) == list(range(80))
    store.close()


def test_rule_43_processes_that_write_together_lose_nothing(tmp_path: Path) -> None:
    store = begin(tmp_path)
    writers = [appender(tmp_path, 60) for _ in range(2)]
    printed = [int(line) for writer in writers for line in writer.communicate()[0].split()]
    assert sorted(printed) == indexes(store) == list(range(120))
    assert store.integrity() == []
    store.close()


@posix
@pytest.mark.slow
def test_what_was_acknowledged_survives_every_kill(tmp_path: Path) -> None:
    chance = random.Random(7)
    begin(tmp_path).close()
    for _ in range(12):
        writer = appender(tmp_path, 100_000)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        acknowledged = int((first + writer.communicate()[0]).split("\n")[-2])
        store = open_store(tmp_path)
        assert indexes(store) == list(range(len(indexes(store))))
        assert acknowledged in indexes(store)
        with store.reading() as reader:
            assert reader.search_outputs([f"word{acknowledged}"], limit=1) == ["sess_a"]
        assert store.integrity() == []
        store.close()


@posix
def test_a_process_that_dies_within_a_command_leaves_nothing_of_it(tmp_path: Path) -> None:
    begin(tmp_path).close()
    script = APPENDER.replace("    print", "        import os; os.kill(os.getpid(), 9)\n    print")
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path), "1"], check=False)
    assert killed.returncode == -9
    store = open_store(tmp_path)
    assert indexes(store) == []
    fill(store, 1)
    store.close()


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    path = folded(tmp_path)
    connection = connect(path)
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StoreTooNew, match="update Interlock"):
        open_store(tmp_path)
    assert not list(tmp_path.glob("*.backup"))


def test_a_migration_copies_the_file_before_it_changes_it(tmp_path: Path) -> None:
    path = folded(tmp_path)
    connection = connect(path)
    migrate(connection, path, (*MIGRATIONS, "SELECT 1; CREATE TABLE later (x)"))
    assert version_of(connection) == len(MIGRATIONS) + 1
    assert connection.execute("SELECT count(*) FROM later").get == 0
    connection.close()
    copy = connect(tmp_path / f"interlock.db.v{len(MIGRATIONS)}.backup")
    assert version_of(copy) == len(MIGRATIONS)
    assert copy.execute("SELECT count(*) FROM events").get == 400
    copy.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = folded(tmp_path)
    connection = connect(path)
    with pytest.raises(apsw.SQLError):
        migrate(connection, path, (*MIGRATIONS, "CREATE TABLE later (x); SELECT nonsense"))
    assert version_of(connection) == len(MIGRATIONS)
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'later'").get == 0
    connection.close()


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "interlock.db").write_bytes(b"not a database, but long enough to look at " * 100)
    with pytest.raises(StoreCorrupt, match="doctor --repair"):
        open_store(tmp_path)
    with pytest.raises(StoreCorrupt, match="nothing in it"):
        salvage(tmp_path / "interlock.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_place_that_cannot_hold_a_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="file"):
        open_store(tmp_path / "file")


def test_a_file_system_without_shared_memory_is_refused(tmp_path: Path) -> None:
    without_log = apsw.Connection(":memory:")
    with pytest.raises(StoreUnavailable, match="local disk"):
        migrate(without_log, tmp_path / "interlock.db", MIGRATIONS)


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path) -> None:
    store = begin(tmp_path)
    store._connection.pragma("max_page_count", store._connection.pragma("page_count"))
    with pytest.raises(StoreUnavailable, match="full"):
        fill(store, 1000)
    assert indexes(store) == []
    store._connection.pragma("max_page_count", 2**31)
    fill(store, 1000)
    assert indexes(store) == list(range(1000))
    store.close()


def test_rule_44_a_damaged_page_is_told_and_the_rest_recovered(tmp_path: Path) -> None:
    path = folded(tmp_path)
    spoil(path, leaf_of(path, "events"))
    store = open_store(tmp_path)
    with pytest.raises(StoreCorrupt):
        indexes(store)
    assert store.integrity() != []
    store.close()
    saved = salvage(path, tmp_path / "new" / "interlock.db")
    assert saved.damaged == ("events",)
    assert 390 <= saved.rows["events"] < 400
    assert saved.rows["outputs"] == 400


def test_a_truncated_file_keeps_what_is_left(tmp_path: Path) -> None:
    path = folded(tmp_path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 8192 * 4096)
    with pytest.raises(StoreCorrupt):
        indexes(open_store(tmp_path))
    saved = salvage(path, tmp_path / "new" / "interlock.db")
    assert saved.damaged
    assert 0 < saved.rows["events"] < 400


def test_a_salvaged_store_opens_sound_and_searchable(tmp_path: Path) -> None:
    path = folded(tmp_path)
    before = path.read_bytes()
    saved = salvage(path, tmp_path / "new" / "interlock.db")
    assert saved.damaged == ()
    assert path.read_bytes() == before
    store = open_store(tmp_path / "new")
    assert store.integrity() == []
    assert indexes(store) == list(range(400))
    with store.reading() as reader:
        assert [row.session_id for row in reader.sessions(SessionFilter())] == ["sess_a"]
        assert reader.search_outputs(["w123"], limit=5) == ["sess_a"]
    store.close()
    with pytest.raises(FileExistsError):
        salvage(path, store.path)
