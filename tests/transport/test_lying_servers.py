"""The checker of histories finds what a real server with a planted fault tells several clients."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from threading import Thread

import pytest

from interlock.ledger.log.records import OutputAppended
from support.harness import Bench, steps, workflow
from support.http_server import HttpServer
from support.log import logged_events
from support.mixed_load import LoadCaller
from support.paths import FIXTURES
from tools.history.check import unexplained
from tools.history.clients import RivalClient, SharedRun, WalkingClient
from tools.history.model import ModelRun

pytestmark = pytest.mark.slow

ITEMS = [f"s{number}" for number in range(12)]
NO_GATE = len(ITEMS) + 1
RUNS = 6


class LyingServer(HttpServer):
    """A server with a fault, as clients of a load know one."""

    agent = ""

    def __init__(self, fault: str, bench: Bench) -> None:
        self.program = (str(FIXTURES / "lying_server.py"), fault)
        super().__init__(bench.folder, "--workflows", str(bench.workflows), "--quiet")
        self.replicas = self

    def next_address(self) -> str:
        return f"{self.host}:{self.port}"

    def timed(self, tool: str, began: float) -> None:
        """Nobody asks how long it took."""


def told(bench: Bench, fault: str) -> Iterator[str]:
    """Yield why the runs that a walking client and a rival share are not explained."""
    bench.write(workflow(*steps(*ITEMS)))
    bench.judges = False  # a store whose server forgets is not sound
    server = LyingServer(fault, bench)
    store = bench.ledger().store
    try:
        for number in range(RUNS):
            run, chance = SharedRun(f"run-{number:08}", ITEMS, NO_GATE), Random(number)
            share(run, server, chance)
            events = [row.event for row in logged_events(store, run.session, "node_output_appended")]
            log = run.history.invoke("log", "log")
            run.history.answered(log, *(event.notes for event in events if isinstance(event, OutputAppended)))
            if (why := unexplained(run.history.calls, ModelRun(NO_GATE))) is not None:
                yield str(why)
    finally:
        server.stop()


def share(run: SharedRun, server: LyingServer, chance: Random) -> None:
    callers = [LoadCaller(server, Random(chance.random())) for _ in range(2)]  # type: ignore[arg-type]
    walker = WalkingClient("walker", run, callers[0].send, chance)
    rival = RivalClient("rival", run, callers[1].send, Random(chance.random()))

    def act() -> None:
        while not run.is_over:
            rival.act()

    beside = Thread(target=act)
    beside.start()
    walker.walk()
    beside.join()
    for caller in callers:
        caller.close()


@pytest.mark.parametrize("fault", ["lost", "doubled", "stale"])
def test_a_planted_fault_of_a_server_is_found(bench: Bench, fault: str) -> None:
    assert any(told(bench, fault))


def test_a_server_without_a_fault_is_explained(bench: Bench) -> None:
    assert list(told(bench, "none")) == []
