"""Older code beside a database that a newer version has migrated: it writes nothing, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.store.postgres.tables import MIGRATIONS as POSTGRES
from interlock.store.protocol import SettingRow, StoreTooNew, TraceRow
from interlock.store.sqlite.schema import MIGRATIONS as SQLITE
from support.harness import Agent, steps, workflow
from support.restores import COPIES, Copies, PostgresCopies

CODE = "STORE_UNAVAILABLE"


@pytest.fixture(params=COPIES)
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Copies]:
    copies: Copies = COPIES[request.param](tmp_path)
    copies.bench.write(workflow(*steps("first", "second", "third")))
    yield copies
    _set_version(copies, newer=False)
    copies.bench.close()


def _set_version(copies: Copies, *, newer: bool) -> None:
    if isinstance(copies, PostgresCopies):
        ahead = len(POSTGRES) + 1
        insert = f"INSERT INTO interlock_schema VALUES ({ahead}) ON CONFLICT DO NOTHING"
        copies.change(insert if newer else f"DELETE FROM interlock_schema WHERE version = {ahead}")
    else:
        copies.change(f"PRAGMA user_version = {len(SQLITE) + newer}")


def test_a_live_server_stops_writing_when_a_newer_version_migrates_its_database(copies: Copies) -> None:
    agent: Agent = copies.bench.agent()
    began = agent.start("test.flow")
    agent.ack("one")
    _set_version(copies, newer=True)
    refused = agent.ack("two")
    assert refused["code"] == CODE
    assert "update Interlock" in refused["message"]
    assert agent.start("test.flow")["code"] == CODE
    noted = agent.call(
        "checkpoint_workflow",
        stateToken=began["stateToken"],
        checkpointToken=began["checkpointToken"],
        output={"notesMarkdown": "x"},
    )
    assert noted["code"] == CODE
    _set_version(copies, newer=False)
    assert agent.look(began)["session"]["sessionId"] == began["session"]["sessionId"]
    again = copies.bench.agent()
    recorded = again.ack("one", at=began)
    assert again.ack("two", at=recorded)["pending"]["stepId"] == "third"


def test_nothing_else_is_written_either(copies: Copies) -> None:
    agent: Agent = copies.bench.agent()
    session_id = agent.start("test.flow")["session"]["sessionId"]
    store = agent.ledger.store
    _set_version(copies, newer=True)
    with pytest.raises(StoreTooNew), store.writing() as writer:
        writer.set_setting(SettingRow("local", "name", "value"))
    with suppress(StoreTooNew):  # PostgreSQL stores nothing and says nothing
        store.trace([TraceRow(session_id, 0, 1, b"{}")])
    with store.reading() as reader:
        assert reader.setting("local", "name") is None
        assert reader.traces(session_id, 0, 100, 100) == []
    with pytest.raises(StoreTooNew):
        copies.bench.opens(copies.bench.folder)
