"""The real server on the navigation surface: an official client, and a process that is killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from support.navigator import Navigator
from support.server import Server, ServerGone

pytestmark = pytest.mark.slow

SURFACE = ("--surface", "navigation")


def said(result: Any) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(result.content[0].text)
    return answer


def caller(server: Server) -> Any:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        answer = server.call(tool, **arguments)
        assert not {"_text", "_meta", "_error"} - answer.keys()
        return {name: value for name, value in answer.items() if not name.startswith("_")}

    return call


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_client_walks_a_workflow_to_its_end(tmp_path: Path, mode: str) -> None:
    import mcp

    async def story() -> tuple[list[str], dict[str, Any]]:
        command = ["-m", "interlock", "mcp", "--data-dir", str(tmp_path), *SURFACE]
        server = mcp.StdioServerParameters(command=sys.executable, args=command)
        async with mcp.Client(server, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            here = said(await client.call_tool("nav_start", {"workflow_id": "wr.small_task"}))
            agent = Navigator(lambda tool, **arguments: {})
            while here.get("status") != "completed":
                arguments = {"state": here["state"], **agent.choose(here)}
                result = await client.call_tool("nav_action", arguments)
                assert not result.is_error
                here = said(result)
                assert here["success"]
            bad = await client.call_tool("nav_situation", {"state": "v1.gzB64.AAAA"})
            assert bad.is_error
            return tools, here

    tools, last = anyio.run(story)
    assert len(tools) == 20
    assert last["status"] == "completed"


def test_after_every_kill_the_run_goes_on_from_what_was_answered(tmp_path: Path) -> None:
    with Server(tmp_path, *SURFACE) as server:
        here = caller(server)("nav_start", workflow_id="work-package")
    taken: list[str] = []
    for _ in range(12):
        with Server(tmp_path, *SURFACE) as server:
            seen = caller(server)("nav_situation", state=here["state"])
            for kind in ("required", "blocked"):  # a read also lists what can be read beside the work
                assert seen["availableActions"][kind] == here["availableActions"][kind]
            agent = Navigator(caller(server))
            here = agent.step(here)
            taken += agent.taken
            server.kill()
    assert "respond_to_checkpoint" in taken


def test_a_call_whose_answer_was_lost_is_answered_the_same_way_again(tmp_path: Path) -> None:
    """Rules 7 and 9: killed before or after its commit, the repeated call counts once."""
    with Server(tmp_path, *SURFACE) as server:
        here = caller(server)("nav_start", workflow_id="wr.small_task")
    for delay in (0.0, 0.001, 0.003, 0.01):
        arguments = {"state": here["state"], **Navigator(lambda tool, **more: {}).choose(here)}
        with Server(tmp_path, *SURFACE) as server:
            server.send("tools/call", {"name": "nav_action", "arguments": arguments})
            anyio.run(anyio.sleep, delay)
            server.kill()
            with pytest.raises((ServerGone, ValueError)):
                server.request("ping", {})
        with Server(tmp_path, *SURFACE) as server:
            once = caller(server)("nav_action", **arguments)
            twice = caller(server)("nav_action", **arguments)
        assert once["success"]
        assert once == twice
        here = once
