"""Rule 46: what belongs to one owner is not there for another, whichever way it is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import interlock
from interlock.core.run.preferences import PRESETS
from interlock.ledger.decisions.inbox import inbox
from interlock.ledger.decisions.modes import set_global_mode, set_session_mode
from interlock.ledger.decisions.user_pin import has_pin, set_pin
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find, is_reference
from interlock.ledger.queries.status import find_session
from interlock.ledger.retention import collect
from interlock.ledger.tokens.inspect import disclose
from interlock.surfaces.execution.surface import ExecutionSurface
from support.harness import Agent, Bench, steps, workflow


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
    disclosed = disclose(theirs(mine), tokens["stateToken"])
    assert isinstance(disclosed, LedgerError)
    assert disclosed.code == "TOKEN_UNKNOWN_NODE"


def test_no_question_of_another_owner_finds_it(mine: Agent) -> None:
    own, other = mine.ledger, theirs(mine)
    found = find(own, "needle")
    assert len(found) == 1
    session_id, run_id = found[0].session.session_id, found[0].run.run_id
    assert find(other, "needle") == ()
    assert inbox(other) == ()
    for reference in (session_id, run_id, session_id.removeprefix("sess_")[:8]):
        assert not isinstance(find_session(own, reference), LedgerError)
        answer = find_session(other, reference)
        assert isinstance(answer, LedgerError)
        assert answer.message == f"There is no session {reference}."
        assert not is_reference(other, reference)
    assert isinstance(other.position(session_id), LedgerError)
    assert isinstance(set_session_mode(other, session_id, PRESETS["never-stop"]), LedgerError)
    collect(own.store, 2**60, 5)
    told = [find_session(ledger, session_id) for ledger in (own, other)]
    assert [answer.message for answer in told if isinstance(answer, LedgerError)] == [
        f"Session {session_id} was removed.",
        f"There is no session {session_id}.",
    ]


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
