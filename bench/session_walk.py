"""An agent that walks through the session surface over real stdio, and the times of its calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.server import Server
from bench.timing import milliseconds, percentile
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from interlock.core.definition.workflow import Activity, Workflow

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus" / "activities"

SESSIONS = 300


class Agent:
    """An agent of the session surface that passes its newest token on."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.token = ""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if self.token and "checkpoint_handle" not in arguments:
            arguments = {"session_token": self.token, **arguments}
        result = self.server.call(tool, **arguments)
        self.token = result.get("_meta", {}).get("session_token", self.token)
        return result


def figures(folder: Path) -> Iterator[Figure]:
    """Yield the times of the calls that every session makes."""
    workflow, _ = load_workflow("work-package", None)
    server = Server(folder, "--surface", "session", "--min-response-seconds", "0")
    for tool, times in times_of_calls(Agent(server), workflow).items():
        most = 0.7 if tool.startswith("get_") else None
        yield Figure(f"{tool} on the session surface, p50", percentile(times, 0.5), most=most)
    server.close()


def load_workflow(name: str, folder: Path | None) -> tuple[Workflow, int]:
    """Return the workflow and the size of its folder."""
    sources = [BUNDLED, *([Source("configured", folder)] if folder else [])]
    loaded = Library(sources).load(name)
    assert isinstance(loaded, Loaded), loaded
    files = [path for path in (loaded.source.root / name).rglob("*") if path.is_file()]
    return loaded.workflow, sum(path.stat().st_size for path in files)


def enter(
    agent: Agent,
    target: str,
    workflow: Workflow,
    visits: Counter[str],
    manifest: Sequence[dict[str, Any]] = (),
) -> str:
    variables: dict[str, Any] = {}
    while True:
        result = agent.call("next_activity", activity_id=target, step_manifest=manifest, variables=variables)
        if not result.get("isError"):
            text: str = result["content"][0]["text"]
            return text
        target = (
            supply_what_is_missing(agent, result["structuredContent"], variables, workflow, visits) or target
        )


def supply_what_is_missing(
    agent: Agent,
    refusal: dict[str, Any],
    variables: dict[str, Any],
    workflow: Workflow,
    visits: Counter[str],
) -> str | None:
    """Supply what the refusal names; return where an answer leads, if it leads elsewhere."""
    if refusal["code"] == "INPUT_REQUIRED":
        variables.update({name: ["one"] for name in refusal["variables"]})
        return None
    gate = refusal["checkpoint"]
    visits[gate] += 1
    agent.call("yield_checkpoint", checkpoint_id=gate)
    options = options_of(workflow.activities, gate)
    result = agent.call("respond_checkpoint", option_id=options[(visits[gate] - 1) % len(options)])
    agent.call("resume_checkpoint")
    target = json.loads(result["content"][0]["text"]).get("effect", {}).get("transitionTo")
    return target if isinstance(target, str) else None


def options_of(activities: Sequence[Activity], gate_id: str) -> list[str]:
    gates = (activity.gate(gate_id) for activity in activities)
    gate = next((gate for gate in gates if gate is not None), None)
    return [option.id for option in gate.options] if gate else ["proceed"]


def times_of_calls(agent: Agent, workflow: Workflow) -> dict[str, list[float]]:
    """Time the calls that every session makes, in many sessions."""
    first = workflow.activity(workflow.initial) or workflow.activities[0]
    step = next(step for step in first.steps() if step.skill)
    calls: dict[str, dict[str, Any]] = {
        "next_activity": {"activity_id": first.id},
        "get_activity": {},
        "get_skill": {"step_id": step.id},
        "get_workflow": {},
    }
    times: dict[str, list[float]] = {tool: [] for tool in calls}
    for _ in range(SESSIONS):
        agent.token = ""
        agent.call("start_session", agent_id="agent", workflow_id=workflow.id)
        for tool, arguments in calls.items():
            times[tool].append(milliseconds(partial(agent.call, tool, **arguments)))
    return times
