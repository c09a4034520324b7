"""The plans of every statement that a call sends: no table that grows is read as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bench.seeded import seed
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.search import find
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.postgres.database import PostgresStore, open_store
from interlock.store.protocol import SessionFilter
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent, Bench, steps, workflow
from support.postgres_server import require_postgres, shared_server

SESSIONS = 3000
UNTIL_CACHED = 12  # calls after which the server keeps a plan for any parameters
PLANNED = "Query Text: "
GROWING = "sessions|commits|nodes|runs|handles|observations|search|indexed_outputs"
WHOLE_TABLE = re.compile(rf"(Seq Scan on (?:{GROWING})\w*)")
EXPLAINED = "".join(
    f"%20-c{setting}"
    for setting in (
        "session_preload_libraries%3Dauto_explain",
        "auto_explain.log_min_duration%3D0",
        "log_min_messages%3Dlog",
    )
)


@pytest.fixture
def url() -> Iterator[str]:
    require_postgres()
    schema = f"plans_{uuid4().hex[:8]}"
    yield shared_server().in_schema(schema) + EXPLAINED
    shared_server().execute(f"DROP SCHEMA {schema} CASCADE")


def agent_on(store: PostgresStore, bench: Bench) -> Agent:
    library = bench.ledger().library
    return Agent(ExecutionSurface(Ledger(store, Keys(bench.folder), library, Settings(), bench.clock)))


def work(agent: Agent, times: int) -> None:
    """Make the calls of an agent, and those of a person who looks for work."""
    for number in range(times):
        first = agent.start("test.flow", goal=f"the work of round {number}")
        second = agent.ack("notes")
        agent.ack("notes", at=first)
        agent.look(first)
        agent.look(second)
        agent.call("resume_session", query=f"round {number}")
        find(agent.ledger, "needle17 common", {"git_branch": "topic/17"})
        find(agent.ledger, "nothing like it")
        with agent.ledger.store.reading() as reader:
            reader.sessions(SessionFilter("local", limit=20))
            reader.sessions_by_prefix("sess_a", owner="local", limit=2)
            reader.runs_by_prefix("run_a", owner="local", limit=2)


def plans_since(place: int) -> tuple[int, list[str]]:
    """Return how many plans the server has logged since a place in its log, and what is read as a whole."""
    logged = (shared_server().folder / "log").read_text(errors="replace")[place:]
    plans = logged.split(PLANNED)[1:]
    return len(plans), [f"{found}: {plan[:300]}" for plan in plans for found in WHOLE_TABLE.findall(plan)]


def place_in_log() -> int:
    return len((shared_server().folder / "log").read_text(errors="replace"))


@pytest.mark.slow
def test_no_call_reads_a_whole_table_however_full_the_database(
    tmp_path: Path, url: str, bench: Bench
) -> None:
    bench.write(workflow(*steps("one", "two", "three")))
    store = open_store(url)
    old = agent_on(store, bench)
    work(old, UNTIL_CACHED)  # its connection keeps plans that were made for empty tables
    filling = open_store(url.removesuffix(EXPLAINED))
    seed(filling, SESSIONS)
    filling.close()
    for agent in (old, agent_on(open_store(url), bench)):
        place = place_in_log()
        work(agent, UNTIL_CACHED)
        count, whole = plans_since(place)
        assert count > 20 * UNTIL_CACHED
        assert whole == []
        agent.ledger.store.close()
