"""The embedded store as a file: private, shared by processes, safe against kills, clear about damage."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import apsw
import pytest

from interlock.ledger.retention import collect
from interlock.store.protocol import (
    Changes,
    SearchRow,
    SessionFilter,
    SessionRow,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
    TraceRow,
)
from interlock.store.sqlite import statements
from interlock.store.sqlite import store as store_module
from interlock.store.sqlite.lock import PATIENCE, FileLock
from interlock.store.sqlite.raw_commits import raw_commits
from interlock.store.sqlite.salvage import replace_damaged, salvage
from interlock.store.sqlite.schema import MIGRATIONS
from interlock.store.sqlite.statements import SqliteReader
from interlock.store.sqlite.store import (
    CHECKPOINT_PAGES,
    PAGE_SIZE,
    RESERVE,
    SqliteStore,
    connect,
    is_mislabelled,
    migrate,
    open_store,
    version_of,
)
from support.harness import Bench
from support.paths import FIXTURES
from support.store_rows import node_row, session_of, start, step

posix = pytest.mark.skipif(os.name != "posix", reason="checks POSIX file permissions and signals")

OPEN_STORE = "interlock.store.sqlite.store.open_store"


def begin(folder: Path) -> SqliteStore:
    store = open_store(folder)
    store.append(start())
    return store


def appender(folder: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(FIXTURES / "appender.py"), OPEN_STORE, str(folder), str(count), "p"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def indexes(store: SqliteStore) -> list[int]:
    with store.reading() as reader:
        return [row.last for row in reader.commits("sess_a")]


def fill(store: SqliteStore, count: int) -> None:
    """Append many steps in one transaction."""
    session, changes = session_of(store), list[Changes]()
    for number in range(count):
        changes.append(step(session, attempt=1, text=f"w{number} " + "x" * 1000))
        session = changes[-1].session
    store.append(*changes)


def folded(folder: Path, count: int = 399) -> Path:
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
        file.seek((page - 1) * PAGE_SIZE)
        file.write(b"\xaa" * PAGE_SIZE)


def leaf_of(path: Path, table: str) -> int:
    """Find a page in the middle of a table, by the layout of the pages that lead to it."""
    content, number = path.read_bytes(), root_page(path, table)
    assert content[(number - 1) * PAGE_SIZE] == 5
    while (page := content[(number - 1) * PAGE_SIZE : number * PAGE_SIZE])[0] == 5:
        cells = int.from_bytes(page[3:5], "big")
        cell = int.from_bytes(page[12 + cells // 2 * 2 :][:2], "big")
        number = int.from_bytes(page[cell : cell + 4], "big")
    return number


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


def test_commits_cannot_be_changed(tmp_path: Path) -> None:
    store = begin(tmp_path)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        store._connection.execute("UPDATE commits SET body = x'00'")
    store.close()


def test_large_content_is_stored_small(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store.writing() as writer:
        writer.add_content("sha256:1", b"a" * 100_000)
    assert int(str(store._connection.execute("SELECT length(body) FROM contents").get)) < 1000
    store.close()


def test_a_long_response_is_stored_small(tmp_path: Path) -> None:
    store = begin(tmp_path)
    store.append(step(session_of(store), text="a" * 100_000))
    assert int(str(store._connection.execute("SELECT max(length(response)) FROM nodes").get)) < 2000
    store.close()


def test_traces_do_not_wait_for_the_disk_and_commands_do_again_after_them(tmp_path: Path) -> None:
    store, levels = begin(tmp_path), list[tuple[str, object]]()

    def noted(cursor: object, sql: str, bindings: object) -> bool:
        if sql.startswith(("INSERT INTO traces", "INSERT INTO commits")):
            levels.append((sql.split()[2], store._connection.pragma("synchronous")))
        return True

    store._connection.exec_trace = noted
    store.trace([TraceRow("sess_a", 0, 1, b"t")])
    store.append(step(session_of(store)))
    assert levels == [("traces", 1), ("commits", 2)]
    store.close()


def test_commands_wait_for_the_disk_again_after_traces_that_failed(tmp_path: Path) -> None:
    store, holder = begin(tmp_path), FileLock(tmp_path / "interlock.lock")
    store._lock.patience = 0.05
    with holder, pytest.raises(StoreBusy):
        store.trace([TraceRow("sess_a", 0, 1, b"t")])
    assert store._connection.pragma("synchronous") == 2
    with pytest.raises(StoreConflict):
        store.trace([TraceRow("sess_a", 0, None, b"t")])  # type: ignore[arg-type]
    assert store._connection.pragma("synchronous") == 2
    with store.reading() as reader:
        assert reader.traces("sess_a", 0, 9, 9) == []
    holder.close()
    store.close()


@posix
def test_calls_behind_a_held_lock_wait_together_and_the_probe_waits_for_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.store.sqlite.store.PROBE_PATIENCE", 0.05)
    store, other = open_store(tmp_path, deadline=1.0), FileLock(tmp_path / "interlock.lock")
    with other, ThreadPoolExecutor(8) as pool:
        began = time.monotonic()
        calls = [pool.submit(store.append, start(f"sess_{number}")) for number in range(8)]
        time.sleep(0.1)
        with pytest.raises(StoreBusy):  # that it cannot write is known at once
            store.probe()
        assert time.monotonic() - began < 0.9
        assert all(isinstance(call.exception(), StoreBusy) for call in calls)
        assert time.monotonic() - began < 2.0
    store.append(start())
    store.probe()
    other.close()
    store.close()


def test_a_reader_leaves_the_log_as_it_is_even_as_the_last_one_out(tmp_path: Path) -> None:
    begin(tmp_path).close()
    writer = appender(tmp_path, 100_000)
    assert writer.stdout is not None
    for _ in range(3):
        writer.stdout.readline()
    writer.kill()
    writer.communicate()
    log = tmp_path / "interlock.db-wal"
    before = log.read_bytes()
    reader = open_store(tmp_path)
    assert indexes(reader)[:4] == [0, 1, 2, 3]
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
        assert indexes(store) == [0]
        with pytest.raises(StoreBusy):
            fill(store, 1)
    fill(store, 1)
    holder.close()
    store.close()


def test_readers_are_served_while_another_writes(tmp_path: Path) -> None:
    ours, theirs = begin(tmp_path), open_store(tmp_path)
    with ours.writing() as writer:
        writer.append(step(session_of(ours)))
        assert indexes(theirs) == [0]
    assert indexes(theirs) == [0, 1]
    ours.close()
    theirs.close()


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
        assert session_of(store).head_index == indexes(store)[-1]
        assert store.integrity() == []
        store.close()


@posix
def test_a_process_that_dies_within_a_command_leaves_nothing_of_it(tmp_path: Path) -> None:
    begin(tmp_path).close()
    script = (
        "import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from interlock.store.sqlite.store import open_store\n"
        "from support.store_rows import session_of, step\n"
        "store = open_store(Path(sys.argv[1]))\n"
        "session = session_of(store)\n"
        "with store.writing() as writer:\n"
        "    writer.append(step(session))\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path), str(FIXTURES.parent)]
    assert subprocess.run(command, check=False).returncode == -9
    store = open_store(tmp_path)
    assert indexes(store) == [0]
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


def test_a_damaged_version_is_told_from_a_newer_one(tmp_path: Path) -> None:
    path = folded(tmp_path)
    connection = connect(path)
    connection.pragma("user_version", 99)
    assert is_mislabelled(path)
    connection.execute("CREATE TABLE of_a_newer_version (x)")
    assert not is_mislabelled(path)
    connection.execute("DROP TABLE of_a_newer_version")
    connection.pragma("user_version", 0)
    connection.close()
    with pytest.raises(StoreCorrupt, match="doctor --repair"):
        open_store(tmp_path)
    replace_damaged(tmp_path)
    store = open_store(tmp_path)
    assert indexes(store)[:2] == [0, 1]
    store.close()


def test_a_migration_copies_the_file_before_it_changes_it(tmp_path: Path) -> None:
    path = folded(tmp_path)
    connection = connect(path)
    migrate(connection, path, (*MIGRATIONS, "SELECT 1; CREATE TABLE later (x)"))
    assert version_of(connection) == len(MIGRATIONS) + 1
    assert connection.execute("SELECT count(*) FROM later").get == 0
    connection.close()
    copy = connect(tmp_path / f"interlock.db.v{len(MIGRATIONS)}.backup")
    assert version_of(copy) == len(MIGRATIONS)
    assert copy.execute("SELECT count(*) FROM commits").get == 400
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
    assert indexes(store) == [0]
    store._connection.pragma("max_page_count", 2**31)
    fill(store, 1000)
    assert indexes(store) == list(range(1001))
    store.close()


def large(store: SqliteStore, sessions: int) -> None:
    """Store sessions that take some space."""
    for number in range(sessions):
        name = f"sess_{number}"
        store.append(
            start(name, nodes=[node_row(0, session_id=name, state=random.Random(name).randbytes(50_000))])
        )


def test_removed_sessions_give_their_space_back(tmp_path: Path) -> None:
    store = begin(tmp_path)
    large(store, 40)
    store.give_back()
    full = store.path.stat().st_size
    assert collect(store, 2**60, 5).total() == 41
    assert store.path.stat().st_size < full / 4
    assert store.integrity() == []
    store.close()


def test_sessions_are_removed_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The space that was held for it is all that there is."""
    monkeypatch.setattr(store_module, "LARGE", 0)
    store = begin(tmp_path)
    large(store, 5)
    store.close()
    reserve = tmp_path / "interlock.reserve"
    assert reserve.stat().st_size == RESERVE
    store = open_store(tmp_path)
    made_room = list[bool]()

    def full_until_room_is_made(*_: object) -> bool:
        made_room.append(not reserve.exists())
        return not made_room[-1]  # true refuses the commit

    store._connection.set_commit_hook(full_until_room_is_made)
    assert collect(store, 2**60, 5).total() == 6
    assert made_room
    assert all(made_room)
    store._connection.set_commit_hook(None)
    store.close()
    assert reserve.exists()


