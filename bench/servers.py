"""What a server holds: calls while its database hangs, strangers with large bodies, searches under writes.

    python -m bench.servers [--seconds 15] [--large 100000]

Needs PostgreSQL. The searches alone: `python -m bench.search_load`.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench import search_load
from bench.execution_walk import write_workflow
from bench.figures import HEAD, Figure, show
from bench.timing import milliseconds
from interlock.ledger.tokens.access_tokens import AccessTokens
from support.fault_proxy import fault_proxy
from support.http_server import HttpServer, ModernCaller, UnexpectedStatus, serving
from support.postgres_server import PostgresServer

DEADLINE = 4  # seconds: what `interlock serve` has unless it is told otherwise
CALLERS = 40
STRANGERS = 60
BODY = 7 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="how long each store is searched")
    parser.add_argument(
        "--large", type=int, default=100_000, help="sessions of the large SQLite store; 0: none"
    )
    options = parser.parse_args()
    print(HEAD)
    with TemporaryDirectory() as name:
        folder = Path(name)
        show(hung_database(folder / "hung"))
        show(strangers(folder / "strangers"))
        show(search_load.all_figures(folder, 1000, options.large, options.seconds))


def hung_database(folder: Path) -> Iterator[Figure]:
    """Yield the longest call of many while nothing arrives from the database."""
    write_workflow(made(folder) / "workflows")
    postgres = PostgresServer(fsync="off")
    try:
        postgres.start()
        with fault_proxy("127.0.0.1", postgres.port) as network:
            store = postgres.url.replace(f":{postgres.port}/", f":{network.port}/")
            flags = ("--store", store, "--workflows", str(folder / "workflows"), "--quiet")
            with serving(folder, *flags) as server:
                calls: list[Callable[[], object]] = [
                    partial(call, server, "start_workflow", workflowId="bench.long")
                ] * CALLERS
                calls += [partial(call, server, "resume_session", query="words")] * CALLERS
                calls += [
                    partial(server.request, "GET", path) for path in ("/readyz", "/healthz", "/metrics")
                ]
                call(server, "start_workflow", workflowId="bench.long")
                network.stall()
                with ThreadPoolExecutor(len(calls)) as pool:
                    taken = list(pool.map(milliseconds, calls))
                tools = milliseconds(partial(call, server, "list_workflows"))
                network.mend()
    finally:
        postgres.remove()
    name = f"any of {len(calls)} calls while the database hangs, longest"
    yield Figure(name, max(taken), most=(DEADLINE + 1) * 1000)
    yield Figure("a tool that needs no store, meanwhile", tools)


def call(server: HttpServer, tool: str, **arguments: str) -> None:
    """Call a tool on a connection of its own, however it ends."""
    caller = ModernCaller(f"{server.host}:{server.port}")
    with suppress(UnexpectedStatus):
        caller.call(tool, **arguments)
    caller.close()


def strangers(folder: Path) -> Iterator[Figure]:
    """Yield how much memory strangers cost who send large bodies, all connections open."""
    AccessTokens(made(folder)).add("ada", "user", 1)
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {BODY}\r\n\r\n".encode()
    with serving(folder, "--quiet", "--rate-limit", "1000") as server, ExitStack() as connections:
        server.request("GET", "/readyz")
        before = server.resident_megabytes()
        for _ in range(STRANGERS):
            stranger = connections.enter_context(socket.create_connection((server.host, server.port), 2))
            with suppress(OSError):  # it is answered, and not read to the end
                stranger.sendall(head + bytes(BODY))
        grown = server.resident_megabytes() - before
    yield Figure(f"memory for {STRANGERS} strangers with bodies of 7 MB", grown, "MB", most=10)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
