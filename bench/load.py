"""Many clients at once: one server on SQLite, then three replicas behind nginx on PostgreSQL.

    python -m bench.load [--clients 200] [--kills 6] [--crashes 2]

Each client walks a run of 20 steps and one gate, which an approver decides at another replica; then again
while replicas are killed and PostgreSQL crashes. Beside it, a bare echo tool on the same stack with as many
clients, and one client over stdio. At the end every run is compared with the log. Needs PostgreSQL and nginx.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.execution_walk import write_workflow
from bench.http import HttpCaller, HttpProcess, Walk
from bench.server import Server
from bench.timing import milliseconds, percentile
from support.postgres_server import PostgresServer
from support.replicas import STEPS, Replicas, Walker, behind_nginx, keep_deciding

EACH = len(STEPS)
REPLICAS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--crashes", type=int, default=2)
    options = parser.parse_args()
    with TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        measure_stdio(folder)
        measure_echo(options.clients)
        alone = Replicas(made(folder / "alone"), f"sqlite:///{folder}/alone/interlock.db", 1)
        running.callback(alone.close)
        measure("one server, SQLite", alone, alone.next_address, options.clients)
        postgres = PostgresServer()
        running.callback(postgres.remove)
        postgres.start()
        replicas = Replicas(made(folder / "replicas"), postgres.url, REPLICAS)
        running.callback(replicas.close)
        address = running.enter_context(behind_nginx(made(folder / "nginx"), replicas.servers))
        measure("3 replicas, nginx, PostgreSQL", replicas, lambda: address, options.clients)

        def break_things(over: Event) -> None:
            for turn in range(max(options.kills, options.crashes)):
                if over.wait(1):
                    break
                if turn < options.kills:
                    replicas.kill(turn % REPLICAS)
                if turn < options.crashes:
                    postgres.stop("immediate")
                    postgres.start()
                if turn < options.kills:
                    replicas.revive(turn % REPLICAS)

        broken = f"the same, {options.kills} kills, {options.crashes} crashes"
        measure(broken, replicas, lambda: address, options.clients, break_things)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def measure_stdio(folder: Path) -> None:
    """Advance over stdio with one client."""
    write_workflow(folder / "workflows")
    stdio = Server(folder, "--workflows", str(folder / "workflows"))
    try:
        walk = Walk(lambda tool, **more: stdio.call(tool, **more)["structuredContent"])
        began = perf_counter()
        taken = [milliseconds(walk.advance) for _ in range(EACH * 10)]
        show("stdio, 1 client", taken, perf_counter() - began)
    finally:
        stdio.close()


def measure_echo(clients: int) -> None:
    """Call a tool that does nothing, with one client and with many."""
    echo = HttpProcess("bench.http", "--echo")

    def calls(_: int) -> list[float]:
        caller = HttpCaller(echo.address)
        return [milliseconds(lambda: caller.call("echo", text="x")) for _ in range(EACH)]

    try:
        calls(0)
        for count in (1, clients):
            with ThreadPoolExecutor(count) as pool:
                began = perf_counter()
                taken = [each for part in pool.map(calls, range(count)) for each in part]
            show(f"bare echo tool, {count} clients", taken, perf_counter() - began)
    finally:
        echo.stop()


def measure(
    name: str,
    replicas: Replicas,
    address: Callable[[], str],
    clients: int,
    break_things: Callable[[Event], None] | None = None,
) -> None:
    """Let clients walk at once, and compare what was acknowledged with the log."""
    over = Event()
    walkers = [Walker(address, replicas.agent, f"{name}-{number}") for number in range(clients)]
    with ThreadPoolExecutor(clients + 2) as pool:
        began = perf_counter()
        deciding = pool.submit(keep_deciding, replicas.next_address, replicas.approver, over)
        breaking = pool.submit(break_things, over) if break_things else None
        try:
            for walk in [pool.submit(walker.walk) for walker in walkers]:
                walk.result()
            seconds = perf_counter() - began
        finally:
            over.set()
            deciding.result()
            if breaking is not None:
                breaking.result()
    show(f"{name}, {clients} clients", [each for walker in walkers for each in walker.taken], seconds)
    repeated = sum((walker.repeated for walker in walkers), Counter[str]())
    recorded = replicas.completed_steps()
    lost = doubled = 0
    for walker in walkers:
        counts = Counter(recorded[walker.session])
        lost += sum(counts[step] == 0 for step in walker.done if step != "which")
        doubled += sum(count - 1 for count in counts.values())
    acknowledged = sum(len(walker.done) for walker in walkers)
    again = ", ".join(f"{reason} {count}" for reason, count in sorted(repeated.items())) or "none"
    print(
        f"    acknowledged {acknowledged}, lost {lost}, doubled {doubled}; repeated calls: {again}",
        flush=True,
    )


def show(name: str, taken: list[float], seconds: float) -> None:
    figures = f"p50 {percentile(taken, 0.5):8.2f} ms   p99 {percentile(taken, 0.99):8.2f} ms"
    print(f"{name:58} {figures} {len(taken) / seconds:8.0f}/s", flush=True)


if __name__ == "__main__":
    main()
