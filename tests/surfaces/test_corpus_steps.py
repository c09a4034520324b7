"""Real step workflows by other people: all valid ones walk to completion, the invalid one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock.authoring.library import Library
from interlock.authoring.sources.sources import Source
from interlock.core.run.preferences import Mode
from interlock.surfaces.execution import ExecutionSurface
from support.harness import Agent, Bench, decision, filled

pytestmark = pytest.mark.slow
FOLDERS = ("steps", "steps-v1")
MOST_CALLS = 2000


def mounted(bench: Bench, corpus: Path, mode: Mode) -> Agent:
    ledger = bench.ledger(mode)
    ledger.library = Library(
        [Source("configured", corpus / name, name) for name in FOLDERS], bench.folder / "c"
    )
    return Agent(ExecutionSurface(ledger))


def obedient(agent: Agent, workflow_id: str) -> int:
    """Walk as an agent that does what the server says: reports decisions, sends examples, heeds hints."""
    agent.start(workflow_id, goal="walk")
    for calls in range(MOST_CALLS):
        assert "code" not in agent.last, agent.last
        if agent.last["isComplete"]:
            return calls
        artifacts, context = replies(agent.last)
        notes = "did what it said, because of requirements; tests; edge cases " * 4
        agent.ack(f"{notes} {hints_of(agent.last)}", artifacts=artifacts, **context)
    raise AssertionError(f"{workflow_id} did not end within {MOST_CALLS} calls")


def hints_of(answer: dict[str, Any]) -> str:
    return " ".join(blocker.get("suggestedFix", "") for blocker in answer.get("blockers", []))


def replies(answer: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    artifacts, context = [], {}
    for blocker in answer.get("blockers", []):
        example = blocker.get("example")
        if blocker["pointer"]["kind"] == "context_key":
            context.update(
                {key: ["one", "two"] if isinstance(value, list) else 1 for key, value in example.items()}
            )
        elif example is not None:
            artifacts.append(filled(example))
    asked = answer["pending"].get("decision")
    if asked:
        artifacts = [decision(asked["checkpointId"], asked["options"][0]["id"])]
    return artifacts, context


@pytest.mark.parametrize("mode", ["guided", "stop", "never-stop"])
def test_every_valid_file_walks_to_completion(bench: Bench, corpus: Path, mode: Mode) -> None:
    agent = mounted(bench, corpus, mode)
    listed = agent.call("list_workflows")["workflows"]
    assert len(listed) >= 22
    for entry in listed:
        if entry["workflowId"] == "steps-v1.simple-auth-implementation" and mode != "never-stop":
            continue  # its criteria ask for words that only a real answer has: see below
        if entry["workflowId"] == "steps-v1.adaptive-development-workflow" and mode != "never-stop":
            continue
        obedient(agent, entry["workflowId"])


def test_the_invalid_file_is_refused_with_its_location_and_reason(bench: Bench, corpus: Path) -> None:
    warnings = mounted(bench, corpus, "guided").call("list_workflows")["warnings"]
    about_it = [warning for warning in warnings if warning["file"].endswith("invalid-workflow.json")]
    assert about_it
    assert all(warning["line"] >= 1 and warning["message"] for warning in about_it)


def test_criteria_in_words_are_satisfied_by_what_the_blockers_say(bench: Bench, corpus: Path) -> None:
    agent = mounted(bench, corpus, "guided")
    for workflow_id in ("steps-v1.simple-auth-implementation", "steps-v1.adaptive-development-workflow"):
        agent.start(workflow_id)
        notes = "an answer"
        for _ in range(200):
            if agent.last["isComplete"]:
                break
            words = "jwt Authorization 401 POST /login email password valid credentials protected route "
            words += (
                "invalid tokens test requirements edge cases unit test describe coverage pattern optimization"
            )
            artifacts, context = replies(agent.last)
            agent.ack(f"{notes} {hints_of(agent.last)} {words}", artifacts=artifacts, **context)
        assert agent.last["isComplete"], agent.last
