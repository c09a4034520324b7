"""One ledger that threads share: nothing is lost, doubled or opened twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.authoring.library import Loaded
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.records import CallTraced
from interlock.ledger.queries.traces import keep_trace, whole_trace
from interlock.ledger.runs import pinned_workflows
from interlock.ledger.runs.pinned_workflows import Pins, contents_of
from interlock.store.lazy import LazyStore
from interlock.store.protocol import Store
from support.harness import Bench, steps, workflow
from support.memory_store import MemoryStore
from support.threads import together


def test_threads_that_trace_reads_write_each_trace_once(bench: Bench) -> None:
    ledger = bench.ledger()
    new = ledger.start_session("Traced")
    ledger.record_session(new, b"", None)
    with ledger.store.reading() as reader:
        session = reader.session(new.session_id)
    assert session is not None

    def read_often(thread: int) -> None:
        for number in range(10):
            keep_trace(ledger, session, CallTraced(f"tool-{thread}-{number}", "agent", 1, 0.1, True))
            ledger.write_traces()

    together(read_often)
    events = [traced.event for traced in whole_trace(ledger, session).events]
    tools = [event.tool for event in events if isinstance(event, CallTraced)]
    assert sorted(tools) == sorted(f"tool-{thread}-{number}" for thread in range(8) for number in range(10))


def test_threads_share_pinned_workflows_that_do_not_all_fit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_workflows, "MOST_PLANS", 1)
    ledger = bench.ledger()
    loaded = [load(bench, ledger, f"test.flow{number}") for number in range(3)]
    stored = {digest: body for item in loaded for digest, body in contents_of(item).items()}
    pins = Pins()

    def use_all(thread: int) -> set[str]:
        return {pins.plan(stored.get, item.hash).workflow.id for _ in range(30) for item in loaded}

    assert together(use_all) == [{"test.flow0", "test.flow1", "test.flow2"}] * 8


def load(bench: Bench, ledger: Ledger, workflow_id: str) -> Loaded:
    bench.write({**workflow(*steps("only")), "id": workflow_id})
    loaded = ledger.library.load(workflow_id)
    assert isinstance(loaded, Loaded)
    return loaded


def test_threads_that_need_a_store_first_open_it_once(tmp_path: Path) -> None:
    opened: list[Store] = []

    def open_store() -> Store:
        opened.append(MemoryStore(tmp_path))
        return opened[-1]

    lazy = LazyStore(open_store)
    assert len({id(store) for store in together(lambda _: lazy.open())}) == len(opened) == 1
