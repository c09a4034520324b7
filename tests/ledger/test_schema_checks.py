"""What `doctor` says about tables that are not defined as this version defines them, and repairs of them."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from interlock.cli.config import Config
from interlock.cli.doctor_checks import Check, run_checks
from support.harness import Bench, steps, workflow


@pytest.fixture
def walked(bench: Bench) -> Bench:
    """A store with one session of three commits; it may be damaged, so it is not judged at the end."""
    bench.judges = False
    bench.write(workflow(*steps("first", "second", "third")))
    agent = bench.agent()
    agent.start("test.flow")
    agent.ack("one")
    agent.ack("two")
    bench.pause()
    return bench


def change(bench: Bench, *statements: str) -> None:
    connection = apsw.Connection(str(bench.folder / "interlock.db"))
    for statement in statements:
        connection.execute(statement)
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()


def doctor(bench: Bench, *, repairs: bool = False) -> dict[str, Check]:
    config = Config(data_dir=str(bench.folder), workflows=(str(bench.workflows),))
    return {check.name: check for check in run_checks(config, repairs=repairs)}


def rows(bench: Bench, table: str) -> int:
    connection = apsw.Connection(str(bench.folder / "interlock.db"))
    found = connection.execute(f"SELECT count(*) FROM {table}").get
    connection.close()
    return int(str(found))


def test_statistics_of_the_query_planner_are_not_damage(walked: Bench) -> None:
    change(walked, "ANALYZE")
    assert rows(walked, "sqlite_stat1")
    assert all(check.ok for check in doctor(walked).values())
    assert not list(walked.folder.glob("*.damaged-*"))


def test_a_missing_trigger_is_reported_and_defined_again(walked: Bench) -> None:
    change(walked, "DROP TRIGGER commits_stay")
    found = doctor(walked)["triggers"]
    assert not found.ok
    assert "commits_stay" in found.detail
    assert found.fix == "interlock doctor --repair"
    assert doctor(walked, repairs=True)["triggers"].ok
    assert "triggers" not in doctor(walked)
    with pytest.raises(apsw.ConstraintError):
        change(walked, "UPDATE commits SET recorded_at = 0")


def test_a_trigger_that_does_something_else_is_reported_too(walked: Bench) -> None:
    change(
        walked,
        "DROP TRIGGER commits_stay",
        "CREATE TRIGGER commits_stay BEFORE UPDATE ON commits BEGIN SELECT 1; END",
    )
    assert not doctor(walked)["triggers"].ok


def test_a_store_whose_tables_begin_on_other_pages_keeps_every_row(walked: Bench) -> None:
    """An index of another version makes the definitions differ; the tables are where they are."""
    before = rows(walked, "commits")
    change(
        walked,
        "DROP INDEX sessions_kept",
        "CREATE TABLE moved AS SELECT * FROM commits",
        "DROP TABLE commits",
        "ALTER TABLE moved RENAME TO commits",
    )
    repaired = doctor(walked, repairs=True)
    assert repaired["recovery"].ok
    assert rows(walked, "commits") == before
    assert all(check.ok for check in doctor(walked).values())
    agent = walked.agent()
    agent.look(agent.call("resume_session", query="flow")["candidates"][0])
    assert agent.ack("three")["isComplete"]


def test_a_repair_refuses_to_keep_fewer_rows_than_can_be_read(walked: Bench) -> None:
    columns = "session_id, first, last, recorded_at AS written_at, digest, body, key"
    change(
        walked,
        f"CREATE TABLE moved AS SELECT {columns} FROM commits",
        "DROP TABLE commits",
        "ALTER TABLE moved RENAME TO commits",
        "VACUUM",
    )
    path: Path = walked.folder / "interlock.db"
    before = path.read_bytes()
    found = doctor(walked, repairs=True)
    assert not found["recovery"].ok
    assert "'commits'" in found["recovery"].detail
    assert "Nothing was changed" in found["recovery"].detail
    assert path.read_bytes() == before
    assert not [*walked.folder.glob("*.damaged-*"), *walked.folder.glob("*.salvaged*")]
