"""Clients hear of changed runs and lists in the form of their era, whichever process made the change."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.to_thread
import msgspec
import pytest

from interlock.surfaces.call import Call
from interlock.surfaces.execution import ExecutionSurface
from interlock.surfaces.resources import FIXED, Topic
from interlock.surfaces.tool import call_tool
from interlock.transport.documents import subscribed
from interlock.transport.http.eras import Eras
from interlock.transport.http.stopping import Stopping
from interlock.transport.http.subscribers import Subscribers
from interlock.transport.results import ServerInfo
from interlock.transport.rpc import RpcRefused
from interlock.transport.stdio.connection import Connection
from interlock.transport.subscriptions import MOST_RESOURCES, Changed, Subscription, Versions, listen
from support.harness import Bench, steps, workflow
from support.http_server import HttpServer, serving
from support.postgres_server import PostgresServer, require_postgres
from support.stdio_pipe import INITIALIZE, Pipe, encoded, modern, notification
from support.stdio_pipe import request as said

pytestmark = pytest.mark.filterwarnings("ignore:resources/")

MODES = ["legacy", "2026-07-28"]
PATIENCE = 120
LISTS = {"notifications/prompts/list_changed", "notifications/resources/list_changed"}

Hear = Callable[[], Awaitable[str]]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("subscriptions"))
    bench.write(workflow(*steps("first", "second")))
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def server(bench: Bench) -> Iterator[HttpServer]:
    with serving(bench.folder, "--workflows", str(bench.workflows), "--quiet") as running:
        yield running


@pytest.fixture(params=["http", "stdio"])
def target(request: pytest.FixtureRequest, bench: Bench) -> Any:
    """What the official client connects to."""
    if request.param == "http":
        return f"{request.getfixturevalue('server').url}/mcp"
    from mcp import StdioServerParameters

    arguments = ["-m", "interlock", "mcp", "--data-dir", str(bench.folder)]
    arguments += ["--workflows", str(bench.workflows)]
    return StdioServerParameters(command=sys.executable, args=arguments)


@asynccontextmanager
async def connected(target: Any, mode: str) -> AsyncIterator[tuple[Any, Hear]]:
    """Yield a client, and what a handshake client hears, message by message."""
    import mcp

    send, receive = anyio.create_memory_object_stream[str](100)

    async def handle(message: Any) -> None:
        uri = getattr(message.params, "uri", "")
        await send.send(f"{message.method} {uri}".strip())

    with anyio.fail_after(PATIENCE):
        async with send, receive, mcp.Client(target, mode=mode, message_handler=handle) as client:
            yield client, receive.receive


@asynccontextmanager
async def following(client: Any, hear: Hear, mode: str, *uris: str, lists: bool) -> AsyncIterator[Hear]:
    """Subscribe in the form of the era; yield what comes, in the words of the handshake era."""
    if mode == "legacy":
        if lists:
            await client.list_prompts()
            await client.list_resources()
        for uri in uris:
            await client.subscribe_resource(uri)
        yield hear
        return
    wanted = {"prompts_list_changed": lists, "resources_list_changed": lists}
    async with client.listen(**wanted, tools_list_changed=True, resource_subscriptions=uris) as heard:
        assert heard.honored.tools_list_changed is None, "tools never change"

        async def next_event() -> str:
            event = await anext(heard)
            kind = type(event).__name__.removesuffix("ListChanged").lower()
            uri = getattr(event, "uri", "")
            return f"notifications/resources/updated {uri}" if uri else f"notifications/{kind}/list_changed"

        yield next_event


async def started(client: Any) -> Any:
    return (await client.call_tool("start_workflow", {"workflowId": "test.flow"})).structured_content


def uri_of(answer: Any, kind: str = "brief") -> str:
    return f"interlock://runs/{answer['session']['sessionId']}/{kind}"


def advance_elsewhere(bench: Bench, answer: Any) -> None:
    """Advance a run through a ledger of its own, as another process would."""
    tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
    call_tool(ExecutionSurface(bench.ledger()), "continue_workflow", tokens, Call())


@pytest.mark.parametrize("mode", MODES)
def test_a_client_hears_that_a_run_has_moved(target: Any, bench: Bench, mode: str) -> None:
    async def story() -> None:
        async with connected(target, mode) as (client, hear):
            answer = await started(client)
            uris = [uri_of(answer, "brief"), uri_of(answer, "transcript")]
            async with following(client, hear, mode, *uris, lists=False) as heard:
                await anyio.to_thread.run_sync(advance_elsewhere, bench, answer)
                assert {await heard(), await heard()} == {
                    f"notifications/resources/updated {uri}" for uri in uris
                }
            assert '"second"' in (await client.read_resource(uris[0])).contents[0].text

    anyio.run(story)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_hears_that_a_workflow_came_and_went(
    target: Any, bench: Bench, mode: str, request: pytest.FixtureRequest
) -> None:
    async def story() -> None:
        async with connected(target, mode) as (client, hear):
            uri = "interlock://workflows/test.flow"
            async with following(client, hear, mode, uri, lists=True) as heard:
                added = bench.write(workflow(*steps("first"), id="test.added"))
                assert {await heard(), await heard()} == LISTS
                if mode == "legacy":  # who has read the lists again hears of the next change
                    await client.list_prompts()
                added.unlink()
                assert {await heard(), await heard()} == LISTS
                bench.write(workflow(*steps("first", "second"), name=f"Renamed in {request.node.name}"))
                changed = {await heard(), await heard(), await heard()}
                assert changed == {*LISTS, f"notifications/resources/updated {uri}"}

    anyio.run(story)


def test_what_was_unsubscribed_from_is_not_heard_of(target: Any, bench: Bench) -> None:
    async def story() -> None:
        async with connected(target, "legacy") as (client, hear):
            dropped, kept = await started(client), await started(client)
            for answer in (dropped, kept):
                await client.subscribe_resource(uri_of(answer))
            await client.unsubscribe_resource(uri_of(dropped))
            await anyio.to_thread.run_sync(advance_elsewhere, bench, dropped)
            await anyio.to_thread.run_sync(advance_elsewhere, bench, kept)
            assert await hear() == f"notifications/resources/updated {uri_of(kept)}"

    anyio.run(story)


@pytest.mark.parametrize("mode", MODES)
def test_what_does_not_exist_cannot_be_subscribed_to(target: Any, mode: str) -> None:
    import mcp

    async def story() -> int:
        async with connected(target, mode) as (client, hear):
            with pytest.raises(mcp.MCPError) as refused:
                async with following(client, hear, mode, "interlock://runs/nothing/brief", lists=False):
                    pass
            return int(refused.value.error.code)

    assert anyio.run(story) == (-32002 if mode == "legacy" else -32602)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_only_what_can_change_is_announced(target: Any, mode: str) -> None:
    async def story() -> None:
        async with connected(target, mode) as (client, _):
            can = client.server_capabilities
            changing = (can.tools.list_changed, can.prompts.list_changed, can.resources.list_changed)
            assert (changing, can.resources.subscribe) == ((False, True, True), True)

    anyio.run(story)


def test_a_modern_stream_ends_with_an_answer_when_the_server_stops(bench: Bench) -> None:
    import mcp

    async def story(running: HttpServer) -> int:
        async with (
            mcp.Client(f"{running.url}/mcp", mode="2026-07-28") as client,
            client.listen(resources_list_changed=True) as heard,
        ):
            async with anyio.create_task_group() as group:
                codes: list[int] = []

                async def stop() -> None:
                    codes.append(await anyio.to_thread.run_sync(running.stop))

                group.start_soon(stop)
                assert [event async for event in heard] == []
            return codes[0]

    running = HttpServer(bench.folder, "--workflows", str(bench.workflows), "--quiet")
    assert anyio.run(story, running) == 0


@pytest.fixture(scope="module")
def replicas(bench: Bench) -> Iterator[tuple[HttpServer, HttpServer]]:
    require_postgres()
    postgres = PostgresServer()
    postgres.start()
    try:
        arguments = ("--store", postgres.url, "--workflows", str(bench.workflows), "--quiet")
        with serving(bench.folder, *arguments) as here, serving(bench.folder, *arguments) as there:
            yield here, there
    finally:
        postgres.remove()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_client_of_one_replica_hears_of_a_move_at_another(
    replicas: tuple[HttpServer, HttpServer], mode: str
) -> None:
    here, there = (f"{server.url}/mcp" for server in replicas)

    async def story() -> None:
        async with connected(here, mode) as (client, hear):
            answer = await started(client)
            async with following(client, hear, mode, uri_of(answer), lists=False) as heard:
                async with connected(there, mode) as (other, _):
                    tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
                    await other.call_tool("continue_workflow", tokens)
                assert await heard() == f"notifications/resources/updated {uri_of(answer)}"

    anyio.run(story)


@pytest.fixture
def surface(bench: Bench) -> ExecutionSurface:
    return ExecutionSurface(bench.ledger())


def test_nothing_is_looked_at_once_nobody_listens(surface: ExecutionSurface) -> None:
    async def story() -> None:
        looks: list[Collection[Topic]] = []

        async def look(topics: Collection[Topic]) -> Versions:
            looks.append(topics)
            return dict.fromkeys(topics, str(len(looks)))

        subscribers = Subscribers(look, Stopping())
        subscription = Subscription(surface)
        subscription.follow_list("prompts")
        await subscribers.look()
        assert looks == []
        with subscribers.listening(subscription):
            await subscribers.look()
        assert len(looks) == 1
        await subscribers.look()
        assert len(looks) == 1

    anyio.run(story)


def test_a_slow_reader_gets_what_has_changed_once(surface: ExecutionSurface) -> None:
    async def story() -> None:
        versions = iter(["1", "2", "3", "3"])

        async def look(topics: Collection[Topic]) -> Versions:
            return dict.fromkeys(topics, next(versions))

        subscribers = Subscribers(look, Stopping())
        subscription = Subscription(surface)
        subscription.follow_list("prompts")
        heard: list[str] = []
        with subscribers.listening(subscription):
            for _ in range(3):  # nobody reads meanwhile
                await subscribers.look()
            async with anyio.create_task_group() as group:

                async def read() -> None:
                    heard.extend(change.method for change in await subscribers.changes(subscription))

                group.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                await subscribers.look()
        assert heard == ["notifications/prompts/list_changed"]

    anyio.run(story)


def test_the_subscriptions_of_an_ended_session_are_forgotten(surface: ExecutionSurface) -> None:
    subscribers = Subscribers(_no_look, Stopping())
    own = subscribers.of_session("a", surface)
    assert subscribers.of_session("a", surface) is own
    subscribers.forget("a")
    assert subscribers.of_session("a", surface) is not own


def test_the_subscriptions_of_an_idle_session_are_forgotten_with_it(surface: ExecutionSurface) -> None:
    async def story() -> None:
        now = 0.0
        subscribers = Subscribers(_no_look, Stopping(), lambda: now)
        gone, calling, listening = (
            subscribers.of_session(name, surface) for name in ("gone", "calling", "listening")
        )
        with subscribers.listening(listening.subscription):
            for seconds in (1000.0, 2000.0):
                now = seconds
                subscribers.renew("calling")
                await subscribers.look()
        assert subscribers.of_session("calling", surface) is calling
        assert subscribers.of_session("listening", surface) is listening
        assert subscribers.of_session("gone", surface) is not gone

    anyio.run(story)


def test_every_request_of_a_session_keeps_what_it_follows() -> None:
    renewed: list[str] = []

    class Counting:
        server: Any = None
        name = "counting"

        def is_too_busy_for(self, method: str, tool: object) -> bool:
            return False

        def renew(self, session_id: str) -> None:
            renewed.append(session_id)

    class Manager:
        event_store = None

        async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 202, "headers": []})

    async def receive() -> Any:
        return {"type": "http.request", "body": encoded({"jsonrpc": "2.0", "id": 1, "method": "ping"})}

    async def send(message: Any) -> None:
        pass

    headers = {"content-type": "application/json", "accept": "*/*", "mcp-session-id": "a"}
    scope = {"type": "http", "method": "POST", "path": "/mcp"}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    eras = Eras(cast("Any", Counting()), cast("Any", Manager()), cast("Any", Manager()), Stopping())
    anyio.run(eras, scope, receive, send)
    assert renewed == ["a"]


class HeardMethods:
    """Stands in for the SDK's session of a client: it keeps what is sent."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    async def send_notification(self, notification: Any) -> None:
        self.methods.append(notification.method)


