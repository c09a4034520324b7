"""A call may wait for the user's decision: nothing is held meanwhile, a decision made elsewhere ends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from interlock.ledger.decisions.inbox import answer_question, inbox
from interlock.surfaces.call import Call, Wait
from interlock.transport.stdio.waiting import WaitingTurns
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, serving

MODES = ["legacy", "2026-07-28"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("waiting"))
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    return bench


@pytest.fixture(scope="module")
def server(bench: Bench) -> Iterator[HttpServer]:
    with serving(bench.folder, "--workflows", str(bench.workflows), "--decisions", "user") as running:
        yield running


@pytest.fixture(params=["http", "stdio"])
def target(request: pytest.FixtureRequest, bench: Bench) -> Any:
    """What the official client connects to; only the user's own channels decide."""
    if request.param == "http":
        return f"{request.getfixturevalue('server').url}/mcp"
    return stdio_server(bench)


def decide(bench: Bench, session: str, option: str) -> None:
    """Decide as the user does in another process."""
    ledger = bench.ledger()
    try:
        question = next(item for item in inbox(ledger) if item.session_id == session)
        assert answer_question(ledger, question, option)
    finally:
        ledger.store.close()


def stdio_server(bench: Bench) -> Any:
    """What the official client starts to talk over stdio; only the user's own channels decide."""
    from mcp import StdioServerParameters

    folders = ["--data-dir", str(bench.folder), "--workflows", str(bench.workflows)]
    return StdioServerParameters(
        command=sys.executable, args=["-m", "interlock", "mcp", "--decisions", "user", *folders]
    )


def tokens_of(answer: Any) -> dict[str, str]:
    return {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}


async def until_waiting(server: HttpServer, calls: int) -> None:
    """Look until so many calls wait at a server."""
    while True:
        text = (await anyio.to_thread.run_sync(server.request, "GET", "/metrics")).body.decode()
        if f"\ninterlock_calls_waiting {calls}\n" in text:
            return
        await anyio.sleep(0.02)


async def start(client: Any) -> Any:
    """Start a run; it waits at its gate at once."""
    return (await client.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content


@pytest.mark.parametrize("mode", MODES)
def test_a_decision_made_elsewhere_ends_the_wait(target: Any, bench: Bench, mode: str) -> None:
    import mcp

    heard: list[float] = []

    async def story() -> Any:
        waits = anyio.Event()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append(done)
            waits.set()

        async with mcp.Client(target, mode=mode) as client, anyio.create_task_group() as group:
            started = (
                await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            ).structured_content
            session = started["session"]["sessionId"]

            async def decide_while_it_waits() -> None:
                await waits.wait()
                listed = await client.call_tool("list_workflows")  # others are answered meanwhile
                assert not listed.is_error
                await anyio.to_thread.run_sync(decide, bench, session, "right")

            group.start_soon(decide_while_it_waits)
            tokens = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
            result = await client.call_tool(
                "continue_workflow", {**tokens, "waitSeconds": 55}, progress_callback=progress
            )
            return result.structured_content

    answer = anyio.run(story)
    assert (answer["kind"], answer["pending"]["stepId"]) == ("ok", "last")
    assert heard


@pytest.mark.parametrize("mode", MODES)
def test_a_wait_without_a_decision_says_that_the_user_has_not_decided(target: Any, mode: str) -> None:
    import mcp

    async def story() -> Any:
        async with mcp.Client(target, mode=mode) as client:
            started = (
                await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            ).structured_content
            tokens = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
            return await client.call_tool("continue_workflow", {**tokens, "waitSeconds": 1})

    result = anyio.run(story)
    assert result.structured_content["kind"] == "blocked"
    assert "The user has not decided yet" in result.content[0].text


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_waits_no_longer(server: HttpServer, mode: str) -> None:
    async def story() -> None:
        import mcp

        async with mcp.Client(f"{server.url}/mcp", mode=mode) as client:
            tokens = tokens_of(await start(client))
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "continue_workflow", {**tokens, "waitSeconds": 55})
                await until_waiting(server, 1)
                group.cancel_scope.cancel()
            await until_waiting(server, 0)
            again = await client.call_tool("continue_workflow", tokens)
            assert again.structured_content["kind"] == "blocked"

    anyio.run(story)


