"""What belongs to one principal is not there for another one: by any token, id or address, at any replica.

Ada works on every surface. Bob gets hold of everything that she was ever sent, and tries each of it in every
parameter of every tool, resource, prompt and page. He must learn nothing and change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import anyio
import msgspec
import pytest
from msgspec import Struct

from interlock.ledger.tokens.access_tokens import AccessTokens
from interlock.store.postgres.database import open_store
from interlock.store.protocol import SessionFilter, Store
from support.console_client import ConsoleClient
from support.harness import Bench, gate, workflow
from support.http_server import HttpServer, bearer, connected, serving
from support.postgres_server import require_postgres, shared_server

MODES = ["legacy", "2026-07-28"]
SECRET = "pelican"
TOKENS = re.compile(r"\b(?:st|ack|chk|sst|ses|trc)\.v1\.[A-Za-z0-9_-]+|v1\.gzB64\.[A-Za-z0-9+/=_-]+")
SESSION = re.compile(r"\bsess_[a-z0-9]+")
RUN = re.compile(r"\brun_[a-z0-9]+")


class Deployment(Struct):
    """Two servers on one store, or one server twice; Ada calls the first, Bob the second."""

    bench: Bench
    first: HttpServer
    second: HttpServer
    tokens: dict[str, str]
    url: str | None = None

    def open(self) -> Store:
        return open_store(self.url) if self.url else self.bench.ledger().store


@pytest.fixture(scope="module", params=["one server", pytest.param("two replicas", marks=pytest.mark.slow)])
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    bench = Bench(tmp_path_factory.mktemp("strangers"))
    told = {"id": "one", "title": "One", "prompt": "Write to {{customer}}."}
    bench.write(workflow(told, gate("which", "left", "right", message="Shall we tell {{customer}}?"), told))
    access = AccessTokens(bench.folder)
    tokens = {name: access.add(name, "user", 1) for name in ("ada", "bob")}
    arguments = ["--workflows", str(bench.workflows), "--quiet", "--rate-limit", "100000"]
    with ExitStack() as running:
        if request.param == "one server":
            server = running.enter_context(serving(bench.folder, *arguments))
            yield Deployment(bench, server, server, tokens)
        else:
            require_postgres()
            url = shared_server().in_schema(f"strangers_{uuid4().hex[:8]}")
            first, second = (
                running.enter_context(serving(bench.folder, *arguments, "--store", url)) for _ in range(2)
            )
            yield Deployment(bench, first, second, tokens, url)


class Held(Struct):
    """Everything that a principal was sent: tokens of every kind, and ids."""

    tokens: set[str]
    sessions: set[str]
    runs: set[str]

    def take(self, text: str) -> str:
        self.tokens.update(TOKENS.findall(text))
        self.sessions.update(SESSION.findall(text))
        self.runs.update(RUN.findall(text))
        return text

    @property
    def one_of_each_kind(self) -> list[str]:
        kinds = {token.partition(".")[0]: token for token in sorted(self.tokens)}
        return [*kinds.values(), min(self.sessions), min(self.runs)]


async def adas_work(deployment: Deployment, mode: str) -> Held:
    """Work on every surface that records, up to the gate where that is possible; keep all that comes back."""
    held, known = Held(set(), set(), set()), {"customer": SECRET}
    token = deployment.tokens["ada"]

    async def call(client: Any, tool: str, **arguments: Any) -> str:
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer.model_dump_json()
        return held.take(answer.model_dump_json())

    def last(kind: str, text: str) -> str:
        found: list[str] = re.findall(rf"\b{kind}\.v1\.[A-Za-z0-9_-]+", text)
        return found[-1]

    async with connected(deployment.first, "/mcp", token, mode) as client:
        context = {"context": {**known, "goal": f"A letter to the {SECRET}"}}
        titled = await call(client, "start_session", title=SECRET, requestId="the-same")
        await call(
            client, "start_workflow", workflowId="test.flow", sessionToken=last("sst", titled), **context
        )
        begun = await call(client, "start_workflow", workflowId="test.flow", requestId="again", **context)
        tokens = {"stateToken": last("st", begun), "ackToken": last("ack", begun)}
        await call(client, "continue_workflow", **tokens, output={"notesMarkdown": SECRET})
    async with connected(deployment.first, "/mcp/session", token, mode) as client:
        begun = await call(client, "start_session", workflow_id="test.flow", agent_id="a")
        entered = await call(
            client, "next_activity", session_token=last("ses", begun), activity_id="main", variables=known
        )
        asked = {"session_token": last("ses", entered), "checkpoint_id": "which"}
        done = [{"step_id": "one", "output": SECRET}]
        await call(client, "yield_checkpoint", **asked, step_manifest=done)
        await call(client, "get_trace", session_token=last("ses", begun))
    async with connected(deployment.first, "/mcp/gated", token, mode) as client:
        begun = await call(client, "start_session", workflow_id="test.flow")
        await call(
            client, "next_activity", session_token=last("ses", begun), activity_id="main", variables=known
        )
    async with connected(deployment.first, "/mcp/navigation", token, mode) as client:
        await call(client, "nav_start", workflow_id="test.flow", initial_variables=known)
    assert {held_token.partition(".")[0] for held_token in held.tokens} >= {
        "st",
        "ack",
        "chk",
        "sst",
        "ses",
        "v1",
    }
    return held


# What a call needs besides, so that nothing but the principal can be the reason to refuse it.
PLAIN: dict[str, Any] = {
    "workflowId": "test.flow",
    "workflow_id": "test.flow",
    "agent_id": "a",
    "activity_id": "main",
    "checkpoint_id": "which",
    "option_id": "left",
    "step_id": "one",
    "action": "complete_step",
    "output": {"notesMarkdown": "mine now"},
    "resource_id": "00",
    "resource_index": "00",
}
# Parameters that are read as what somebody holds; every other text is data.
HOLDING = re.compile(r"token|state$|handle|resumeRef|query", re.IGNORECASE)


def attempts(schema: dict[str, Any], held: str) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a tool with what another principal holds: in each parameter, and in all."""
    properties = schema.get("properties", {})
    plain = {name: PLAIN[name] for name in properties if name in PLAIN}
    holding = [name for name in properties if HOLDING.search(name)]
    filled = {name: [held] if properties[name].get("type") == "array" else held for name in holding}
    for name in holding:
        yield {**plain, name: filled[name]}
    if len(holding) > 1:
        yield {**plain, **filled}