def test_a_session_hears_after_a_break_of_its_stream_what_it_has_missed(surface: ExecutionSurface) -> None:
    async def story() -> None:
        versions = iter(["1", "2"])

        async def look(topics: Collection[Topic]) -> Versions:
            return dict.fromkeys(topics, next(versions))

        subscribers, session = Subscribers(look, Stopping()), HeardMethods()
        own = subscribers.of_session("a", surface)
        own.session = cast("Any", session)
        own.subscription.follow_list("prompts")
        for _ in range(2):  # streams, one after the other
            async with anyio.create_task_group() as stream:
                stream.start_soon(subscribers.tell_session, "a", surface)
                await anyio.wait_all_tasks_blocked()
                await subscribers.look()
                await anyio.wait_all_tasks_blocked()
                stream.cancel_scope.cancel()
            await subscribers.look()  # nobody listens meanwhile
        assert session.methods == ["notifications/prompts/list_changed"] * 2

    anyio.run(story)


@pytest.mark.parametrize(
    "uris", [["interlock://workflows"] * (MOST_RESOURCES + 1), "interlock://workflows", [7]]
)
def test_a_list_of_resources_that_is_no_list_or_too_long_is_refused(
    surface: ExecutionSurface, uris: Any
) -> None:
    with pytest.raises(RpcRefused):
        listen(surface, {"resourceSubscriptions": uris})