@posix
def test_sessions_are_removed_though_the_disk_has_no_room_to_give_their_space_back(tmp_path: Path) -> None:
    import resource

    store = begin(tmp_path)
    large(store, 40)
    kept = [f"sess_{number}" for number in range(10)]
    with store.writing() as writer:
        for name in kept:
            writer.set_keep(name, True)
    store.give_back()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limits[1]))  # room for the log, not for a new file
    try:
        assert collect(store, 2**60, 5).total() == 31
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.integrity() == []
    with store.reading() as reader:
        assert reader.session_ids("", 99) == kept
    store.append(step(session_of(store, kept[0])))
    store.close()


def test_rule_44_a_damaged_page_is_told_and_the_rest_recovered(tmp_path: Path) -> None:
    path = folded(tmp_path)
    spoil(path, leaf_of(path, "commits"))
    store = open_store(tmp_path)
    with pytest.raises(StoreCorrupt):
        indexes(store)
    assert store.integrity() != []
    store.close()
    saved = salvage(path, tmp_path / "new" / "interlock.db")
    assert saved.damaged == ("commits",)
    assert 390 <= saved.rows["commits"] < 400
    assert saved.rows["nodes"] == 400


@pytest.mark.parametrize("size", [10, 1500, 2100, 5000, 50_000])
def test_a_commit_is_found_by_its_bytes_whatever_its_size(tmp_path: Path, size: int) -> None:
    store = begin(tmp_path)
    store.append(step(session_of(store), text=f'["{"x" * size}"]'))
    with store.reading() as reader:
        stored = list(reader.commits("sess_a"))
    store.close()
    found = {raw.row.last: raw.row for raw in raw_commits(store.path)}
    assert [found[last] for last in sorted(found)] == stored


