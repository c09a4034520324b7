"""An operator's commands on the machine that has the store: they reach the sessions of every principal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from interlock.cli.compose import ledger_of
from interlock.cli.config import Config
from interlock.ledger.decisions.user_pin import set_pin
from interlock.surfaces.execution.surface import ExecutionSurface
from support.cli_process import Ran, Terminal, interlock
from support.harness import Agent, gate, steps, workflow
from support.postgres_server import require_postgres, shared_server

pytestmark = pytest.mark.slow

Run = Callable[..., Ran]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite://{tmp_path}/data/interlock.db"
        return
    require_postgres()
    schema = f"owners_{uuid4().hex[:8]}"
    yield shared_server().in_schema(schema)
    shared_server().execute(f'DROP SCHEMA "{schema}" CASCADE')


@pytest.fixture
def sessions(tmp_path: Path, store: str) -> dict[str, str]:
    """A session of the local user and one of each principal, all at a gate."""
    file = tmp_path / "flow.json"
    file.write_text(json.dumps(workflow(*steps("one"), gate("which", "left", "right"))))
    config = Config(data_dir=str(tmp_path / "data"), store=store, workflows=(str(file),), decisions="user")
    ledger, started = ledger_of(config), {}
    for owner in ("local", "ada", "eve"):
        agent = Agent(ExecutionSurface(ledger.of(owner)))
        agent.start("test.flow", goal=f"The work of {owner}")
        agent.ack("done")
        started[owner] = agent.last["session"]["sessionId"]
    set_pin(ledger.store, "local", "4711")
    ledger.store.close()
    return started


@pytest.fixture
def run(tmp_path: Path, store: str, sessions: dict[str, str]) -> Run:
    def run(*arguments: str) -> Ran:
        return interlock(tmp_path / "data", *arguments, INTERLOCK_STORE=store)

    return run


def test_everybodys_sessions_are_listed_with_their_owners(run: Run, sessions: dict[str, str]) -> None:
    own = run("sessions", "--json").json["sessions"]
    assert [line["sessionId"] for line in own] == [sessions["local"]]
    adas = run("sessions", "--owner", "ada", "--awaiting", "--json").json["sessions"]
    assert [line["sessionId"] for line in adas] == [sessions["ada"]]
    everybodys = run("sessions", "--owner", "all", "--json").json["sessions"]
    assert {line["owner"]: line["sessionId"] for line in everybodys} == sessions
    shown = run("sessions", "--owner", "all").out
    assert [line.split()[1] for line in shown.splitlines()] == ["eve", "ada", "local"]


@pytest.mark.parametrize("command", ["log", "status", "tree", "notes", "export"])
def test_a_session_of_a_principal_can_be_read(run: Run, sessions: dict[str, str], command: str) -> None:
    session = sessions["ada"]
    answers = [run(command, session, "--owner", owner) for owner in ("ada", "all")]
    assert all(answer.code in (0, 4) for answer in answers), answers[0].err
    assert answers[0].out == answers[1].out or command == "export"
    for wrong in (["--owner", "eve"], []):
        refused = run(command, session, *wrong)
        assert refused.code == 3
        assert refused.err == f"interlock: Session {session} belongs to ada. Add --owner ada.\n"


def test_the_inbox_of_everybody_says_whose_question_it_is(run: Run, sessions: dict[str, str]) -> None:
    assert [each["owner"] for each in run("inbox", "--json").json["questions"]] == ["local"]
    asked = run("inbox", "--owner", "all", "--json").json["questions"]
    assert {each["owner"]: each["sessionId"] for each in asked} == sessions
    assert "of ada" in run("inbox", "--owner", "all").out
    assert "--owner ada" in run("inbox", "--owner", "ada").err


def test_an_operator_decides_for_a_principal_with_the_operators_pin(
    tmp_path: Path, store: str, run: Run, sessions: dict[str, str]
) -> None:
    session = sessions["ada"]
    for pin, code in (("0000", 1), ("4711", 0)):
        decide = ("decide", session, "left", "--owner", "ada")
        terminal = Terminal(tmp_path / "data", *decide, INTERLOCK_STORE=store)
        for words, typed in (("[Y/n]", "y"), ("PIN", pin)):
            terminal.until(words)
            terminal.type(f"{typed}\n")
        ended, text = terminal.end()
        assert ended == code, text
    (decided,) = run("log", session, "--owner", "ada", "--kind", "decision_recorded", "--json").json["events"]
    assert decided["principal"] == "local"


def test_gc_removes_what_it_lists_and_says_whose(run: Run, sessions: dict[str, str]) -> None:
    every = ("gc", "--days", "0", "--waiting")
    assert run(*every, "--dry-run", "--json").json["sessions"] == [sessions["local"]]
    kept = run("gc", "--keep", sessions["eve"], "--owner", "all", "--json").json["kept"]
    assert kept == [sessions["eve"]]
    said = run(*every).out
    assert said.splitlines() == [
        "Removed 1 session without activity for 0 days.",
        "1 session of others stayed; --owner all removes them too.",
    ]
    previewed = run(*every, "--owner", "all", "--dry-run").out
    assert previewed.splitlines() == [
        "Would remove 1 session without activity for 0 days: 1 of ada.",
        f"  {sessions['ada']}  ada",
    ]
    removed = run(*every, "--owner", "all", "--json").json
    assert (removed["removed"], removed["owners"]) == (1, {"ada": 1})
    left = run("sessions", "--owner", "all", "--json").json["sessions"]
    assert [line["sessionId"] for line in left] == [sessions["eve"]]


def test_verify_knows_every_session_by_its_id(run: Run, sessions: dict[str, str]) -> None:
    for session in sessions.values():
        assert run("verify", session).code == 0
    assert len(run("verify", "--all", "--json").json["verified"]) == 3


def test_an_empty_list_points_to_the_sessions_of_others(run: Run) -> None:
    run("gc", "--days", "0", "--waiting")
    ran = run("sessions")
    assert ran.out == "No sessions.\n"
    assert ran.err == "Others have sessions; --owner all lists them.\n"