def test_a_call_that_is_cancelled_over_stdio_waits_no_longer(bench: Bench) -> None:
    import mcp

    async def story() -> None:
        async with mcp.Client(stdio_server(bench), mode="legacy") as client:
            tokens, waits = tokens_of(await start(client)), anyio.Event()

            async def progress(done: float, total: float | None, message: str | None) -> None:
                waits.set()

            async with anyio.create_task_group() as group:
                group.start_soon(
                    partial(client.call_tool, progress_callback=progress),
                    "continue_workflow",
                    {**tokens, "waitSeconds": 55},
                )
                await waits.wait()
                group.cancel_scope.cancel()
            again = await client.call_tool("continue_workflow", tokens)
            assert again.structured_content["kind"] == "blocked"

    anyio.run(story)


def test_calls_that_wait_hold_no_thread_and_no_lock(server: HttpServer, bench: Bench) -> None:
    """More calls wait than the server has threads, and it starts, reads and decides as if there were none."""
    import mcp

    from interlock.transport.http.workers import STORE_THREADS

    answers: list[str] = []

    async def story() -> None:
        async with mcp.Client(f"{server.url}/mcp", mode="2026-07-28") as client:
            runs = [await start(client) for _ in range(STORE_THREADS + 4)]

            async def wait(run: Any) -> None:
                arguments = {**tokens_of(run), "waitSeconds": 55}
                result = await client.call_tool("continue_workflow", arguments)
                answers.append(result.structured_content["pending"]["stepId"])

            async with anyio.create_task_group() as group:
                for run in runs:
                    group.start_soon(wait, run)
                await until_waiting(server, len(runs))
                await start(client)
                for run in runs:
                    await anyio.to_thread.run_sync(decide, bench, run["session"]["sessionId"], "left")

    anyio.run(story)
    assert answers == ["last"] * (STORE_THREADS + 4)


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_stops_answers_the_calls_that_wait(bench: Bench, mode: str) -> None:
    import mcp

    async def story(running: HttpServer) -> Any:
        waits, answers = anyio.Event(), list[Any]()

        async def progress(done: float, total: float | None, message: str | None) -> None:
            waits.set()

        async def wait() -> None:
            async with mcp.Client(f"{running.url}/mcp", mode=mode) as client:
                started = await start(client)
                tokens = {"stateToken": started["stateToken"], "ackToken": started["ackToken"]}
                arguments = {**tokens, "waitSeconds": 55}
                answers.append(
                    await client.call_tool("continue_workflow", arguments, progress_callback=progress)
                )
                group.cancel_scope.cancel()  # the server is gone: there is nobody to take leave of

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await waits.wait()
            assert await anyio.to_thread.run_sync(running.stop) == 0
        return answers[0]

    arguments = ("--workflows", str(bench.workflows), "--decisions", "user")
    answer = anyio.run(story, HttpServer(bench.folder, *arguments))
    assert answer.structured_content["kind"] == "blocked"
    assert "The user has not decided yet" in answer.content[0].text


def test_a_waiting_call_is_made_again_each_second_until_its_time_is_over() -> None:
    now = 100.0
    made: list[bool] = []

    def again(call: Call) -> list[bytes]:
        made.append(call.may_wait)
        return [] if call.may_wait else [b"answer"]

    turns = WaitingTurns(lambda: now)
    assert turns.patience() is None
    turns.add(1, Wait(2), Call(), {"_meta": {"progressToken": "p"}}, again)
    assert turns.patience() == 1.0
    assert turns.look() == []
    now = 101.0
    assert turns.patience() == 0.0
    assert b'"progressToken":"p","progress":1.0,"total":2' in turns.look()[0]
    now = 102.0
    assert turns.look() == [b"answer"]
    assert made == [True, False]
    assert turns.patience() is None


def test_a_cancelled_turn_is_forgotten() -> None:
    turns = WaitingTurns()
    turns.add("a", Wait(2), Call(), {}, lambda call: [])
    turns.cancel({"not": "an id"})
    assert turns.patience() is not None
    turns.cancel("a")
    assert turns.patience() is None
