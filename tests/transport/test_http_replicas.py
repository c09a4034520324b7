"""Replicas on one PostgreSQL: a run may change replica at every call, and nothing acknowledged is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from msgspec.structs import astuple

from bench.timing import percentile
from support.http_server import bearer, connected, inbox_answer
from support.mixed_load import MixedLoad, Sample
from support.postgres_server import PostgresServer, require_postgres
from support.proof import FULL, SEED, line
from support.replicas import STEPS, Replicas, Walker, behind_nginx, keep_deciding, wait_until

pytestmark = pytest.mark.slow

CLIENTS = 48
ALL = [*STEPS[:10], "which", *STEPS[10:]]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    require_postgres()
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Replicas]:
    started = Replicas(tmp_path_factory.mktemp("replicas"), postgres.url, 3)
    try:
        yield started
    finally:
        started.close()


def test_a_run_changes_replica_at_every_call_and_one_replica_opens_the_gate_at_another(
    replicas: Replicas,
) -> None:
    first, second, third = (f"{server.host}:{server.port}" for server in replicas.servers)
    turns, over = itertools.cycle((first, second)), Event()
    walker = Walker(lambda: next(turns), replicas.agent, "one-run")
    deciding = Thread(target=keep_deciding, args=(lambda: third, replicas.approver, over))
    deciding.start()
    try:
        walker.walk()
    finally:
        over.set()
        deciding.join()
    assert walker.done == ALL
    assert replicas.completed_steps()[walker.session] == STEPS


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_decision_at_one_replica_ends_the_wait_at_another(replicas: Replicas, mode: str) -> None:
    first, second = replicas.servers[:2]

    def decide(session: str) -> None:
        listed = second.request("GET", "/inbox", headers=bearer(replicas.approver)).json["questions"]
        asked = next(question for question in listed if question["sessionId"] == session)
        decision = msgspec.json.encode(inbox_answer(asked, "left"))
        answer = second.request("POST", "/inbox", decision, bearer(replicas.approver))
        assert answer.status == 200, answer.body

    async def story() -> Any:
        waits = anyio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            waits.set()

        async def decide_while_it_waits(session: str) -> None:
            await waits.wait()
            await anyio.to_thread.run_sync(decide, session)

        async with connected(first, "/mcp", replicas.agent, mode) as client:
            at = (await client.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content
            for step in STEPS[:10]:
                arguments = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
                output = {"notesMarkdown": step}
                answer = await client.call_tool("continue_workflow", {**arguments, "output": output})
                at = answer.structured_content
            async with anyio.create_task_group() as group:
                group.start_soon(decide_while_it_waits, at["session"]["sessionId"])
                arguments = {"stateToken": at["stateToken"], "ackToken": at["ackToken"], "waitSeconds": 55}
                answer = await client.call_tool("continue_workflow", arguments, progress_callback=progress)
            return answer.structured_content

    answer = anyio.run(story)
    assert (answer["kind"], answer["pending"]["stepId"]) == ("ok", STEPS[10])


def test_an_older_client_of_a_killed_replica_goes_on_at_another_one(replicas: Replicas) -> None:
    """Its MCP session is gone with the process; its run is not."""
    killed, other = replicas.servers[2], replicas.servers[1]

    async def begun() -> Any:
        async with connected(killed, "/mcp", replicas.agent, "legacy") as client:
            answer = await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            return answer.structured_content

    async def gone_on(at: Any) -> Any:
        async with connected(other, "/mcp", replicas.agent, "legacy") as client:
            tokens = {"stateToken": at["stateToken"], "ackToken": at["ackToken"]}
            return (await client.call_tool("continue_workflow", tokens)).structured_content

    at = anyio.run(begun)
    replicas.kill(2)
    assert anyio.run(gone_on, at)["pending"]["stepId"] == STEPS[1]
    replicas.revive(2)


def test_runs_behind_nginx_survive_killed_replicas_and_a_stopped_database(
    replicas: Replicas, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Every call goes through the proxy of `deploy/`, and only errors that may be repeated come back."""
    before, over = set(replicas.completed_steps()), Event()

    def recorded() -> int:
        steps = replicas.completed_steps()
        return sum(len(done) for session, done in steps.items() if session not in before)

    with behind_nginx(tmp_path, replicas.servers) as address, ThreadPoolExecutor(CLIENTS + 1) as pool:
        walkers = [Walker(lambda: address, replicas.agent, f"walk-{n}") for n in range(CLIENTS)]
        deciding = pool.submit(keep_deciding, replicas.next_address, replicas.approver, over)
        walks = [pool.submit(walker.walk) for walker in walkers]
        try:
            wait_until(lambda: recorded() > CLIENTS)
            replicas.kill(0)
            wait_until(lambda: recorded() > 4 * CLIENTS)
            postgres.stop("immediate")
            probes = [replicas.servers[1].request("GET", path).status for path in ("/healthz", "/readyz")]
            postgres.start()
            assert probes == [200, 503]
            replicas.revive(0)
            for walk in walks:
                walk.result()
        finally:
            over.set()
            deciding.result()
    wait_until(lambda: replicas.servers[1].request("GET", "/readyz").status == 200)
    recorded_steps = replicas.completed_steps()
    for walker in walkers:
        assert walker.done == ALL
        assert recorded_steps[walker.session] == STEPS, "every step once, in order"
    assert len(recorded_steps.keys() - before) == CLIENTS, "a repeated start begins no second run"


LOAD_SECONDS = 1800 if FULL else 120
GROUPS = 8


@pytest.mark.proof
def test_mixed_load_with_kills_stalls_and_restarts_is_explained_by_one_history_per_run(
    tmp_path: Path, postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    pair = Replicas(tmp_path / "data", postgres.url, 2)
    load = MixedLoad(pair, postgres, tmp_path, SEED)
    try:
        load.run(GROUPS, LOAD_SECONDS)
    finally:
        pair.close()
    first, last = used(load.samples)
    with capsys.disabled():
        counts = {**load.counts, "unexplained": len(load.unexplained)}
        print(line("two replicas, PostgreSQL", seconds=LOAD_SECONDS, groups_of_clients=GROUPS, **counts))
        print(line("the replica that lives", **shown(first, last)))
        for tool, times in sorted(load.taken.items()):
            figures = {"calls": len(times), "p50_ms": round(percentile(times, 0.5))}
            print(line(tool, **figures, p99_ms=round(percentile(times, 0.99))))
    assert not load.unexplained, "\n\n".join(load.unexplained[:3])
    assert load.counts["runs"] > GROUPS
    assert last.descriptors <= first.descriptors + GROUPS * 4
    assert (
        last.connections <= first.connections + 2 * GROUPS
    )  # backends of killed replicas end a little later
    assert last.megabytes <= first.megabytes + 40


def used(samples: list[Sample]) -> tuple[Sample, Sample]:
    """Return what is typical for the first fifth after the start, and for the last fifth."""
    part = max(len(samples) // 5, 1)
    return typical(samples[part : 2 * part]), typical(samples[-part:])


def typical(samples: list[Sample]) -> Sample:
    megabytes, descriptors, connections = zip(*map(astuple, samples), strict=True)
    return Sample(median(megabytes), round(median(descriptors)), round(median(connections)))


def shown(first: Sample, last: Sample) -> dict[str, str]:
    pairs = zip(Sample.__struct_fields__, astuple(first), astuple(last), strict=True)
    return {name: f"{round(before)} → {round(after)}" for name, before, after in pairs}
