"""The witness of the heads: what was stored and is gone is missed, and nothing is missed that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.store.protocol import StoreCorrupt
from interlock.store.sqlite.salvage import replace_damaged
from interlock.store.sqlite.store import LostEvents, SqliteStore, open_store
from interlock.store.sqlite.witness import LARGEST, Head, Witness
from support.store_rows import session_of, start, step

PARTS = ("interlock.db", "interlock.db-wal", "interlock.heads")


def copied(folder: Path, into: Path) -> Path:
    """Copy the files of a store that is open, as a crash would leave them."""
    into.mkdir()
    for name in PARTS:
        (into / name).write_bytes((folder / name).read_bytes())
    return into


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A store whose three commands are in the log only."""
    store = open_store(tmp_path)
    store.append(start())
    store.append(step(session_of(store)))
    store.append(step(session_of(store)))
    folder = copied(tmp_path, tmp_path / "crashed")
    store.close()
    return folder


def lost(folder: Path) -> list[LostEvents]:
    store = open_store(folder)
    try:
        return store.missing()
    finally:
        store.close()


def indexes(store: SqliteStore) -> list[int]:
    with store.reading() as reader:
        return [row.last for row in reader.commits("sess_a")]


def test_nothing_is_missed_after_a_crash(crashed: Path) -> None:
    assert lost(crashed) == []


def test_a_lost_log_is_missed_and_nothing_is_written_over_it(crashed: Path) -> None:
    (crashed / "interlock.db-wal").unlink()
    with pytest.raises(StoreCorrupt, match="doctor --repair"):
        open_store(crashed)


def test_a_log_that_was_cut_short_is_missed_and_recovered(crashed: Path) -> None:
    log = crashed / "interlock.db-wal"
    content = bytearray(log.read_bytes())
    content[-2000] ^= 1  # in the last page of the last command
    log.write_bytes(content)
    store = open_store(crashed)
    assert store.missing() == [LostEvents("sess_a", 3, 2)]
    with pytest.raises(StoreCorrupt, match="lost its newest events, those of session sess_a"):
        store.append(start("sess_b"))
    store.close()
    replace_damaged(crashed)
    store = open_store(crashed)
    assert indexes(store) == [0, 1, 2]
    store.append(start("sess_b"))
    store.close()


def test_what_was_accepted_as_lost_is_not_missed_again(crashed: Path) -> None:
    log = crashed / "interlock.db-wal"
    log.write_bytes(log.read_bytes()[:-3000])
    store = open_store(crashed)
    store.repairing = True
    store.accept_heads()
    assert store.missing() == []
    store.append(step(session_of(store)))
    assert indexes(store) == [0, 1, 2]
    assert store.missing() == []
    store.close()


def test_a_removed_session_is_not_missed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.append(start())
    with store.writing() as writer:
        writer.remove_session("sess_a", 1)
    assert store.missing() == []
    store.append(start("sess_b"))
    store.close()
    assert lost(tmp_path) == []


def test_a_new_store_in_the_place_of_another_misses_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.append(start())
    store.close()
    (tmp_path / "interlock.db").unlink()
    store = open_store(tmp_path)
    store.append(start("sess_b"))
    assert store.missing() == []
    store.close()


def test_a_damaged_line_is_no_witness(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "heads", 7)
    witness.note([Head("sess_a", 1, b"a" * 32), Head("sess_b", 2, b"b" * 32)])
    content = witness.path.read_bytes()
    witness.path.write_bytes(content.replace(b"sess_b 2", b"sess_b 3") + b"half a li")
    assert list(witness.heads()) == ["sess_a"]
    assert Witness(tmp_path / "heads", 8).heads() == {}
    witness.close()


def test_a_long_witness_keeps_the_newest_head_of_each_session(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "heads", 7)
    for number in range(LARGEST // 80):
        witness.note([Head("sess_a", number, b"a" * 32)])
    assert witness.path.stat().st_size > LARGEST
    witness.shorten()
    assert len(witness.path.read_bytes().splitlines()) == 1
    assert witness.newest() == Head("sess_a", LARGEST // 80 - 1, b"a" * 32)
    witness.close()
