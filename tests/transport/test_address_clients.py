"""A client that we did not write is given the address of a question, and the user answers it there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.cli_process import Terminal, interlock
from support.harness import Bench, gate, steps, workflow
from support.http_server import HttpServer

pytestmark = pytest.mark.slow

CONSOLE = "https://interlock.example.org/console"
OPTIONS = ("--decisions", "user", "--console-url", f"{CONSOLE}/")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    bench.write(workflow(gate("which", "left", "right"), *steps("last")))
    yield bench
    bench.close()


def walked(target: Any, mode: str, folder: Path) -> list[Any]:
    """Come to the gate, look at the address, decide at the terminal, and go on."""
    import mcp
    from mcp.types import ElicitResult

    shown: list[Any] = []

    async def look(_context: Any, params: Any) -> Any:
        shown.append(params)
        return ElicitResult(action="accept")

    async def story() -> None:
        async with mcp.Client(target, mode=mode, elicitation_callback=look) as client:
            at_gate = (
                await client.call_tool("start_workflow", {"workflowId": "test.flow"})
            ).structured_content
            tokens = {"stateToken": at_gate["stateToken"], "ackToken": at_gate["ackToken"]}
            held = (await client.call_tool("continue_workflow", tokens)).structured_content
            assert held["kind"] == "blocked"
            session = held["session"]["sessionId"]
            terminal = Terminal(folder, "decide", session, "left")
            terminal.until("[Y/n]")
            terminal.type("\n")
            assert terminal.end()[0] == 0
            tokens = {"stateToken": held["stateToken"], "ackToken": held["ackToken"]}
            after = (await client.call_tool("continue_workflow", tokens)).structured_content
            assert after["pending"]["stepId"] == "last"

    anyio.run(story)
    return shown


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_user_is_led_to_the_question_and_answers_it_there(
    bench: Bench, transport: str, mode: str
) -> None:
    import mcp

    more = ("--workflows", str(bench.workflows), *OPTIONS)
    if transport == "stdio":
        arguments = ["-m", "interlock", "mcp", "--data-dir", str(bench.folder), *more]
        shown = walked(mcp.StdioServerParameters(command=sys.executable, args=arguments), mode, bench.folder)
    else:
        server = HttpServer(bench.folder, *more)
        shown = walked(f"{server.url}/mcp", mode, bench.folder)
        assert server.stop() == 0
    (question,) = shown
    assert (question.mode, question.message) == ("url", "which?")
    assert question.url.startswith(f"{CONSOLE}/inbox?session=sess_")


def test_an_address_that_is_none_is_refused(bench: Bench) -> None:
    refused = interlock(bench.folder, "mcp", "--console-url", "javascript:alert(1)")
    assert refused.code == 2
    assert "console-url" in refused.err
