"""Damage that a repair undoes without losing an event: one changed bit in a command, lost pinned texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from interlock.cli.doctor_checks import renders
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import GENESIS
from interlock.ledger.log.mending import mended
from interlock.ledger.log.repair import Repaired, inspect, repair
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.store.protocol import CommitRow
from support.harness import Agent, steps, workflow
from support.restores import COPIES, Copies, PostgresCopies
from support.session_agents import session, session_id_of, write_flow

FLOW = workflow(*steps("first", "second", "third", "fourth"))


@pytest.fixture(params=COPIES)
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Copies]:
    copies: Copies = COPIES[request.param](tmp_path)
    copies.bench.write(FLOW)
    yield copies
    copies.bench.close()


@pytest.fixture
def agent(copies: Copies) -> Agent:
    agent = copies.bench.agent()
    agent.start("test.flow")
    for notes in ("one", "two", "three"):
        agent.ack(notes)
    return agent


def commits_of(ledger: Ledger, session_id: str) -> list[CommitRow]:
    with ledger.store.reading() as reader:
        return list(reader.commits(session_id))


def literal(copies: Copies, body: bytes) -> str:
    return f"'\\x{body.hex()}'::bytea" if isinstance(copies, PostgresCopies) else f"x'{body.hex()}'"


def flipped(body: bytes, *bits: int) -> bytes:
    changed = bytearray(body)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def put_body(copies: Copies, row: CommitRow, body: bytes) -> None:
    copies.change(
        f"UPDATE commits SET body = {literal(copies, body)}"
        f" WHERE session_id = '{row.session_id}' AND last = {row.last}"
    )


def repaired(ledger: Ledger, session_id: str) -> Repaired:
    assert inspect(ledger.store, session_id, Pins()) is not None
    done = repair(
        ledger.store, session_id, Pins(), ledger.library, renders(), owner="local", now=ledger.clock()
    )
    assert isinstance(done, Repaired), done
    return done


@pytest.mark.parametrize("number", [0, 1, 3])
def test_one_changed_bit_in_a_command_costs_no_event(copies: Copies, agent: Agent, number: int) -> None:
    session_id, ledger = agent.last["session"]["sessionId"], agent.ledger
    before = commits_of(ledger, session_id)
    row = before[number]
    put_body(copies, row, flipped(row.body, Random(number).randrange(8 * len(row.body))))
    done = repaired(ledger, session_id)
    assert done.removed == ()
    assert done.recovered == len(before) - number
    assert commits_of(ledger, session_id) == before
    assert inspect(ledger.store, session_id, Pins()) is None
    assert agent.ack("four")["isComplete"]


def test_of_two_damaged_commands_the_second_is_mended_too(copies: Copies, agent: Agent) -> None:
    session_id, ledger = agent.last["session"]["sessionId"], agent.ledger
    before = commits_of(ledger, session_id)
    for row in before[1:3]:
        put_body(copies, row, flipped(row.body, 77))
    assert repaired(ledger, session_id).removed == ()
    assert commits_of(ledger, session_id) == before


def test_where_more_is_damaged_what_comes_after_is_named_and_kept(copies: Copies, agent: Agent) -> None:
    session_id, ledger = agent.last["session"]["sessionId"], agent.ledger
    before = commits_of(ledger, session_id)
    put_body(copies, before[2], flipped(before[2].body, 5, 70))
    done = repaired(ledger, session_id)
    assert [name.split()[0] for name in done.removed] == [
        str(index) for index in range(before[2].first, before[3].last + 1)
    ]
    assert commits_of(ledger, session_id)[:2] == before[:2]
    with ledger.store.reading() as reader:
        assert reader.content(done.kept_as) is not None


def test_a_changed_time_is_found_as_well(agent: Agent) -> None:
    first, second, *_ = commits_of(agent.ledger, agent.last["session"]["sessionId"])
    wrong = CommitRow(
        second.session_id,
        second.first,
        second.last,
        second.recorded_at ^ 1 << 20,
        second.digest,
        second.body,
        second.key,
    )
    assert mended(wrong, first.digest) == second
    assert mended(wrong, GENESIS) is None


def test_a_damaged_text_of_a_pinned_workflow_is_told_and_taken_from_its_source(copies: Copies) -> None:
    write_flow(copies.bench)
    lead = session(copies.bench)
    lead.call("start_session", agent_id="lead", workflow_id="flow")
    lead.go("gather")
    session_id, ledger = session_id_of(lead), lead.ledger
    guide = lead.tell("get_resource", resource_id="00").text
    assert "Read me." in guide
    with ledger.store.reading() as reader:
        digests = reader.content_digests("", 100)
    body = literal(copies, b"# Guide of somebody else")
    deflated = "" if isinstance(copies, PostgresCopies) else "deflated = 0, "
    for digest in digests:
        copies.change(f"UPDATE contents SET {deflated}body = {body} WHERE digest = '{digest}'")
    refused = lead.tell("get_resource", resource_id="00")
    assert refused.error
    assert refused.code == "TOKEN_WORKFLOW_HASH_MISMATCH"
    repaired(ledger, session_id)
    assert inspect(ledger.store, session_id, Pins()) is None
    assert "Read me." in lead.tell("get_resource", resource_id="00", full=True).text
