"""Pulled plugs and several processes: nothing acknowledged is lost, nothing is done twice."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.ledger.log.records import OutputAppended
from interlock.store.sqlite.store import open_store
from support.harness import Bench, steps, workflow
from support.log import logged_events
from support.proof import SEED, line, times
from support.server import Server, ServerGone

pytestmark = pytest.mark.slow
KILLS_PER_RUN = 20

LONG = workflow(
    {
        "id": "again",
        "type": "loop",
        "title": "Again",
        "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
        "body": steps("once"),
    },
    id="test.long",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    bench = Bench(tmp_path)
    bench.write(LONG)
    bench.write(workflow(*steps("first", "second", "third")))
    return tmp_path


def serve(data: Path) -> Server:
    return Server(data, "--workflows", str(data / "workflows-under-test"))


def notes(server: Server, at: dict[str, Any]) -> list[str]:
    answer = server.call("continue_workflow", stateToken=at["stateToken"])
    recap = answer.get("recap", {"entries": []})
    assert not recap.get("omitted")
    return [entry["notes"] for entry in recap["entries"]]


@pytest.mark.proof
def test_kills_at_random_moments_lose_nothing_that_was_acknowledged(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    total = lost = doubled = 0
    rounds = times(1000)
    for first in range(0, rounds, KILLS_PER_RUN):
        server = serve(data)
        here = server.call("start_workflow", workflowId="test.long")
        server.kill()
        here, acknowledged = killed_again_and_again(data, here, min(KILLS_PER_RUN, rounds - first), chance)
        stored = Counter(bodies(data, here))
        total += len(acknowledged)
        lost += sum(text not in stored for text in acknowledged)
        doubled += sum(times_ > 1 for times_ in stored.values())
        assert bodies(data, here) == acknowledged
        assert events(data, here, "step_completed") == len(acknowledged)
    with capsys.disabled():
        print(line("kills", kills=rounds, acknowledged=total, lost=lost, doubled=doubled))


def killed_again_and_again(
    data: Path, here: dict[str, Any], kills: int, chance: random.Random
) -> tuple[dict[str, Any], list[str]]:
    """Take steps while the server is killed and started anew; the call in flight is sent again."""
    server = serve(data)
    acknowledged: list[str] = []
    for round_ in range(kills):
        victim = threading.Timer(chance.uniform(0.0, 0.02), server.process.kill)
        victim.start()
        wanted = ""
        try:
            while True:
                wanted = f"r{round_}-{len(acknowledged)}"
                here = server.ack(here, wanted)
                acknowledged.append(wanted)
        except ServerGone:
            victim.join()
            server.kill()
        server = serve(data)
        here = server.ack(here, wanted)
        acknowledged.append(wanted)
    assert server.call("continue_workflow", stateToken=here["stateToken"])["isComplete"] is False
    server.kill()
    return here, acknowledged


def events(data: Path, at: dict[str, Any], kind: str) -> int:
    store = open_store(data)
    count = len(logged_events(store, at["session"]["sessionId"], kind))
    store.close()
    return count


def bodies(data: Path, at: dict[str, Any]) -> list[str]:
    store = open_store(data)
    events = [row.event for row in logged_events(store, at["session"]["sessionId"], "node_output_appended")]
    store.close()
    return [event.notes for event in events if isinstance(event, OutputAppended)]


def test_two_processes_share_tokens_at_once(data: Path) -> None:
    with serve(data) as one, serve(data) as two:
        started = one.call("start_workflow", workflowId="test.flow")
        second = two.ack(started, "by the other")
        assert second["pending"]["stepId"] == "second"
        assert one.ack(second)["pending"]["stepId"] == "third"
        assert one.ack(started, "by the other")["stateToken"] == second["stateToken"]


def test_two_processes_racing_with_the_same_tokens_advance_once(data: Path) -> None:
    with serve(data) as one, serve(data) as two:
        here = one.call("start_workflow", workflowId="test.long")
        for number in range(40):
            answers = raced((one, two), here, f"step {number}")
            assert answers[0] == answers[1]
            here = answers[0]
        assert notes(one, here) == [f"step {number}" for number in range(40)]


def raced(servers: tuple[Server, ...], at: dict[str, Any], notes: str) -> list[dict[str, Any]]:
    """Send the same call to several processes at once."""
    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(lambda server: server.ack(at, notes), servers))


def test_processes_on_different_runs_never_hear_of_a_lock(data: Path) -> None:
    failures: list[str] = []

    def work(server: Server) -> None:
        here = server.call("start_workflow", workflowId="test.long")
        for number in range(60):
            here = server.ack(here, f"step {number}")
            if "code" in here:
                failures.append(here["code"])
                return

    with serve(data) as one, serve(data) as two, serve(data) as three:
        workers = [threading.Thread(target=work, args=(server,)) for server in (one, two, three)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert failures == []


def test_processes_that_write_to_one_session_at_once_lose_and_double_nothing(data: Path) -> None:
    """Both fork the same node again and again; every call loses some races and is run again."""

    def fork(server: Server, name: str, at: dict[str, Any]) -> list[str]:
        sent = [f"{name} {number}" for number in range(30)]
        for text in sent:
            answer = server.ack(server.call("continue_workflow", stateToken=at["stateToken"]), text)
            assert answer["pending"]["stepId"] == "second", answer
        return sent

    with serve(data) as one, serve(data) as two:
        start = one.call("start_workflow", workflowId="test.flow")
        one.ack(start, "first")  # from here on every rehydrate offers an attempt of its own
        with ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(fork, server, name, start) for server, name in ((one, "a"), (two, "b"))]
            sent = ["first", *(text for call in calls for text in call.result())]
        branches = one.call("continue_workflow", stateToken=start["stateToken"])["branches"]
    assert len(branches["children"]) + branches["omitted"] == len(sent)
    assert sorted(bodies(data, start)) == sorted(sent)
    assert events(data, start, "step_completed") == len(sent)
