"""Rule 13a: a start whose answer was lost is sent again with its id, and begins nothing new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.surface_policy import SurfaceName
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.repair import inspect, repair
from interlock.ledger.repeatable import REMEMBERED
from interlock.ledger.settings import Settings
from interlock.ledger.tokens.keyring import Keys
from interlock.store.protocol import SessionFilter, Store
from interlock.store.sqlite.store import open_store
from interlock.surfaces.call import Call, Client, Reply
from interlock.surfaces.registry import build_surface
from interlock.surfaces.tool import Surface, call_tool
from support import postgres_server
from support.harness import Bench, compile_cache, steps, workflow

STARTS: list[tuple[SurfaceName, str, dict[str, Any]]] = [
    ("execution", "start_workflow", {"workflowId": "test.flow"}),
    ("execution", "start_session", {"title": "Work"}),
    ("session", "start_session", {"workflow_id": "test.flow", "agent_id": "lead"}),
    ("session", "start_session", {"workflow_id": "test.flow", "agent_id": "lead", "session_token": "lost"}),
    ("gated", "start_session", {"workflow_id": "test.flow"}),
    ("navigation", "nav_start", {"workflow_id": "test.flow"}),
]
TOKEN = re.compile(r"\b(?:st|ack|sst|ses|nav)\.v1\.[\w-]+")
each_start = pytest.mark.parametrize(("surface", "tool", "arguments"), STARTS)


class Servers:
    """Processes on one store, as it were: each call of `ledger` is another one."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.bench = Bench(folder)
        self.bench.write(workflow(*steps("one", "two")))
        self.store = store

    def ledger(self, owner: str = "local") -> Ledger:
        sources = [BUNDLED, Source("configured", self.bench.workflows)]
        settings = Settings(owner=owner)
        keys, library = Keys(self.bench.folder), Library(sources, compile_cache())
        return Ledger(self.store, keys, library, settings, self.bench.clock)

    def library(self) -> Library:
        return self.ledger().library

    def surface(self, name: SurfaceName) -> Surface:
        return build_surface(name, self, frozenset())

    def sessions(self, owner: str = "local") -> int:
        with self.store.reading() as reader:
            return len(reader.sessions(SessionFilter(owner)))


