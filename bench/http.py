"""Measure a durable advance over HTTP beside stdio and beside a bare echo tool of the same stack.

    python -m bench.http [--steps 500] [--clients 64]

One client first, the three interleaved; then many clients, each with a run of its own.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import Any

import msgspec

from bench.execution_walk import write_workflow
from bench.server import Server
from bench.timing import milliseconds, percentile

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        serve_echo()
        return
    with TemporaryDirectory() as folder:
        data = Path(folder)
        write_workflow(data / "workflows")
        measure(data, options.steps, options.clients)


class HttpProcess:
    """A server process that says on stderr where it listens."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        address = self._process.stderr.readline().decode().split()[-1].removesuffix("/mcp")
        self.address = address.removeprefix("http://")

    def resident_megabytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1000

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


class HttpCaller:
    """One kept connection of the modern era."""

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address)

    def call(self, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        self._connection.request("POST", "/mcp", body, headers)
        answer = msgspec.json.decode(self._connection.getresponse().read())
        return answer["result"].get("structuredContent")


class Walk:
    """A run that is advanced step by step through `call`."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._at = call("start_workflow", workflowId="bench.long")

    def advance(self) -> None:
        tokens = {"stateToken": self._at["stateToken"], "ackToken": self._at["ackToken"]}
        self._at = self._call("continue_workflow", **tokens, output={"notesMarkdown": "Done."})


def measure(data: Path, steps: int, clients: int) -> None:
    workflows = ("--workflows", str(data / "workflows"))
    stdio = Server(data, *workflows)
    served = HttpProcess(
        "interlock", "serve", "--no-auth", "--port", "0", "--quiet", "--data-dir", str(data), *workflows
    )
    echo = HttpProcess("bench.http", "--echo")
    try:
        idle = served.resident_megabytes()
        walks: dict[str, Callable[[], object]] = {
            "stdio advance": Walk(lambda tool, **more: stdio.call(tool, **more)["structuredContent"]).advance,
            "HTTP advance": Walk(HttpCaller(served.address).call).advance,
            "HTTP bare echo tool": partial(HttpCaller(echo.address).call, "echo", text="x"),
        }
        times: dict[str, list[float]] = {name: [] for name in walks}
        for turn in range(WARM_UP + steps):
            for name, action in walks.items():
                took = milliseconds(action)
                if turn >= WARM_UP:
                    times[name].append(took)
        for name, taken in times.items():
            print(f"{name:32} p50 {percentile(taken, 0.5):8.2f} ms   p99 {percentile(taken, 0.99):8.2f} ms")
        above = percentile(times["HTTP advance"], 0.5) - percentile(times["stdio advance"], 0.5)
        print(f"{'HTTP above stdio, p50':32} {above:12.2f} ms")
        many(served.address, clients)
        print(f"{'resident memory, idle / after':32} {idle:.0f} / {served.resident_megabytes():.0f} MB")
    finally:
        stdio.close()
        served.stop()
        echo.stop()


def many(address: str, clients: int, each: int = 20) -> None:
    """Let many clients advance at once and print the throughput."""
    taken: list[float] = []

    def one() -> None:
        walk = Walk(HttpCaller(address).call)
        taken.extend([milliseconds(walk.advance) for _ in range(each)])

    threads = [Thread(target=one) for _ in range(clients)]
    began = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = perf_counter() - began
    name = f"{clients} clients, {each} advances each"
    print(
        f"{name:32} p50 {percentile(taken, 0.5):8.2f} ms   p99 {percentile(taken, 0.99):8.2f} ms", end="   "
    )
    print(f"{len(taken) / seconds:.0f} advances/s")


def serve_echo() -> None:
    """Serve a tool that returns its argument, with nothing but the SDK, Starlette and uvicorn."""
    import mcp_types as types
    import uvicorn
    from mcp.server.lowlevel import Server as SdkServer

    from interlock.transport.http.server import listening

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

    async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = str((params.arguments or {}).get("text"))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server = SdkServer(
        "echo", on_list_tools=listed, on_call_tool=called, get_tool_input_schema=lambda _: None
    )
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    listener = listening("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None, loop="uvloop", http="httptools")).run([listener])


if __name__ == "__main__":
    main()
