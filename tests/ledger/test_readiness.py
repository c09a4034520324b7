"""Whether a process can serve calls now, for a balancer to ask; and what it says when it cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from interlock.ledger.ledger import Ledger
from interlock.ledger.tokens.keyring import Keys
from interlock.ledger.tokens.tokens import Pointer, TokenError, mint, read
from interlock.store.protocol import StoreAway, StoreBusy
from interlock.store.sqlite.lock import FileLock
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.harness import Bench
from support.postgres_server import PostgresServer
from support.store_rows import start

NOBODY = 65_534


def test_a_store_that_works_is_ready(bench: Bench) -> None:
    ledger = bench.ledger()
    assert ledger.readiness() is None
    ledger.close()


def test_a_store_that_another_process_holds_is_not_ready_for_now(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.store.sqlite.store.PROBE_PATIENCE", 0.01)
    ledger, lock = bench.ledger(), FileLock(bench.folder / "interlock.lock")
    with lock:
        error = ledger.readiness()
    assert error is not None
    assert (error.code, error.after_ms) == ("TOKEN_SESSION_LOCKED", 1000)
    assert ledger.readiness() is None
    lock.close()
    ledger.close()


def test_a_store_whose_file_is_gone_is_not_ready(bench: Bench) -> None:
    ledger = bench.ledger()
    (bench.folder / "interlock.db").rename(bench.folder / "away.db")
    error = ledger.readiness()
    assert error is not None
    assert error.code == "STORE_UNAVAILABLE"
    ledger.close()


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Go on as a user who may not write everything, as root may; the folder is that user's."""
    if os.geteuid() != 0:
        yield
        return
    folder.parent.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name != "posix", reason="checks POSIX file permissions")
@pytest.mark.parametrize("name", ["interlock.db", ""])
def test_a_store_that_cannot_be_written_is_not_ready(name: str) -> None:
    with TemporaryDirectory() as top:
        bench = Bench(Path(top) / "data")
        ledger, path = bench.ledger(), bench.folder / name
        assert ledger.readiness() is None
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222)
        with as_nobody(bench.folder):
            error = ledger.readiness()
        path.chmod(mode)
        assert error is not None
        assert (error.code, error.message) == ("STORE_UNAVAILABLE", f"{path} is read-only")
        ledger.close()


def test_keys_that_cannot_be_read_are_told(bench: Bench) -> None:
    ledger = bench.ledger()
    ledger.keys.keyring()
    ledger.keys.path.write_text("{")
    error = ledger.readiness()
    assert error is not None
    assert error.code == "STORE_UNAVAILABLE"
    ledger.close()


def test_a_file_that_another_program_has_locked_is_waited_for_a_bounded_time(tmp_path: Path) -> None:
    store, other = open_store(tmp_path), apsw.Connection(str(tmp_path / "interlock.db"))
    other.execute("BEGIN EXCLUSIVE")
    store._connection.set_busy_timeout(20)
    with pytest.raises(StoreBusy, match="in use by another program"):
        store.append(start())
    other.execute("ROLLBACK")
    store.append(start())
    other.close()
    store.close()


def test_postgresql_is_ready_while_it_answers_and_calls_do_not_pile_up_while_it_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.require_postgres()
    from interlock.store.postgres import connections
    from interlock.store.postgres.database import open_store as open_postgres

    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "AWAY_SECONDS", 3600)
    server = PostgresServer()
    try:
        server.start()
        bench = Bench(tmp_path)
        store = open_postgres(server.url)
        ours = bench.ledger()
        ledger = Ledger(store, ours.keys, ours.library, ours.settings, bench.clock)
        ours.close()
        assert ledger.readiness() is None
        server.stop("immediate")
        error = ledger.readiness()
        assert error is not None
        assert error.code == "STORE_UNAVAILABLE"
        assert error.after_ms is not None
        with pytest.raises(StoreAway, match="gave no connection"):
            store.load("sess_a")
        with pytest.raises(StoreAway, match="cannot be reached"):
            store.load("sess_a")  # at once: the database was just found to be away
        store._connections._away_until = 0
        server.start()
        assert ledger.readiness() is None
        store.close()
    finally:
        server.remove()


# Keys that replicas share.


def test_replicas_rotate_their_keys_one_by_one_and_believe_each_other_throughout(tmp_path: Path) -> None:
    """Each replica has a file of its own; the new key is believed everywhere before it signs anywhere."""
    made = Keys(tmp_path / "made")
    files = [tmp_path / f"replica{number}.json" for number in range(2)]
    rings = [made.keyring(), made.prepare(), made.activate(), made.retire()]

    def put(number: int, stage: int) -> None:
        import msgspec

        draft = files[number].with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(rings[stage]))
        draft.replace(files[number])

    def believe_each_other() -> None:
        keyrings = [keys.keyring() for keys in replicas]
        for signer in keyrings:
            token = mint(signer.current, Pointer("st", b"0123456789", 1))
            assert not any(isinstance(read(other, token, ("st",)), TokenError) for other in keyrings)

    for number in range(2):
        put(number, 0)
    replicas = [Keys(tmp_path, {"INTERLOCK_KEYRING_FILE": str(file)}) for file in files]
    believe_each_other()
    for stage in (1, 2, 3):
        for number in range(2):
            put(number, stage)
            believe_each_other()
