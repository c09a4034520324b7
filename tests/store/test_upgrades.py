"""Stored databases of earlier versions: each is opened, checked, repaired and continued."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.cli.config import Config
from interlock.cli.doctor_checks import Check, run_checks
from interlock.store.postgres.database import database_status
from interlock.store.postgres.database import open_store as open_postgres
from interlock.store.postgres.tables import MIGRATIONS as POSTGRES
from interlock.store.protocol import SessionFilter, Store
from interlock.store.sqlite.schema import MIGRATIONS as SQLITE
from interlock.store.sqlite.store import open_store
from support.harness import Agent, Bench
from support.postgres_server import require_postgres, shared_server
from support.stored_databases import FOLDER, SCHEMA, restored_postgres, restored_sqlite

FILES = sorted(FOLDER.glob("*.sql"))
FIRST = 5
DAMAGE = ("UPDATE runs SET status = 'complete'", "DELETE FROM nodes WHERE node = 1")


class Restored:
    """A stored database where this version finds it, and a folder without any workflow in it."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.url = None
        opens: Callable[[Path], Store] = open_store
        if file.name.startswith("postgres"):
            require_postgres()
            self.url = url = restored_postgres(file.read_text())
            opens = lambda _: open_postgres(url)  # noqa: E731
        else:
            restored_sqlite(file.read_text(), folder / "data")
        self.bench = Bench(folder / "data", opens)
        self.config = Config(data_dir=str(self.bench.folder), store=self.url)

    def doctor(self, *, repairs: bool = False) -> list[Check]:
        return [check for check in run_checks(self.config, repairs=repairs) if not check.ok]

    def change(self, statement: str) -> None:
        if self.url is not None:
            shared_server().execute(f"SET search_path = {SCHEMA}; {statement}")
            return
        store = open_store(self.bench.folder)
        with store.writing():
            store._connection.execute(statement)
        store.close()


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def restored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Restored]:
    restored = Restored(request.param, tmp_path)
    yield restored
    restored.bench.close()


@pytest.mark.parametrize(("engine", "migrations"), [("sqlite", SQLITE), ("postgres", POSTGRES)])
def test_a_database_of_every_version_is_stored(engine: str, migrations: tuple[str, ...]) -> None:
    found = {int(match[1]) for file in FILES if (match := re.fullmatch(rf"{engine}-v(\d+)", file.stem))}
    assert found == set(range(FIRST, len(migrations) + 1)), "see support/stored_databases.py"


def test_an_upgraded_database_is_whole(restored: Restored) -> None:
    restored.bench.agent()
    assert restored.doctor() == []
    if restored.url is not None:
        assert database_status(restored.url).schema_version == len(POSTGRES)
    else:
        assert open_store(restored.bench.folder).schema_version == len(SQLITE)


def test_an_upgraded_database_is_repaired(restored: Restored) -> None:
    restored.bench.ledger()
    for statement in DAMAGE:
        restored.change(statement)
    assert restored.doctor()
    assert restored.doctor(repairs=True) == []
    assert restored.doctor() == []


def test_runs_go_on_in_an_upgraded_database(restored: Restored) -> None:
    agent: Agent = restored.bench.agent()
    found = agent.call("resume_session", query="Upgrade the store")
    began = agent.look(found["candidates"][0])
    assert began["pending"]["stepId"] == "sure"
    agent.decide("yes")
    agent.ack("Done.")
    assert agent.last["isComplete"]
    with agent.ledger.store.reading() as reader:
        assert len(reader.sessions(SessionFilter())) == 3
    assert restored.doctor() == []
