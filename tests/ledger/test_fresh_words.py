"""A search finds what its own principal has just written, whether or not the index knows it (rule 47)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries import indexing, search
from interlock.ledger.queries.run_lines import RunsWanted, run_lines
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from interlock.surfaces.execution import ExecutionSurface
from support import postgres_server
from support.harness import Agent, Bench, compile_cache, steps, workflow

Ledgers = Callable[[str], Ledger]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        postgres_server.require_postgres()
    opened: Store = (open_store if request.param == "sqlite" else postgres_server.open_in)(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def ledgers(store: Store, tmp_path: Path) -> Ledgers:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps("one", "two", "three", "four")))

    def of(owner: str) -> Ledger:
        library = Library([Source("configured", bench.workflows)], compile_cache())
        return Ledger(store, Keys(tmp_path), library, Settings(owner=owner), bench.clock)

    return of


def began(ledger: Ledger, goal: str) -> Agent:
    agent = Agent(ExecutionSurface(ledger))
    agent.start("test.flow", goal=goal)
    return agent


def matches(ledger: Ledger, query: str) -> list[tuple[str, str]]:
    found = find(ledger, query).candidates
    return [(one.session.title, one.why) for one in found if one.why != "recency_fallback"]


def listed(ledger: Ledger, text: str) -> list[str]:
    return [line.title for line in run_lines(ledger, RunsWanted(text=text)).lines]


def unindexed(store: Store) -> int:
    with store.reading() as reader:
        return len(reader.unindexed(999))


def test_new_work_is_found_at_once_and_a_search_indexes_nothing(store: Store, ledgers: Ledgers) -> None:
    ada = ledgers("ada")
    agent = began(ada, "mend the boiler")
    assert matches(ada, "boiler") == [("mend the boiler", "matched_title")]
    agent.ack("a new gasket")
    assert matches(ada, "gasket") == [("mend the boiler", "matched_notes")]
    assert listed(ada, "gasket") == listed(ada, "boiler") == ["mend the boiler"]
    assert unindexed(store) == 1


def test_what_follows_after_the_index_is_found_beside_what_it_knows(store: Store, ledgers: Ledgers) -> None:
    ada = ledgers("ada")
    agent = began(ada, "mend the boiler")
    agent.ack("a new gasket")
    ada.idle()
    assert unindexed(store) == 0
    agent.ack("the valve leaks")
    assert matches(ada, "valve")[0] == ("mend the boiler", "matched_notes")
    assert matches(ada, "gasket")[0][0] == "mend the boiler", "an output that is indexed stays found"
    assert matches(ada, "valve boiler")[0] == ("mend the boiler", "matched_notes")
    assert matches(ada, '"valve leaks"') == matches(ada, "VALVE") == matches(ada, "välve")
    ada.idle()
    assert matches(ada, "valve") == [("mend the boiler", "matched_notes")]
    assert matches(ada, "gasket") == [("mend the boiler", "matched_deep")]


def test_a_new_name_of_the_work_is_found_at_once(store: Store, ledgers: Ledgers) -> None:
    ada = ledgers("ada")
    agent = began(ada, "mend the boiler")
    ada.idle()
    agent.ack("renamed", ticketId="HEAT-7")
    assert matches(ada, "heat-7") == [("mend the boiler", "matched_title")]


def test_nobody_looks_at_the_new_work_of_others(ledgers: Ledgers) -> None:
    ada, eve = ledgers("ada"), ledgers("eve")
    began(ada, "mend the boiler").ack("a new gasket")
    assert matches(eve, "boiler") == matches(eve, "gasket") == listed(eve, "boiler") == []


def test_a_search_that_has_no_time_says_that_it_left_some_out(
    ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ALWAYS_READ", 1)
    monkeypatch.setattr(search, "READ_SECONDS", -1.0)
    ada = ledgers("ada")
    began(ada, "mend the boiler")
    agent = began(ada, "paint the fence")
    found = find(ada, "fence")
    assert found.left_out
    assert run_lines(ada, RunsWanted(text="fence")).left_out
    assert "Some of the newest work was not searched" in agent_text(ada, "boiler or fence")
    ada.idle()
    agent.ack("first coat")  # of a session whose beginning is indexed, the rest is always read
    assert matches(ada, "coat") == [("paint the fence", "matched_notes")]
    assert not find(ada, "coat").left_out


def test_a_long_session_that_nobody_has_indexed_is_left_to_the_index(
    ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "NEWEST_EVENTS", 4)
    ada = ledgers("ada")
    agent = began(ada, "mend the boiler")
    agent.ack("a new gasket")
    assert find(ada, "gasket").left_out
    assert matches(ada, "gasket") == []
    ada.idle()
    for note in ("the valve leaks", "a pipe drips"):
        agent.ack(note)
    assert find(ada, "drips").left_out, "of the two steps only the newest events are read"
    assert matches(ada, "drips") == [("mend the boiler", "matched_notes")]


def agent_text(ledger: Ledger, query: str) -> str:
    agent = Agent(ExecutionSurface(ledger))
    agent.call("resume_session", query=query)
    return agent.text


def test_busy_sessions_do_not_keep_others_from_the_index(
    store: Store, ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index goes round: what is written again and again has its turn, and no more."""
    monkeypatch.setattr(indexing, "BATCH", 1)
    monkeypatch.setattr("interlock.ledger.ledger.IDLE_BATCHES", 1)
    ada = ledgers("ada")
    agents = [began(ada, f"job {number}") for number in range(3)]
    with store.reading() as reader:
        first = reader.unindexed(1)[0]
    busy = next(agent for agent in agents if agent.last["session"]["sessionId"] == first)
    for note in ("once", "again", "more"):
        ada.idle()
        busy.ack(note)
    assert unindexed(store) == 1


def test_a_batch_that_fails_in_its_middle_is_indexed_whole_the_next_time(
    store: Store, ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = ledgers("ada")
    for number in range(3):
        began(ada, f"job {number}").ack(f"needle{number}")
    whole, calls = indexing.entry_of, list[str]()

    def failing(*arguments: object) -> object:
        calls.append("")
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(indexing, "entry_of", failing)
    with pytest.raises(KeyboardInterrupt):
        ada.idle()
    assert unindexed(store) == 3
    ada.idle()
    assert unindexed(store) == 0
    for number in range(3):
        assert matches(ada, f"needle{number}") == [(f"job {number}", "matched_notes")]