def test_a_truncated_file_keeps_what_is_left(tmp_path: Path) -> None:
    path = folded(tmp_path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // (2 * PAGE_SIZE) * PAGE_SIZE)
    with pytest.raises(StoreCorrupt):
        indexes(open_store(tmp_path))
    saved = salvage(path, tmp_path / "new" / "interlock.db")
    assert saved.damaged
    assert 0 < saved.rows["commits"] < 400


def test_a_salvaged_store_opens_sound_and_goes_on(tmp_path: Path) -> None:
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
    store.append(step(session_of(store)))
    store.close()
    with pytest.raises(FileExistsError):
        salvage(path, store.path)


def test_a_salvage_leaves_the_words_to_be_indexed_again(tmp_path: Path) -> None:
    store = begin(tmp_path)
    with store.writing() as writer:
        writer.index(SearchRow("sess_a", "me", "needle", "", "", 0), ["needle"])
    store.close()
    salvage(store.path, tmp_path / "new" / "interlock.db")
    salvaged = open_store(tmp_path / "new")
    with salvaged.reading() as reader:
        assert reader.unindexed(5) == ["sess_a"]
        assert reader.search_row("sess_a") is None
        assert reader.search(["needle"], owner="me", columns=["title"], limit=5) == []
    with salvaged.writing() as writer:
        writer.index(SearchRow("sess_a", "me", "needle", "", "", 0), ["needle"])
    with salvaged.reading() as reader:
        assert reader.search(["needle"], owner="me", columns=["title"], limit=5) == ["sess_a"]
        assert reader.search_outputs(["needle"], owner="me", limit=5) == ["sess_a"]
        assert reader.unindexed(5) == []
    salvaged.close()


def test_the_last_writer_out_folds_its_log_into_the_file(tmp_path: Path) -> None:
    one, two = begin(tmp_path), open_store(tmp_path)
    log = tmp_path / "interlock.db-wal"
    two.append(step(session_of(two)))
    one.close()
    assert log.exists()
    two.close()
    assert not log.exists()
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "interlock.db").write_bytes((tmp_path / "interlock.db").read_bytes())
    copy = open_store(alone)
    assert indexes(copy) == [0, 1]
    copy.close()