def test_a_session_can_follow_only_so_many_resources(surface: ExecutionSurface) -> None:
    subscription = Subscription(surface)
    assert subscribed(subscription, {"uri": "interlock://workflows"}) == {}
    for number in range(MOST_RESOURCES):
        subscription._add(Changed("resource", f"interlock://{number}"), FIXED)
    with pytest.raises(RpcRefused):
        subscribed(subscription, {"uri": "interlock://workflows"})


async def _no_look(topics: Collection[Topic]) -> Versions:
    raise AssertionError("nobody listens")


def test_a_pipe_wakes_up_only_while_something_is_followed(surface: ExecutionSurface) -> None:
    talk = Connection(surface, ServerInfo("interlock", "1"))
    talk.receive(said(1, "initialize", INITIALIZE))
    assert talk.patience() is None
    uri = {"uri": "interlock://workflows/test.flow"}
    talk.receive(said(2, "resources/subscribe", uri))
    assert talk.patience() is not None
    talk.receive(said(3, "resources/unsubscribe", uri))
    assert talk.patience() is None


def test_a_pipe_forgets_a_stream_that_its_client_cancels(surface: ExecutionSurface) -> None:
    talk = Connection(surface, ServerInfo("interlock", "1"))
    wanted = {"promptsListChanged": True}
    talk.receive(modern("listen-1", "subscriptions/listen", notifications=wanted))
    assert talk.patience() is not None
    talk.receive(notification("notifications/cancelled", {"requestId": "listen-1"}))
    assert talk.patience() is None