def heads(deployment: Deployment) -> dict[str, tuple[int, bytes]]:
    """Where Ada's sessions stand."""
    store = deployment.open()
    try:
        with store.reading() as reader:
            rows = reader.sessions(SessionFilter("ada", limit=1000))
        return {row.session_id: (row.head_index, row.head_digest) for row in rows}
    finally:
        store.close()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_another_principal_holds_opens_or_changes_anything(
    deployment: Deployment, mode: str
) -> None:
    tried: dict[str, int] = {}

    async def attack(held: Held) -> None:
        for surface in ("execution", "session", "gated", "navigation", "lookup"):
            async with connected(deployment.second, f"/mcp/{surface}", deployment.tokens["bob"], mode) as bob:
                for tool in (await bob.list_tools()).tools:
                    for thing in held.one_of_each_kind:
                        for arguments in attempts(tool.input_schema, thing):
                            answer = await bob.call_tool(tool.name, arguments)
                            text = answer.model_dump_json()
                            assert SECRET not in text, (surface, tool.name, arguments, text)
                            tried[surface] = tried.get(surface, 0) + 1
                if surface == "execution":
                    repeated = {"requestId": "again", "workflowId": "test.flow"}
                    text = (await bob.call_tool("start_workflow", repeated)).model_dump_json()
                    assert not held.sessions & set(SESSION.findall(text))

    held = anyio.run(adas_work, deployment, mode)
    before = heads(deployment)
    held.sessions.update(before)  # not all are shown to agents
    assert len(before) >= 5
    anyio.run(attack, held)
    assert heads(deployment) == before
    assert all(count > 20 for surface, count in tried.items() if surface != "lookup"), tried

    async def goes_on() -> str:
        async with connected(deployment.second, "/mcp", deployment.tokens["ada"], mode) as ada:
            mine = [token for token in held.tokens if token.startswith("st.")]
            shown = [await ada.call_tool("continue_workflow", {"stateToken": token}) for token in mine]
            return "".join(answer.model_dump_json() for answer in shown)

    assert SECRET in anyio.run(goes_on), "her own tokens do open it, at the other replica too"


