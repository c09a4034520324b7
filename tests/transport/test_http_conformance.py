"""The official conformance suite against the real server. Scenarios that call the suite's tools cannot pass.

Every scenario that needs no such fixture is listed here, for each version of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.http_server import HttpServer, serving
from support.node_clients import NodeClients, node

__all__ = ["node"]

pytestmark = pytest.mark.slow

BOTH = {
    "completion-complete",
    "dns-rebinding-protection",
    "prompts-list",
    "resources-list",
    "server-sse-multiple-streams",
    "tools-call-error",
    "tools-list",
}
HANDSHAKE = BOTH | {"ping", "server-initialize", "server-session-lifecycle"}
MODERN = BOTH | {
    "caching",
    "http-header-validation",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "sep-2164-resource-not-found",
}
OLDER = HANDSHAKE - {"server-session-lifecycle"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("conforming"), "--quiet") as running:
        yield running


@pytest.mark.parametrize(
    ("package", "arguments", "expected"),
    [
        ("@modelcontextprotocol/conformance", (), OLDER),
        ("conformance-next", ("--spec-version", "2025-11-25"), HANDSHAKE),
        ("conformance-next", ("--spec-version", "2026-07-28"), MODERN),
    ],
    ids=["0.1", "handshake", "modern"],
)
def test_every_scenario_that_needs_no_fixture_passes(
    server: HttpServer, node: NodeClients, package: str, arguments: tuple[str, ...], expected: set[str]
) -> None:
    results = node.conformance(package, f"{server.url}/mcp", *arguments)
    assert {name for name in expected if not results.get(name)} == set()
