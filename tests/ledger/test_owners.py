"""Rule 46: what belongs to one owner is not there for another, whichever way it is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

import interlock
from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.ledger.decisions.modes import set_global_mode, set_session_mode
from interlock.ledger.decisions.user_pin import has_pin, set_pin
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import GENESIS, follows, kind_of
from interlock.ledger.queries.search import find, is_reference
from interlock.ledger.queries.status import find_session
from interlock.ledger.retention import collect
from interlock.ledger.tokens.inspect import disclose
from interlock.ledger.transfer.export_import import export_session, import_bundle
from interlock.store.protocol import SessionRow
from interlock.surfaces.execution.surface import ExecutionSurface
from support.harness import Agent, Bench, gate, steps, workflow
from support.log import logged_events


@pytest.fixture
def mine(tmp_path: Path) -> Agent:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps("one", "two")))
    agent = bench.agent()
    agent.start("test.flow", goal="a needle")
    return agent


def theirs(mine: Agent) -> Ledger:
    return mine.ledger.of("somebody")


def test_a_token_of_another_owner_leads_nowhere(mine: Agent) -> None:
    other = Agent(ExecutionSurface(theirs(mine)))
    tokens = {"stateToken": mine.last["stateToken"], "ackToken": mine.last["ackToken"]}
    for arguments in ({"stateToken": tokens["stateToken"]}, tokens):
        answer = other.call("continue_workflow", **arguments)
        assert answer["code"] == "TOKEN_UNKNOWN_NODE"
    checkpoint = mine.last["checkpointToken"]
    answer = other.call(
        "checkpoint_workflow",
        checkpointToken=checkpoint,
        stateToken=tokens["stateToken"],
        output={"notesMarkdown": "x"},
    )
    assert answer["code"] == "TOKEN_UNKNOWN_NODE"
    with pytest.raises(LedgerError) as disclosed:
        disclose(theirs(mine), tokens["stateToken"])
    assert disclosed.value.code == "TOKEN_UNKNOWN_NODE"


def test_no_question_of_another_owner_finds_it(mine: Agent) -> None:
    own, other = mine.ledger, theirs(mine)
    found = find(own, "needle").candidates
    assert len(found) == 1
    session_id, run_id = found[0].session.session_id, found[0].run.run_id
    assert find(other, "needle").candidates == ()
    assert inbox(other) == ()
    for reference in (session_id, run_id, session_id.removeprefix("sess_")[:8]):
        assert find_session(own, reference).session_id == session_id
        with pytest.raises(LedgerError) as answer:
            find_session(other, reference)
        assert answer.value.message == f"There is no session {reference}."
        assert not is_reference(other, reference)
    with pytest.raises(LedgerError):
        other.position(session_id)
    with pytest.raises(LedgerError):
        set_session_mode(other, session_id, PRESETS["never-stop"], "cli")
    collect(own.store, 2**60, 5)
    with pytest.raises(LedgerError, match=f"Session {session_id} was removed."):
        find_session(own, session_id)
    with pytest.raises(LedgerError, match=f"There is no session {session_id}."):
        find_session(other, session_id)


def test_settings_are_the_owner_s(mine: Agent) -> None:
    own, other = mine.ledger, theirs(mine)
    set_global_mode(other, PRESETS["never-stop"])
    set_pin(other.store, other.owner, "1234")
    assert own.preferences() == PRESETS["guided"]
    assert other.preferences() == PRESETS["never-stop"]
    assert not has_pin(own.store, own.owner)


def test_only_the_bound_look_up_loads_by_a_handle() -> None:
    rooms = Path(interlock.__file__).parent
    unbound = re.compile(r"store\.load\(")
    calling = [path.name for path in sorted(rooms.glob("ledger/**/*.py")) if unbound.search(path.read_text())]
    calling += [path.name for path in rooms.glob("surfaces/**/*.py") if unbound.search(path.read_text())]
    assert calling == ["positions.py"]


def test_every_event_names_the_principal_of_its_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps("one"), gate("which", "left", "right"), *steps("two")))
    ada = Agent(ExecutionSurface(bench.ledger(owner="ada")))
    ada.start("test.flow")
    session_id: str = ada.last["session"]["sessionId"]
    ada.ack("done")
    ada.ack("without a decision")
    ledger = ada.ledger
    set_session_mode(ledger, session_id, PRESETS["stop"], "cli")
    (question,) = inbox(ledger)
    assert answer_question(ledger.of("ada", "eve"), question, "left")
    ada.ack(at=ada.look())
    events = logged_events(ledger.store, session_id)
    assert {event.principal for event in events} == {"ada", "eve"}
    assert [kind_of(event.event) for event in events if event.principal == "eve"] == ["decision_recorded"]
    (resolved,) = logged_events(ledger.store, session_id, "gate_resolved")
    assert resolved.event.client == "eve"  # type: ignore[union-attr]

    session = find_session(ledger, session_id)
    assert isinstance(session, SessionRow)
    bundle = export_session(ledger.store, session, ledger.pins, ledger.clock())
    imported = import_bundle(ledger.of("bob"), bundle)
    travelled = logged_events(ledger.store, imported.session_id)
    before, added = travelled[: len(events)], travelled[len(events) :]
    assert [event.principal for event in before] == [event.principal for event in events]
    assert {event.principal for event in added} == {"bob"}
    ledger.store.close()


def test_a_forged_principal_breaks_the_chain(mine: Agent) -> None:
    ledger, session_id = mine.ledger, mine.last["session"]["sessionId"]
    with ledger.store.reading() as reader:
        (row,) = reader.commits(session_id)
    forged = replace(row, body=row.body.replace(b'["local"', b'["other"', 1))
    assert forged != row
    assert follows(GENESIS, row)
    assert not follows(GENESIS, forged)