def test_a_writer_closes_at_once_while_another_writes(tmp_path: Path) -> None:
    store, holder = begin(tmp_path), FileLock(tmp_path / "interlock.lock")
    with holder:
        began = time.monotonic()
        store.close()
        assert time.monotonic() - began < PATIENCE
    holder.close()
    again = open_store(tmp_path)
    assert indexes(again) == [0]
    again.close()


PARTS = ("", "-wal", "-shm")


def move_away(folder: Path) -> Path:
    """Rename the store and its log, as a person would; gives the folder they are in now."""
    away = folder / "away"
    away.mkdir()
    for part in PARTS:
        if (path := folder / f"interlock.db{part}").exists():
            path.rename(away / path.name)
    return away


def contents(folder: Path) -> dict[str, bytes]:
    return {
        part: path.read_bytes() for part in PARTS[:2] if (path := folder / f"interlock.db{part}").exists()
    }


@posix
def test_a_command_goes_to_the_file_that_the_path_names_not_to_one_that_was_moved_away(
    tmp_path: Path,
) -> None:
    store = begin(tmp_path)
    before, away = session_of(store), move_away(tmp_path)
    kept = contents(away)
    with pytest.raises(StoreConflict):
        store.append(step(before))
    assert store.load("sess_a") is None
    store.append(start("sess_b"))
    store.close()
    assert contents(away) == kept
    new, old = open_store(tmp_path), open_store(away)
    assert [row.session_id for row in sessions(new)] == ["sess_b"]
    assert [row.session_id for row in sessions(old)] == ["sess_a"]
    new.close()
    old.close()


def sessions(store: SqliteStore) -> list[SessionRow]:
    with store.reading() as reader:
        return reader.sessions(SessionFilter())


@posix
def test_a_live_store_goes_on_in_the_repaired_file(tmp_path: Path) -> None:
    store = begin(tmp_path)
    store.append(step(session_of(store)))
    _, kept = replace_damaged(tmp_path)
    damaged = {part: kept.with_name(kept.name + part).read_bytes() for part in PARTS[:2]}
    store.append(step(session_of(store)))
    assert indexes(store) == [0, 1, 2]
    store.close()
    assert {part: kept.with_name(kept.name + part).read_bytes() for part in PARTS[:2]} == damaged
    again = open_store(tmp_path)
    assert indexes(again) == [0, 1, 2]
    assert again.integrity() == []
    again.close()


@posix
def test_a_store_whose_file_was_replaced_leaves_the_new_one_alone_when_it_closes(tmp_path: Path) -> None:
    """Its log has the name of the new file's log, which may hold what others have just written."""
    old = begin(tmp_path)
    replace_damaged(tmp_path)
    new = open_store(tmp_path)
    new.append(step(session_of(new)))
    log = (tmp_path / "interlock.db-wal").read_bytes()
    assert log
    old.close()
    assert (tmp_path / "interlock.db-wal").read_bytes() == log
    other = open_store(tmp_path)
    assert indexes(other) == [0, 1]
    other.close()
    new.close()


