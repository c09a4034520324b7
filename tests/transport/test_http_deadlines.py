"""A server whose database hangs: calls end in time, what needs no database answers, probes tell the truth."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.transport.http import workers as workers_module
from interlock.transport.http.workers import Saturated, Workers
from support.fault_proxy import FaultProxy, fault_proxy
from support.harness import Bench, steps, workflow
from support.http_server import HttpServer, ModernCaller, UnexpectedStatus, bearer
from support.postgres_server import PostgresServer, require_postgres

DEADLINE = 2.0
CLIENTS = 40


class Hung(NamedTuple):
    server: HttpServer
    network: FaultProxy
    postgres: PostgresServer
    agent: str
    admin: str


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hung]:
    require_postgres()
    folder, postgres = tmp_path_factory.mktemp("hung"), PostgresServer(fsync="off")
    bench = Bench(folder)
    bench.write(workflow(*steps("first", "last")))
    access = AccessTokens(folder)
    agent, admin = access.add("ada", "user", 1), access.add("root", "admin", 1)
    try:
        postgres.start()
        with fault_proxy("127.0.0.1", postgres.port) as network:
            store = postgres.url.replace(f":{postgres.port}/", f":{network.port}/")
            arguments = ("--store", store, "--workflows", str(bench.workflows), "--quiet")
            server = HttpServer(folder, *arguments, "--store-deadline", str(DEADLINE))
            try:
                yield Hung(server, network, postgres, agent, admin)
            finally:
                network.mend()
                server.stop()
    finally:
        postgres.remove()


def timed_call(hung: Hung, tool: str, **arguments: Any) -> tuple[float, str]:
    """Call a tool on a connection of its own; return the seconds and how it ended."""
    began = time.monotonic()
    caller = ModernCaller(f"{hung.server.host}:{hung.server.port}", hung.agent)
    with closing(caller):
        try:
            answer = caller.call(tool, **arguments)
            ended = answer.get("code", "ok") if isinstance(answer, dict) else "ok"
        except UnexpectedStatus as error:
            ended = str(error.args[0])
    return time.monotonic() - began, ended


def timed_get(hung: Hung, path: str) -> tuple[float, int]:
    began = time.monotonic()
    status = hung.server.request("GET", path, headers=bearer(hung.admin)).status
    return time.monotonic() - began, status


@contextmanager
def stalled(hung: Hung) -> Iterator[None]:
    hung.network.stall()
    try:
        yield
    finally:
        hung.network.mend()


@contextmanager
def frozen(hung: Hung) -> Iterator[None]:
    """Stop the whole server of the database: it takes no connection and gives no answer."""
    children = Path(f"/proc/{hung.postgres.pid}/task/{hung.postgres.pid}/children").read_text().split()
    pids = [hung.postgres.pid, *map(int, children)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def until_it_starts(hung: Hung) -> None:
    for _ in range(100):
        if timed_call(hung, "start_workflow", workflowId="test.flow")[1] == "ok":
            return
        time.sleep(0.1)
    raise AssertionError("the server did not recover")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [stalled, frozen])
def test_while_the_database_hangs_every_call_ends_in_time(hung: Hung, fault: Any) -> None:
    until_it_starts(hung)
    with ThreadPoolExecutor(CLIENTS) as pool:  # what so many callers take here while nothing hangs
        usual = max(
            call.result()[0]
            for call in [
                pool.submit(timed_call, hung, "start_workflow", workflowId="test.flow")
                for _ in range(CLIENTS)
            ]
        )
    with fault(hung), ThreadPoolExecutor(CLIENTS + 10) as pool:
        calls = [
            pool.submit(timed_call, hung, "start_workflow", workflowId="test.flow") for _ in range(CLIENTS)
        ]
        time.sleep(0.3)  # all threads for the store are taken now
        free = [pool.submit(timed_call, hung, "list_workflows") for _ in range(4)]
        alive, ready = pool.submit(timed_get, hung, "/healthz"), pool.submit(timed_get, hung, "/readyz")
        inbox, metrics = pool.submit(timed_get, hung, "/inbox"), pool.submit(timed_get, hung, "/metrics")
        ended = [call.result() for call in calls]
    assert {kind for _, kind in ended} <= {"STORE_UNAVAILABLE", "TOKEN_SESSION_LOCKED", "503"}
    assert max(seconds for seconds, _ in ended) < DEADLINE + 1 + usual
    assert all(kind == "ok" and seconds < 1 + usual for seconds, kind in (call.result() for call in free))
    assert alive.result()[1] == 200
    assert alive.result()[0] < 1 + usual
    assert ready.result()[1] == 503
    assert ready.result()[0] < 5 + usual  # two seconds for an answer, and three at most to connect anew
    assert inbox.result()[1] == 503
    assert inbox.result()[0] < DEADLINE + 1 + usual
    assert metrics.result()[1] == 200
    until_it_starts(hung)
    assert timed_get(hung, "/readyz")[1] == 200


def test_a_call_that_finds_no_thread_in_time_is_refused_and_then_so_are_others_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers_module, "QUEUE_SECONDS", 0.3)
    monkeypatch.setattr(workers_module, "SATURATED_SECONDS", 0.1)
    over = threading.Event()

    async def story() -> None:
        workers = Workers()

        async def refused() -> None:
            with pytest.raises(Saturated):
                await workers.on_store(over.wait)

        async with anyio.create_task_group() as calls:
            for _ in range(workers_module.STORE_THREADS):
                calls.start_soon(workers.on_store, over.wait)
            await anyio.sleep(0.05)
            assert not workers.are_saturated
            calls.start_soon(refused)
            await anyio.sleep(0.15)
            assert workers.are_saturated
            assert await workers.beside_store(lambda: "answered") == "answered"
            await anyio.sleep(0.3)
            assert not workers.are_saturated
            over.set()
        assert await workers.on_store(lambda: "free again") == "free again"

    anyio.run(story)
