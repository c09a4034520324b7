"""An agent that hands in nothing, sets nothing, or sends examples as they stand never ends a run as complete.

It is blocked or asked, or the end says that there are gaps (rules 20 and 31).
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.core.run.commands import Terms
from interlock.store.protocol import SessionFilter
from support.harness import Bench, compile_cache
from support.text_agents import AGENTS, TextAgent

MOST_CALLS = 60
LIBRARY = Library([BUNDLED], compile_cache())
NOTES_ONLY = ("meta", "wr.routine-")  # what they want is not what these agents lack
WORKFLOWS = [entry.id for entry in LIBRARY.listing().entries if not entry.id.startswith(NOTES_ONLY)]
WITHHELD = {
    "no output": ("output", "step_manifest"),
    "no variables": ("context", "variables"),
    "nothing": ("output", "step_manifest", "context", "variables"),
    "examples": (),
}


def careless(kind: str, agent: type[TextAgent]) -> Any:
    """Return an agent that leaves something out of every call but the first, and goes on while it can."""

    class Careless(agent):  # type: ignore[misc, valid-type]
        def call(self, tool: str, **arguments: Any) -> str:
            left_out = WITHHELD[kind] if self.calls else ()
            is_answer = "checkpointId" in str(arguments.get("output"))
            kept = {
                name: value
                for name, value in arguments.items()
                if name not in left_out or (is_answer and name == "output")
            }
            return str(super().call(tool, **kept))

        def filled(self, value: Any, where: str) -> Any:
            return value if kind == "examples" else super().filled(value, where)

        def offered(self, examples: list[Any]) -> list[Any]:
            return examples

        def go_as_far_as_it_can(self) -> None:
            text = self.begin()
            while self.calls < MOST_CALLS and not self.has_ended(text):
                try:
                    text = self.go_on(text)
                except (AssertionError, KeyError, StopIteration):
                    return

    return Careless


def walk_carelessly(bench: Bench, surface: str, kind: str, workflow_id: str) -> None:
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = LIBRARY
    agent, tools = AGENTS[surface]
    careless(kind, agent)(tools(ledger), workflow_id, "pelican").go_as_far_as_it_can()
    with ledger.store.reading() as reader:
        assert not [*reader.sessions(SessionFilter(status="complete"))], workflow_id


@pytest.mark.parametrize("kind", WITHHELD)
@pytest.mark.parametrize("surface", AGENTS)
def test_a_careless_agent_never_ends_a_run_as_complete(bench: Bench, surface: str, kind: str) -> None:
    for workflow_id in ("wr.small_task", "work-package"):
        walk_carelessly(bench, surface, kind, workflow_id)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITHHELD)
@pytest.mark.parametrize("surface", AGENTS)
def test_no_bundled_workflow_is_completed_by_a_careless_agent(bench: Bench, surface: str, kind: str) -> None:
    for workflow_id in WORKFLOWS:
        walk_carelessly(bench, surface, kind, workflow_id)
