"""An answer of execution or navigation is enough for an agent that has lost what came before (rule 17a)."""

from __future__ import annotations

import pytest

from interlock.surfaces.navigation import NavigationSurface
from support.harness import Bench, steps, workflow
from support.navigation_client import NavigationClient

PROMPT = "Run every check of the project from a clean state, and write down each failure by its name."
ROUNDS = workflow(
    {
        "id": "rounds",
        "type": "loop",
        "title": "Rounds",
        "loop": {"type": "for", "count": 3, "maxIterations": 3},
        "body": [*steps("check", prompt=PROMPT)],
    },
    *steps("end"),
)


@pytest.fixture
def client(bench: Bench) -> NavigationClient:
    bench.write(ROUNDS)
    client = NavigationClient(NavigationSurface(bench.ledger()))
    client.start("test.flow")
    return client


def test_every_round_has_its_instructions(bench: Bench, client: NavigationClient) -> None:
    agent = bench.agent()
    agent.start("test.flow", goal="walrus")
    for _ in range(3):
        assert PROMPT in agent.text
        agent.ack("Checked.")
    for _ in range(3):
        (offer,) = client.act("advance_loop", loop_id="rounds")["availableActions"]["required"]
        assert offer["description"] == PROMPT
        client.done("check")


def test_every_answer_has_the_whole_menu(client: NavigationClient) -> None:
    answers = [client.act("advance_loop", loop_id="rounds"), client.done("check"), client.situation()]
    offered = [[offer["action"] for offer in it["availableActions"]["optional"]] for it in answers]
    assert offered == [["abandon"]] * 3
    assert [len(it["availableActions"]["blocked"]) for it in answers] == [1, 2, 2]
