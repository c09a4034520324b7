"""An agent at work on a store, and the console of its user, without a server between them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock.console.console import Console
from interlock.core.principals import LOCAL, Principal
from support.harness import Agent, Bench, gate, steps, workflow

RELEASE = workflow(
    *steps("first"),
    gate(
        "ship",
        {"id": "yes", "label": "Yes", "description": "It goes out", "effect": {"setVariable": {"out": True}}},
        "no",
    ),
    *steps("last"),
)


class Desk:
    """An agent at work, and the console of its user."""

    def __init__(self, bench: Bench) -> None:
        bench.write(RELEASE)
        self.agent: Agent = bench.agent()
        self.clock = bench.clock
        self.console = Console(bench.ledger(), "1.0.0")

    def shows(self, path: str, principal: Principal = LOCAL, **query: str) -> Any:
        answer = self.console.page(principal, path, query)
        return msgspec.json.decode(answer.body)

    def opened(self, line: Any) -> Any:
        """Return the question of a line, with all that belongs to it."""
        return self.shows(f"inbox/{line['question']['sessionId']}", place=line["place"])

    def act(self, name: str, request: dict[str, Any], principal: Principal = LOCAL) -> tuple[int, Any]:
        answer = self.console.act(principal, name, msgspec.json.encode(request))
        return answer.status, msgspec.json.decode(answer.body)

    def to_the_gate(self) -> Any:
        """Work up to the gate; return its question in the inbox."""
        self.agent.start("test.flow", goal="Ship it")
        self.clock.pass_seconds(60)
        self.agent.ack("Built it.", artifacts=[{"kind": "build", "files": 3}])
        return self.shows("inbox")["questions"][0]

    @property
    def ref(self) -> str:
        ref: str = self.shows("runs")["lines"][0]["ref"]
        return ref


@pytest.fixture
def desk(bench: Bench) -> Desk:
    return Desk(bench)