def test_a_cancellation_of_nothing_cancels_nothing(surface: ExecutionSurface) -> None:
    talk = Connection(surface, ServerInfo("interlock", "1"))
    talk.receive(said(1, "initialize", INITIALIZE))
    talk.receive(said(2, "resources/subscribe", {"uri": "interlock://workflows/test.flow"}))
    talk.receive(notification("notifications/cancelled", {}))
    assert talk.patience() is not None


def test_a_second_stream_with_the_same_id_is_refused(surface: ExecutionSurface) -> None:
    talk = Connection(surface, ServerInfo("interlock", "1"))
    for wanted in ({}, {"promptsListChanged": True}):
        (answer,) = talk.receive(modern("listen-1", "subscriptions/listen", notifications=wanted))
    assert b"use another id" in answer


@pytest.mark.parametrize("wanted", [{}, {"promptsListChanged": True}])
def test_a_modern_stream_over_a_pipe_ends_with_an_answer_when_the_server_stops(
    bench: Bench, wanted: dict[str, bool]
) -> None:
    with Pipe("mcp", "--data-dir", str(bench.folder), module="interlock") as pipe:
        pipe.ask(modern("listen-1", "subscriptions/listen", notifications=wanted))
        pipe.ask(modern("listen-2", "subscriptions/listen", notifications=wanted))
        pipe.send(notification("notifications/cancelled", {"requestId": "listen-2"}))
        pipe.ask(modern("list", "tools/list"))
        assert pipe.end(signal.SIGTERM) == 0
        answer = msgspec.json.decode(pipe.rest())
    assert (answer["id"], answer["result"]["resultType"]) == ("listen-1", "complete")
    assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen-1"