@pytest.fixture(params=["sqlite", "postgres"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    with _opened(request.param, tmp_path) as store:
        yield Servers(tmp_path, store)


@contextmanager
def _opened(kind: str, folder: Path) -> Iterator[Store]:
    if kind == "postgres":
        postgres_server.require_postgres()
    store: Store = open_store(folder) if kind == "sqlite" else postgres_server.open_in(folder)
    try:
        yield store
    finally:
        store.close()


def said(surface: Surface, tool: str, arguments: dict[str, Any]) -> tuple[str, bytes]:
    reply = call_tool(surface, tool, arguments, Call(Client("test")))
    assert isinstance(reply, Reply)
    return reply.text, msgspec.json.encode([reply.structured, reply.meta, reply.is_error])


@each_start
def test_the_same_start_again_gets_the_same_answer_from_any_process(
    servers: Servers, surface: SurfaceName, tool: str, arguments: dict[str, Any]
) -> None:
    first = said(servers.surface(surface), tool, {**arguments, "requestId": "a"})
    again = said(servers.surface(surface), tool, {**arguments, "requestId": "a"})
    assert again == first
    assert servers.sessions() == 1
    assert said(servers.surface(surface), tool, {**arguments, "requestId": "b"}) != first
    assert servers.sessions() == 2


@each_start
def test_the_same_id_with_other_arguments_gets_the_recorded_answer_and_is_told_so(
    servers: Servers, surface: SurfaceName, tool: str, arguments: dict[str, Any]
) -> None:
    first, _ = said(servers.surface(surface), tool, {**arguments, "requestId": "a"})
    changed = {name: value if name != "title" else "Other" for name, value in arguments.items()}
    if changed == arguments:
        changed = {
            name: "wr.small_task" if value == "test.flow" else value for name, value in changed.items()
        }
    text, _ = said(servers.surface(surface), tool, {**changed, "requestId": "a"})
    assert "This requestId was used before, with other arguments" in text
    assert all(token in text for token in TOKEN.findall(first))
    assert servers.sessions() == 1


def test_an_id_is_its_tool_s(servers: Servers) -> None:
    """The answer of one tool is no answer to another."""
    said(servers.surface("execution"), "start_workflow", {"workflowId": "test.flow", "requestId": "a"})
    said(servers.surface("navigation"), "nav_start", {"workflow_id": "test.flow", "requestId": "a"})
    assert servers.sessions() == 2


def test_an_id_is_its_owner_s_and_is_remembered_for_a_day(servers: Servers) -> None:
    arguments = {"workflowId": "test.flow", "requestId": "a"}
    first = said(servers.surface("execution"), "start_workflow", arguments)
    other = servers.surface("execution")
    other.ledger = servers.ledger("somebody")  # type: ignore[attr-defined]
    assert said(other, "start_workflow", arguments) != first
    assert (servers.sessions(), servers.sessions("somebody")) == (1, 1)
    servers.bench.clock.pass_seconds(REMEMBERED / 1000 - 1)
    assert said(servers.surface("execution"), "start_workflow", arguments) == first
    servers.bench.clock.pass_seconds(1)
    later = said(servers.surface("execution"), "start_workflow", arguments)
    assert later != first
    assert said(servers.surface("execution"), "start_workflow", arguments) == later
    assert servers.sessions() == 2


def test_of_two_starts_at_once_one_begins_a_session(servers: Servers) -> None:
    """The loser's append meets the key, so that its call is run again from its read."""
    arguments = {"workflowId": "test.flow", "requestId": "a"}
    ours, theirs = servers.surface("execution"), servers.surface("execution")
    append, answers = ours.ledger.append, list[tuple[str, bytes]]()  # type: ignore[attr-defined]

    def overtaken(*changes: Any) -> None:
        if not answers:
            answers.append(said(theirs, "start_workflow", arguments))
        append(*changes)

    ours.ledger.append = overtaken  # type: ignore[attr-defined]
    assert [said(ours, "start_workflow", arguments)] == answers
    assert servers.sessions() == 1


def test_a_removed_session_is_begun_anew(servers: Servers) -> None:
    arguments = {"workflowId": "test.flow", "requestId": "a"}
    first = said(servers.surface("execution"), "start_workflow", arguments)
    with servers.store.writing() as writer:
        writer.remove_session(writer.session_ids("", 1)[0], 1)
    assert said(servers.surface("execution"), "start_workflow", arguments) != first


def test_a_damaged_answer_is_never_repeated_and_begins_nothing_twice(servers: Servers) -> None:
    """Rule 44: a recorded response is checked whenever it is read."""
    arguments, ledger = {"workflowId": "test.flow", "requestId": "a"}, servers.ledger()
    said(servers.surface("execution"), "start_workflow", arguments)
    with servers.store.writing() as writer:
        session_id = writer.session_ids("", 1)[0]
        (row,) = writer.starts(session_id)
        writer.drop_start(row)
        writer.add_start(replace(row, response=row.response.replace(b"one", b"two")))
    damaged = said(servers.surface("execution"), "start_workflow", arguments)
    assert "its recorded answer was lost to damage. Nothing was started." in damaged[0]
    finding = inspect(servers.store, session_id, ledger.pins)
    assert finding is not None
    assert finding.rows == ("answer of its start",)
    repair(servers.store, session_id, ledger.pins, ledger.library, {}, owner="local", now=1)
    assert inspect(servers.store, session_id, ledger.pins) is None
    assert said(servers.surface("execution"), "start_workflow", arguments) == damaged
    assert servers.sessions() == 1
