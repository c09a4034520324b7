"""Clients that we did not write drive a whole run through `interlock mcp`, in both eras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from support.harness import Bench, gate, steps, workflow
from support.node_clients import NodeClients, node

__all__ = ["node"]

pytestmark = pytest.mark.slow


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    bench = Bench(tmp_path)
    bench.write(workflow(*steps("first", "second", "third")))
    bench.write(workflow(*steps("first"), gate("which", "left", "right"), *steps("last"), id="test.gated"))
    return ["-m", "interlock", "mcp", "--data-dir", str(tmp_path), "--workflows", str(bench.workflows)]


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_python_client_finishes_a_run(arguments: list[str], mode: str) -> None:
    import mcp

    async def story() -> list[str]:
        server = mcp.StdioServerParameters(command=sys.executable, args=arguments)
        async with mcp.Client(server, mode=mode) as client:
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


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_client_is_asked_for_the_users_decision(arguments: list[str], mode: str) -> None:
    import mcp

    questions: list[str] = []

    async def answer(_context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        questions.append(params.message.partition("\n\n")[0])
        return ElicitResult(action="accept", content={"choice": "right"})

    async def story() -> str:
        server = mcp.StdioServerParameters(command=sys.executable, args=arguments)
        async with mcp.Client(server, mode=mode, elicitation_callback=answer) as client:
            result = await client.call_tool("start_workflow", {"workflowId": "test.gated"})
            for _ in range(2):
                pending = result.structured_content
                tokens = {"stateToken": pending["stateToken"], "ackToken": pending["ackToken"]}
                result = await client.call_tool("continue_workflow", tokens)
            return str(result.structured_content["pending"]["stepId"])

    assert anyio.run(story) == "last"
    assert questions == ["which?"]


@pytest.mark.parametrize(("flavour", "mode"), [("sdk", "default"), ("client", "default"), ("client", "auto")])
def test_the_node_clients_finish_a_run(
    arguments: list[str], node: NodeClients, flavour: str, mode: str
) -> None:
    printed = node.run("run.mjs", flavour, mode, "test.flow", sys.executable, *arguments)
    heard = msgspec.json.decode(printed)
    assert heard["seen"] == ["first", "second", "third"]
    assert heard["complete"] is True
    assert heard["refused"] == "TOKEN_INVALID_FORMAT"
