"""Run a workflow over HTTP with the official Python client, and answer its gate through elicitation.

    pip install interlock
    python examples/python_client.py

Starts a server on a free port with a data directory of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import mcp
from mcp.types import ElicitRequestParams, ElicitResult

WORKFLOWS = Path(__file__).parent / "workflows"


async def ask_the_user(_context: Any, question: ElicitRequestParams) -> ElicitResult:
    """Stand in for the user: show the question, without the report below it, and choose."""
    print(f"? {question.message.splitlines()[0]} → yes")
    return ElicitResult(action="accept", content={"choice": "yes"})


async def run(url: str, mode: str) -> None:
    async with mcp.Client(url, mode=mode, elicitation_callback=ask_the_user) as client:
        result = await client.call_tool("start_workflow", {"workflowId": "example.greeting"})
        while not result.structured_content["isComplete"]:
            answer = result.structured_content
            print(f"- {answer['pending']['stepId']}")
            tokens = {"stateToken": answer["stateToken"], "ackToken": answer["ackToken"]}
            output = {"notesMarkdown": "Done."}
            result = await client.call_tool("continue_workflow", {**tokens, "output": output})
        print("complete")


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "auto"
    with TemporaryDirectory() as data:
        command = [sys.executable, "-m", "interlock", "serve", "--no-auth", "--port", "0", "--quiet"]
        server = subprocess.Popen(
            [*command, "--data-dir", data, "--workflows", str(WORKFLOWS)], stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]  # "interlock: listening on http://127.0.0.1:…/mcp"
        try:
            anyio.run(run, url, mode)
        finally:
            server.terminate()
            server.communicate()


if __name__ == "__main__":
    main()