@pytest.mark.filterwarnings("ignore:resources/")
@pytest.mark.parametrize("mode", MODES)
def test_the_runs_of_another_principal_are_no_resources_and_no_completions(
    deployment: Deployment, mode: str
) -> None:
    import mcp
    import mcp_types as types

    async def story() -> None:
        held = await adas_work(deployment, mode)
        async with (
            connected(deployment.first, "/mcp", deployment.tokens["ada"], mode) as ada,
            connected(deployment.second, "/mcp", deployment.tokens["bob"], mode) as bob,
        ):
            seen = ""
            for session in sorted(held.sessions):
                for kind in ("brief", "transcript"):
                    for name in (session, session.removeprefix("sess_")[:8]):
                        seen += (await ada.read_resource(f"interlock://runs/{name}/{kind}")).model_dump_json()
                        with pytest.raises(mcp.MCPError, match="not found"):
                            await bob.read_resource(f"interlock://runs/{name}/{kind}")
                uri = f"interlock://runs/{session}/brief"
                subscribing = (
                    bob.subscribe_resource(uri)
                    if mode == "legacy"
                    else bob.listen(resource_subscriptions=[uri]).__aenter__()
                )
                with pytest.raises(mcp.MCPError, match="not found"):
                    await subscribing
            assert SECRET in seen
            reference = types.ResourceTemplateReference(uri="interlock://runs/{session}/brief")
            offered = [
                (await client.complete(reference, {"name": "session", "value": ""})).completion.values
                for client in (ada, bob)
            ]
            assert offered[0]
            assert not set(offered[0]) & set(offered[1])
            for prompt, arguments in (("resume", {}), ("resume", {"query": SECRET}), ("inbox", {})):
                text = (await bob.get_prompt(prompt, arguments)).model_dump_json()
                unknown = dict.fromkeys(arguments, "walrus")
                other = (await bob.get_prompt(prompt, unknown)).model_dump_json()
                assert text.replace(SECRET, "walrus") == other  # it says the word back, and knows no other
                assert arguments or SECRET not in text
                assert not held.sessions & set(SESSION.findall(text))
            assert SECRET not in (await bob.list_resources()).model_dump_json()

    anyio.run(story)


@pytest.mark.filterwarnings("ignore:resources/")
@pytest.mark.parametrize("mode", MODES)
def test_nobody_subscribes_to_the_runs_of_another_principal(deployment: Deployment, mode: str) -> None:
    import mcp

    async def story() -> None:
        held = await adas_work(deployment, mode)
        async with connected(deployment.second, "/mcp", deployment.tokens["bob"], mode) as bob:
            for session in sorted(held.sessions):
                for uri in (f"interlock://runs/{session}/{kind}" for kind in ("brief", "transcript")):
                    with pytest.raises(mcp.MCPError, match="not found"):
                        await subscribe(bob, mode, uri)
        async with connected(deployment.second, "/mcp", deployment.tokens["ada"], mode) as ada:
            await subscribe(ada, mode, f"interlock://runs/{min(held.sessions)}/brief")

    async def subscribe(client: Any, mode: str, uri: str) -> None:
        if mode == "legacy":
            await client.subscribe_resource(uri)
        else:
            async with client.listen(resource_subscriptions=[uri]):
                pass

    anyio.run(story)


def test_the_console_and_the_inbox_show_nothing_of_another_principal(deployment: Deployment) -> None:
    held = anyio.run(adas_work, deployment, "2026-07-28")
    listed = deployment.second.request("GET", "/inbox", headers=bearer(deployment.tokens["bob"]))
    assert listed.json == {"questions": []} or SECRET not in listed.body.decode()
    ada = ConsoleClient.signed_in(deployment.first, deployment.tokens["ada"])
    bob = ConsoleClient.signed_in(deployment.second, deployment.tokens["bob"])
    before, seen = heads(deployment), ""
    for session in sorted(before):
        for page in ("", "/events", "/graph", "/export"):
            seen += ada.page(f"sessions/{session}{page}.json").body.decode()
            assert bob.page(f"sessions/{session}{page}.json").status == 404
        assert bob.page(f"compare.json?left={session}&right={session}").status == 404
        for action, request in (
            ("note", {"sessionId": session, "notes": "x"}),
            ("keep", {"sessionIds": [session], "keep": True}),
        ):
            assert bob.act(action, request).status == 404
        assert bob.act("mode", {"sessionId": session, "mode": "never-stop"}).status == 403
        removing = {"sessionIds": [session], "at": 2**53, "waiting": True}
        assert bob.act("remove", removing).status == 403
        meant = {"sessionId": session, "runId": "x", "node": 1, "id": "which", "key": "which"}
        forged = {**meant, "shown": "x", "option": "left"}
        assert bob.act("decide", forged).status == 403
        assert bob.act("decide", {**forged, "owner": "ada"}).status == 403
    assert SECRET in seen
    for page in ("inbox.json", "runs.json", f"search.json?q={SECRET}", "workflows/test.flow.json"):
        assert not held.sessions & set(SESSION.findall(bob.page(page).body.decode()))
    assert heads(deployment) == before


def test_the_mcp_session_of_another_principal_is_not_found(deployment: Deployment) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    ada, bob = (bearer(deployment.tokens[name]) for name in ("ada", "bob"))
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    opened = deployment.first.request("POST", "/mcp", body, {**headers, **ada})
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ping = msgspec.json.encode({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert deployment.first.request("POST", "/mcp", ping, {**headers, **session, **ada}).status == 200
    for server in (deployment.first, deployment.second):
        assert server.request("POST", "/mcp", ping, {**headers, **session, **bob}).status == 404
        assert server.request("GET", "/mcp", headers={**headers, **session, **bob}).status == 404
        assert server.request("DELETE", "/mcp", headers={**session, **bob}).status == 404
    assert deployment.first.request("POST", "/mcp", ping, {**headers, **session, **ada}).status == 200
