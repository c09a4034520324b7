"""The official conformance suite: whole, with its own fixtures on our application, and on the surfaces.

`docs/conformance.md` lists every scenario with what a surface makes of it; this is where that is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlock.surfaces.registry import SURFACES
from support.http_server import HttpServer, require_serve, serving
from support.node_clients import Checks, NodeClients, Scenarios, node
from support.paths import FIXTURES, ROOT

__all__ = ["node"]

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "conformance.md"
OLD, NEW = "@modelcontextprotocol/conformance", "conformance-next"
RUNS: dict[str, tuple[str, ...]] = {
    "0.1.16": (OLD,),
    "2025-11-25": (NEW, "--spec-version", "2025-11-25"),
    "2026-07-28": (NEW, "--spec-version", "2026-07-28"),
}
CHECKS = {"0.1.16": 44, "2025-11-25": 84, "2026-07-28": 152}
NEEDS_FIXTURE = {  # of server-stateless, whose other checks pass
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
TRIES = 4


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the suite's fixtures on our application."""
    require_serve()
    folder = tmp_path_factory.mktemp("fixtures")
    command = [sys.executable, "-W", "ignore", str(FIXTURES / "conformance_server.py"), str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        yield process.stderr.readline().decode().split()[-1]
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("conforming"), "--quiet") as running:
        yield running


@pytest.mark.parametrize("run", RUNS)
def test_every_check_passes_with_the_suites_own_fixtures(fixtures: str, node: NodeClients, run: str) -> None:
    may_warn = (
        ["server-sse-polling"] if run == "0.1.16" else []
    )  # it asks in version 2025-03-26, which has no such event

    def is_good(scenario: str, checks: Checks) -> bool:
        return not failed(checks) and (scenario in may_warn or "WARNING" not in dict(checks).values())

    scenarios = tried(node, fixtures, run, is_good)
    assert [name for name, checks in scenarios.items() if not is_good(name, checks)] == []
    passed = [check for checks in scenarios.values() for check, status in checks if status == "SUCCESS"]
    assert len(passed) == CHECKS[run]


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_passes_what_the_page_says(server: HttpServer, node: NodeClients, surface: str) -> None:
    url = f"{server.url}/mcp/{surface}"

    def results(run: str) -> tuple[dict[str, bool], dict[str, bool]]:
        expected = documented(run, surface)

        def as_said(scenario: str, checks: Checks) -> bool:
            return not expected.get(scenario) or failed(checks) <= NEEDS_FIXTURE

        scenarios = tried(node, url, run, as_said)
        return expected, {name: as_said(name, checks) for name, checks in scenarios.items()}

    with ThreadPoolExecutor() as pool:  # the suites mostly wait
        for expected, held in pool.map(results, RUNS):
            assert held == dict.fromkeys(expected, True)


def tried(node: NodeClients, url: str, run: str, is_good: Callable[[str, Checks], bool]) -> Scenarios:
    """Run the suite, and scenarios that fail again: some give a busy machine only half a second."""
    suite, *arguments = RUNS[run]
    scenarios = node.conformance(suite, url, "--suite", "all", *arguments)
    for _ in range(TRIES):
        for name in [name for name, checks in scenarios.items() if not is_good(name, checks)]:
            scenarios |= node.conformance(suite, url, "--scenario", name, *arguments)
    return scenarios


def failed(checks: Checks) -> set[str]:
    """Return the checks that failed."""
    return {check for check, status in checks if status == "FAILURE"}


def documented(run: str, surface: str) -> dict[str, bool]:
    """Return the scenarios that the page lists for a run, and whether a surface passes each."""
    row = re.compile(r"^\| `([a-z0-9-]+)` \| (.*?) \| (.*?) \| (.*?) \|", re.MULTILINE)
    column = list(RUNS).index(run)
    passes = ["passes"] if surface == "lookup" else ["passes", "passes, not on lookup"]
    cells = {name: results[column] for name, *results in row.findall(PAGE.read_text())}
    return {name: cell in passes for name, cell in cells.items() if cell != "–"}
