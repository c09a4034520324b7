"""Agents that read only the text walk every workflow to its end, also if they lose their memory (rule 41)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import BUNDLED, Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.commands import Terms
from interlock.core.run.preferences import DecisionPolicy
from support.corpus import needs_corpus
from support.harness import Bench, compile_cache, gate, steps, workflow
from support.paths import CORPUS
from support.persons import Person
from support.text_agents import AGENTS

DECIDING: tuple[DecisionPolicy, ...] = ("agent", "auto", "client", "user")
FOLDERS = [CORPUS / name for name in ("activities", "steps", "steps-v1")]


def mounted(folder: Path) -> Source:
    """Return a folder of others, whose reserved ids get a namespace of ours."""
    return Source("configured", folder, "mounted")


def cases() -> Iterator[Any]:
    """Yield every bundled workflow, and every one of the corpus or one skipped case per folder of it."""
    for entry in Library([BUNDLED], compile_cache()).listing().entries:
        yield pytest.param(None, entry.id, id=entry.id)
    for folder in FOLDERS:
        if not folder.is_dir():
            yield pytest.param(folder, "", id=folder.name, marks=needs_corpus)
            continue
        for entry in Library([mounted(folder)], compile_cache()).listing().entries:
            yield pytest.param(folder, entry.id, id=f"{folder.name}-{entry.id}")


def walk_twice(
    bench: Bench,
    surface: str,
    workflow_id: str,
    folder: Path | None = None,
    decisions: DecisionPolicy = "agent",
) -> list[str]:
    """Walk a workflow with an agent that remembers, then with one that finds its own work by its goal.

    Return the questions that a person was asked, none of which has a hole.
    """
    ledger = bench.ledger(terms=Terms(decisions, min_response_ms=0))
    ledger.library = Library([BUNDLED, *([mounted(folder)] if folder else [])], compile_cache())
    agent, tools = AGENTS[surface]
    person = None
    if decisions != "agent":
        person = Person(ledger, reads_inbox=decisions in ("client", "user"))
    agent(tools(ledger), workflow_id, "walrus", person=person).walk()
    agent(tools(ledger), workflow_id, "pelican", forgetful=True, person=person).walk()
    return person.asked if person is not None else []


@pytest.mark.parametrize("surface", AGENTS)
@pytest.mark.parametrize("workflow_id", ["wr.small_task", "wr.release", "work-packages"])
def test_an_agent_that_reads_only_the_text_finishes(bench: Bench, workflow_id: str, surface: str) -> None:
    walk_twice(bench, surface, workflow_id)


@pytest.mark.parametrize("decisions", DECIDING)
@pytest.mark.parametrize("surface", AGENTS)
def test_a_person_is_asked_in_whole_questions(bench: Bench, surface: str, decisions: DecisionPolicy) -> None:
    asked = walk_twice(bench, surface, "wr.bug_investigation", None, decisions)
    assert bool(asked) == (decisions != "agent")


LEVELS = {"id": "quality", "dimensions": [{"id": "depth", "levels": ["high", "low"]}]}
IMPROVE = {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Improve."}}
CLOSED = {"type": "object", "additionalProperties": False, "required": ["ok"], "properties": {"ok": {}}}
SCORED = {
    "type": "object",
    "required": ["score", "tags"],
    "properties": {"score": {"type": "integer", "maximum": 0}, "tags": {"$ref": "#/$defs/tags"}},
    "$defs": {"tags": {"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}}},
}


def of_others() -> dict[str, dict[str, Any]]:
    """Return small workflows that leave to us what an agent must be told."""
    ask = {"reason": "needs_user_approval", "question": "Deploy?"}
    inner = {"id": "inner", "type": "loop", "title": "Inner", "body": steps("work")}
    inner["loop"] = {"type": "for", "count": 2, "maxIterations": 3}
    return {
        "a schema without an example": workflow(*steps("report", output={"schema": SCORED})),
        "a schema that leaves out the kind": workflow(*steps("report", output={"schema": CLOSED})),
        "a level that holds the run": workflow(
            *steps("judge", assessmentRefs=["quality"], assessmentConsequences=[IMPROVE]),
            assessments=[LEVELS],
        ),
        "an approval without a key": workflow(*steps("look"), *steps("ship", userInput=[ask])),
        "a loop after an optional step": workflow(*steps("look", required=False), inner),
        "a question of the second round": workflow(
            {**inner, "body": steps("work", requireConfirmation={"var": "currentIteration", "gte": 2})},
        ),
        "a gate of the second round": workflow(
            {
                **inner,
                "body": [
                    *steps("work"),
                    gate("fits", "yes", condition={"var": "currentIteration", "gte": 2}),
                ],
            },
        ),
    }


@pytest.mark.parametrize("surface", AGENTS)
@pytest.mark.parametrize("written", of_others().values(), ids=of_others())
def test_an_agent_is_told_all_that_it_must_send(bench: Bench, surface: str, written: dict[str, Any]) -> None:
    """Rule 31: every example passes as it stands, also where the author gave none."""
    bench.write(written)
    walk_twice(bench, surface, "test.flow", bench.workflows)


@pytest.mark.slow
@pytest.mark.parametrize("decisions", DECIDING)
@pytest.mark.parametrize("surface", AGENTS)
@pytest.mark.parametrize(("folder", "workflow_id"), list(cases()))
def test_every_workflow_is_finished_by_its_text(
    bench: Bench, folder: Path | None, workflow_id: str, surface: str, decisions: DecisionPolicy
) -> None:
    """Whoever decides: the agent reports, a person fills in forms, or a person answers in the inbox."""
    walk_twice(bench, surface, workflow_id, folder, decisions)
