"""Clients that we did not write drive `interlock serve`, in both eras."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from interlock.surfaces.registry import SURFACES
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, ImpatientServer, serving
from support.node_clients import NodeClients, claude_code, node

__all__ = ["node"]

MODES = ["legacy", "auto", "2026-07-28"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder: Path = tmp_path_factory.mktemp("served")
    bench = Bench(folder)
    bench.write(workflow(*steps("first", "second", "third")))
    bench.write(workflow(*steps("first"), gate("which", "left", "right"), *steps("last"), id="test.gated"))
    with serving(folder, "--workflows", str(bench.workflows)) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
def test_the_python_client_finishes_a_run(server: HttpServer, mode: str) -> None:
    import mcp

    async def story() -> list[str]:
        async with mcp.Client(f"{server.url}/mcp", mode=mode) as client:
            await client.list_tools()
            seen = []
            result = await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            while not result.structured_content["isComplete"]:
                answer = result.structured_content
                seen.append(answer["pending"]["stepId"])
                tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
                result = await client.call_tool("continue_workflow", tokens)
            refused = await client.call_tool("start_workflow", {"workflowId": "nothing.here"})
            assert refused.is_error
            assert refused.structured_content["code"] == "NOT_FOUND"
            return seen

    assert anyio.run(story) == ["first", "second", "third"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("action", "ends"), [("accept", "last"), ("decline", "which"), ("cancel", "which")])
def test_the_user_is_asked_through_the_client(server: HttpServer, mode: str, action: Any, ends: str) -> None:
    import mcp
    from mcp.types import ElicitResult

    questions: list[str] = []

    async def answer(_context: Any, params: Any) -> Any:
        questions.append(params.message.partition("\n\n")[0])
        return ElicitResult(action=action, content={"choice": "right"} if action == "accept" else None)

    async def story() -> str:
        async with mcp.Client(f"{server.url}/mcp", mode=mode, elicitation_callback=answer) as client:
            result = await client.call_tool("start_workflow", {"workflowId": "test.gated"})
            for _ in range(2):
                pending = result.structured_content
                tokens = {"stateToken": pending["stateToken"], "ackToken": pending["ackToken"]}
                result = await client.call_tool("continue_workflow", tokens)
            return str(result.structured_content["pending"]["stepId"])

    assert anyio.run(story) == ends
    assert questions == ["which?"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_lists_its_tools(server: HttpServer, surface: str, mode: str) -> None:
    import mcp

    async def listed() -> set[str]:
        async with mcp.Client(f"{server.url}/mcp/{surface}", mode=mode) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    names = anyio.run(listed)
    assert {"execution": "start_workflow", "navigation": "nav_start", "lookup": "workflow_next"}.get(
        surface, "next_activity"
    ) in names


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    bench = Bench(tmp_path_factory.mktemp("impatient"))
    bench.write(workflow(*steps("first"), gate("which", "left", "right"), *steps("last"), id="test.gated"))
    running = ImpatientServer("users", bench.folder, "--workflows", str(bench.workflows))
    yield running
    running.stop()


def test_a_form_that_nobody_answers_in_time_leaves_the_gate_open(impatient: HttpServer) -> None:
    import mcp

    shown: list[str] = []

    async def never(_context: Any, params: Any) -> Any:
        shown.append(params.message.partition("\n\n")[0])
        await anyio.sleep_forever()

    async def story() -> str:
        async with mcp.Client(f"{impatient.url}/mcp", mode="legacy", elicitation_callback=never) as client:
            result = await client.call_tool("start_workflow", {"workflowId": "test.gated"})
            for _ in range(2):
                result = await client.call_tool("continue_workflow", _tokens(result))
            return str(result.structured_content["pending"]["stepId"])

    assert anyio.run(story) == "which"
    assert shown == ["which?"]


def test_an_answer_that_comes_too_late_is_refused_and_the_question_is_asked_again(
    impatient: HttpServer,
) -> None:
    import mcp
    from mcp.types import ElicitResult, InputRequiredResult

    async def answer(_context: Any, _params: Any) -> Any:
        return ElicitResult(action="accept", content={"choice": "right"})

    async def story() -> None:
        url = f"{impatient.url}/mcp"
        async with mcp.Client(url, mode="2026-07-28", elicitation_callback=answer) as client:
            at_gate = await client.call_tool("start_workflow", {"workflowId": "test.gated"})
            at_gate = await client.call_tool("continue_workflow", _tokens(at_gate))
            with pytest.raises(mcp.MCPError) as refused:
                await client.call_tool("continue_workflow", _tokens(at_gate))
            assert refused.value.error.code == -32602
            asked = await client.session.call_tool(
                "continue_workflow", _tokens(at_gate), allow_input_required=True
            )
            assert isinstance(asked, InputRequiredResult)

    anyio.run(story)


def _tokens(result: Any) -> dict[str, str]:
    answer = result.structured_content
    return {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}


@pytest.mark.slow
@pytest.mark.parametrize(("flavour", "mode"), [("sdk", "default"), ("client", "default"), ("client", "auto")])
def test_the_node_clients_finish_a_run_and_answer_its_gate(
    server: HttpServer, node: NodeClients, flavour: str, mode: str
) -> None:
    heard = msgspec.json.decode(node.run("run.mjs", flavour, mode, "test.gated", f"{server.url}/mcp"))
    assert heard == {
        "seen": ["first", "which", "last"],
        "questions": ["which?"],
        "complete": True,
        "refused": "TOKEN_INVALID_FORMAT",
    }


@pytest.mark.slow
def test_the_inspector_lists_and_calls(server: HttpServer, node: NodeClients) -> None:
    target = (f"{server.url}/mcp/execution", "--transport", "http")
    listed = msgspec.json.decode(node.inspector(*target, "--method", "tools/list"))
    assert "start_workflow" in [tool["name"] for tool in listed["tools"]]
    call = ("--method", "tools/call", "--tool-name", "start_workflow", "--tool-arg", "workflowId=test.flow")
    started = msgspec.json.decode(node.inspector(*target, *call))
    assert started["structuredContent"]["pending"]["stepId"] == "first"
    prompts = msgspec.json.decode(node.inspector(*target, "--method", "prompts/list"))
    assert "test.flow" in [prompt["name"] for prompt in prompts["prompts"]]


@pytest.mark.slow
def test_claude_code_adds_the_server_and_finds_it_healthy(server: HttpServer, tmp_path: Path) -> None:
    claude = claude_code()
    settings = {"HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1", "PATH": os.environ["PATH"]}
    settings["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"

    def said(*arguments: str) -> str:
        done = subprocess.run(
            [claude, "mcp", *arguments],
            cwd=tmp_path,
            env=settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=True,
        )
        return done.stdout.decode()

    said("add", "--transport", "http", "interlock", f"{server.url}/mcp")
    assert "Connected" in said("list")
    assert "Connected" in said("get", "interlock")