def test_no_call_reads_a_whole_session(tmp_path: Path) -> None:
    store = begin(tmp_path)
    asked: list[tuple[str, object]] = []

    def note(cursor: object, sql: str, bindings: object) -> bool:
        asked.append((sql, bindings))
        return True

    with store.reading() as reader:
        connection = reader._connection  # type: ignore[attr-defined]
        connection.exec_trace = note
        reader.load("sess_a", node=0, attempt=1)
        reader.children("sess_a", 0)
        reader.path("sess_a", 0, 10)
        reader.notes("sess_a", [0, 1])
        list(reader.blocked("sess_a", [0, 1]))
        connection.exec_trace = None
        plans = [
            row[3] for sql, values in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        ]
    assert len(plans) >= 10
    assert not [plan for plan in plans if plan.endswith("(session_id=?)") and "sessions" not in plan]
    assert not [plan for plan in plans if plan.startswith("SCAN") and plan != "SCAN path"]
    store.close()


def test_an_advance_takes_at_most_ten_statements(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    steps = [{"id": f"step-{number}", "title": "Step", "prompt": "Do it."} for number in range(9)]
    bench.write({"id": "p.steps", "name": "Steps", "description": "Steps.", "version": "1", "steps": steps})
    agent = bench.agent()
    agent.start("p.steps")
    agent.ack("Done.")
    asked: list[object] = []
    for connection in apsw.connections():
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, asked.append)
    agent.ack("Done.")
    for connection in apsw.connections():
        connection.trace_v2(0)
    assert 0 < len(asked) <= 10
    bench.close()


def test_a_store_whose_file_was_replaced_by_a_damaged_one_says_so_until_a_sound_one_is_there(
    tmp_path: Path,
) -> None:
    store, path = begin(tmp_path), tmp_path / "interlock.db"
    sound = tmp_path / "sound"
    sound.mkdir()
    begin(sound).close()
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(tmp_path / f"old{end}")
    path.write_bytes(b"no database " * 1000)
    for _ in range(2):
        with pytest.raises(StoreCorrupt):
            store.append(start("sess_b"))
        with pytest.raises(StoreCorrupt):
            session_of(store)
    (sound / "interlock.db").replace(path)
    store.append(step(session_of(store)))
    assert indexes(store) == [0, 1]
    store.close()


class ExplainedReader(SqliteReader):
    """Answers with the plan of a question."""

    decoders: ClassVar = {SessionRow: lambda *columns: str(columns[3])}

    def _rows(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        return super()._rows(f"EXPLAIN QUERY PLAN {sql}", *values)


@pytest.mark.parametrize(("owner", "index"), [("me", "sessions_recent"), (None, "sessions_latest")])
def test_the_newest_sessions_are_read_by_an_index_of_their_owner_or_of_all(
    tmp_path: Path, owner: str | None, index: str
) -> None:
    open_store(tmp_path).close()
    connection = connect(tmp_path / "interlock.db")
    plan = list(map(str, ExplainedReader(connection).sessions(SessionFilter(owner))))
    connection.close()
    older = plan[plan.index("CO-ROUTINE older") + 1 : plan.index("SCAN older")]
    assert len(older) == 1  # nothing is sorted
    assert index in older[0]


@pytest.mark.parametrize("few", [1, 1000])
def test_a_status_is_found_by_its_index_or_by_going_backwards(
    bench: Bench, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways find the same sessions; which one is taken depends on how many runs have the status."""
    monkeypatch.setattr(statements, "FEW", few)
    worker = bench.agent()
    for number in range(3):
        bench.clock.pass_seconds(1)
        worker.start("wr.small_task", goal=f"Task {number}")
        worker.ack("Agreed.", acceptance=["it works"])
    worker.ack("Changed.")
    worker.ack("No report.")  # the last one is blocked
    with bench.ledger().store.reading() as reader:
        found = {
            status: [row.title for row in reader.sessions(SessionFilter("local", status=status))]
            for status in ("in_progress", "blocked", "complete")
        }
        others = reader.sessions(SessionFilter("eve", status="blocked"))
    assert found == {"in_progress": ["Task 1", "Task 0"], "blocked": ["Task 2"], "complete": []}
    assert others == []
