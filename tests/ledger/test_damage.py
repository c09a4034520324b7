"""Damage (rule 44): detected when it is read, named, and never answered from."""

from __future__ import annotations

import pytest

from interlock.ledger.log.health import ChainReport, examine
from interlock.ledger.log.repair import inspect
from interlock.ledger.queries.indexing import catch_up
from interlock.store.sqlite.store import PAGE_SIZE
from support.harness import Agent, Bench, steps, workflow


@pytest.fixture
def agent(bench: Bench) -> Agent:
    bench.write(workflow(*steps("first", "second", "third")))
    agent = bench.agent()
    agent.start("test.flow")
    return agent


def alter(agent: Agent, sql: str) -> None:
    connection = agent.ledger.store._connection  # type: ignore[attr-defined]
    connection.execute("DROP TRIGGER IF EXISTS commits_stay")
    connection.execute(sql)
    assert connection.changes() > 0


def report_of(agent: Agent, session_id: str) -> ChainReport:
    with agent.ledger.store.reading() as reader:
        session = reader.session(session_id)
    assert session is not None
    return examine(agent.ledger.store, session)


def test_a_changed_node_state_refuses_progress(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "UPDATE nodes SET state = (SELECT state FROM nodes WHERE node = 0) WHERE node = 1")
    refused = agent.ack(at=here)
    assert refused["code"] == "SESSION_NOT_HEALTHY"
    assert "doctor --repair" in refused["details"]["suggestion"]


def test_a_changed_recorded_response_is_not_replayed(agent: Agent) -> None:
    started = dict(agent.last)
    agent.ack("noted", at=started)
    alter(agent, "UPDATE nodes SET response = x'7b7d' WHERE node = 1")
    assert agent.ack("noted", at=started)["code"] == "SESSION_NOT_HEALTHY"


def test_a_lost_tail_of_the_log_refuses_progress(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "DELETE FROM commits WHERE last = (SELECT max(last) FROM commits)")
    assert agent.ack(at=here)["code"] == "SESSION_NOT_HEALTHY"
    assert agent.look(here)["code"] == "SESSION_NOT_HEALTHY"


def test_a_changed_event_is_found_by_the_chain(agent: Agent) -> None:
    here = agent.ack("noted")
    session_id = here["session"]["sessionId"]
    alter(agent, "UPDATE commits SET body = CAST(replace(body, 'noted', 'NOTED') AS BLOB) WHERE first > 0")
    report = report_of(agent, session_id)
    assert report.health == "corrupt_tail"
    assert report.valid == 1
    assert 0 < report.events < report.total
    assert "digest_mismatch" in report.reason


def test_a_changed_time_is_found_by_the_chain(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "UPDATE commits SET recorded_at = recorded_at + 1 WHERE first = 0")
    report = report_of(agent, here["session"]["sessionId"])
    assert report.health == "corrupt_head"
    assert "digest_mismatch at event 0" in report.reason


def test_a_changed_time_of_the_last_command_refuses_progress(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "UPDATE commits SET recorded_at = recorded_at + 1 WHERE first > 0")
    assert agent.ack(at=here)["code"] == "SESSION_NOT_HEALTHY"


def test_a_changed_number_of_events_is_found_by_the_chain(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "UPDATE commits SET last = last + 1 WHERE first > 0")
    alter(agent, "UPDATE sessions SET head_index = head_index + 1")
    report = report_of(agent, here["session"]["sessionId"])
    assert report.health == "corrupt_tail"
    assert "non_contiguous_indices" in report.reason


def test_other_sessions_go_on(agent: Agent) -> None:
    broken = agent.ack("noted")
    healthy = agent.start("test.flow")
    alter(agent, f"UPDATE nodes SET state = 'x' WHERE session_id = '{broken['session']['sessionId']}'")
    assert agent.ack(at=broken)["code"] == "SESSION_NOT_HEALTHY"
    assert agent.ack(at=healthy)["pending"]["stepId"] == "second"


def test_a_damaged_page_is_never_answered_from(agent: Agent, bench: Bench) -> None:
    here = agent.ack("noted")
    agent.ledger.store.close()
    bench.judges = False
    file = bench.folder / "interlock.db"
    content = bytearray(file.read_bytes())
    for target in range(PAGE_SIZE, len(content), 97):
        content[target] ^= 0xFF
    file.write_bytes(content)
    from interlock.store.protocol import StoreCorrupt

    try:
        answer = bench.agent().ack(at=here)
    except StoreCorrupt:
        return
    assert answer["code"] in ("STORE_CORRUPT", "SESSION_NOT_HEALTHY", "TOKEN_WORKFLOW_HASH_MISMATCH")


@pytest.mark.parametrize("outputs", ["x'5b'", "'text'", "7", "x'ff'"])
def test_damaged_outputs_are_told_with_what_helps(agent: Agent, outputs: str) -> None:
    agent.ack("noted")
    here = agent.ack("more")
    alter(agent, f"UPDATE nodes SET outputs = {outputs} WHERE node = 1")
    shown = agent.look(here)
    assert shown["code"] == "STORE_CORRUPT"
    assert "outputs at node 1" in shown["message"]
    assert "doctor --repair" in shown["details"]["suggestion"]


def test_a_changed_key_of_a_command_is_found_by_the_chain(agent: Agent) -> None:
    here = agent.ack("noted")
    alter(agent, "UPDATE commits SET key = 'decision:0:x' WHERE first > 0")
    assert "digest_mismatch" in report_of(agent, here["session"]["sessionId"]).reason
    assert agent.ack(at=here)["code"] == "SESSION_NOT_HEALTHY"


@pytest.mark.parametrize("column", ["state", "outputs"])
def test_a_row_that_cannot_be_read_is_found_in_a_session_that_is_indexed(agent: Agent, column: str) -> None:
    session_id = agent.ack("noted")["session"]["sessionId"]
    catch_up(agent.ledger.store, agent.ledger.pins)
    alter(agent, f"UPDATE nodes SET {column} = x'7b' WHERE node = 1")
    finding = inspect(agent.ledger.store, session_id, agent.ledger.pins)
    assert finding is not None
    assert finding.rows == ("node 1",)


def test_a_changed_owner_is_found(agent: Agent) -> None:
    session_id = agent.ack("noted")["session"]["sessionId"]
    alter(agent, "UPDATE sessions SET owner = 'mocal'")
    finding = inspect(agent.ledger.store, session_id, agent.ledger.pins)
    assert finding is not None
    assert finding.rows == ("session row",)
