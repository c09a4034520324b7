"""The official Python client drives `interlock serve` in both eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock.surfaces.registry import SURFACES
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer, serving

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
        questions.append(params.message)
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
