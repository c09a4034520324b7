"""An agent that hands in nothing, sets nothing, or sends examples as they stand never ends a run as complete.

It is blocked or asked, or the end says that there are gaps (rules 20 and 31). A run in which no step declares
what such an agent lacks is the one exception: on session and gated, undeclared notes are only warned about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.core.definition.program import Plan
from interlock.core.definition.workflow import Step
from interlock.core.run import events as e
from interlock.core.run.commands import Terms
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.chain import entries_of
from interlock.ledger.log.health import trusted
from interlock.ledger.log.repair import plans_of
from interlock.ledger.runs.pinned_workflows import Pins
from interlock.store.protocol import SessionFilter
from support.harness import Bench, compile_cache
from support.text_agents import AGENTS, TextAgent

MOST_CALLS = 60
LIBRARY = Library([BUNDLED], compile_cache())
WORKFLOWS = [entry.id for entry in LIBRARY.listing().entries]
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


def walk_carelessly(bench: Bench, surface: str, kind: str, workflow_id: str) -> Ledger:
    ledger = bench.ledger(terms=Terms(min_response_ms=0))
    ledger.library = LIBRARY
    agent, tools = AGENTS[surface]
    careless(kind, agent)(tools(ledger), workflow_id, "pelican").go_as_far_as_it_can()
    return ledger


def missed_by_complete_runs(ledger: Ledger, kind: str) -> Iterator[str]:
    """Name what complete runs went past: steps that declare what the agent lacks, placeholders as values."""
    with ledger.store.reading() as reader:
        plan_of = plans_of(reader, Pins())
        for session in reader.sessions(SessionFilter(status="complete")):
            entries = [entry for row in trusted(reader, session).commits for entry in entries_of(row)]
            started = [(entry.run, entry.event) for entry in entries]
            hashes = {run: event.workflow_hash for run, event in started if isinstance(event, e.RunStarted)}
            for entry in entries:
                match entry.event:
                    case e.StepCompleted(step=name):
                        plan = plan_of(hashes[entry.run])
                        assert plan is not None
                        if any(declares_what_is_lacking(kind, plan, step) for step in called(plan, name)):
                            yield f"step {name}"
                    case e.ContextSet(delta=delta):
                        yield from (f"{key} = {value}" for key, value in delta.items() if "<" in str(value))
                    case _:
                        continue


def called(plan: Plan, name: str) -> Iterator[Step]:
    return (step for activity in plan.workflow.activities for step in activity.steps() if step.id == name)


def declares_what_is_lacking(kind: str, plan: Plan, step: Step) -> bool:
    """Say whether a step cannot be done with what an agent of this kind sends."""
    withheld = WITHHELD[kind]
    by_example = kind == "examples" and any(contract.required for contract in step.contracts)
    outputs = "output" in withheld and (step.requires_output or bool(step.checks))
    variables = "variables" in withheld and bool(plan.produced(step, plan.scope({})))
    return by_example or outputs or variables


@pytest.mark.parametrize("kind", WITHHELD)
@pytest.mark.parametrize("surface", AGENTS)
def test_a_careless_agent_never_ends_a_run_as_complete(bench: Bench, surface: str, kind: str) -> None:
    for workflow_id in ("wr.small_task", "work-package"):
        with walk_carelessly(bench, surface, kind, workflow_id).store.reading() as reader:
            assert not [*reader.sessions(SessionFilter(status="complete"))], workflow_id


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITHHELD)
@pytest.mark.parametrize("surface", AGENTS)
def test_no_bundled_workflow_is_completed_by_a_careless_agent(bench: Bench, surface: str, kind: str) -> None:
    for workflow_id in WORKFLOWS:
        ledger = walk_carelessly(bench, surface, kind, workflow_id)
        assert not [*missed_by_complete_runs(ledger, kind)], workflow_id
