"""Measure a walk through the session surface: its bytes beside the size of the source, and its time.

    python -m bench.session_walk [--workflows FOLDER --workflow ID]

Drives the real server over stdio. Prints the bytes of one whole walk, every skill loaded once, and the p50
of the calls that a session makes most often.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.server import Server
from bench.timing import milliseconds, percentile
from interlock.authoring.library import BUNDLED, Library, Loaded
from interlock.authoring.sources.sources import Source
from interlock.core.definition.workflow import Activity, Workflow

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus" / "activities"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workflow", help="default: work-packages of the corpus, else the bundled work-package"
    )
    parser.add_argument("--workflows", type=Path, default=CORPUS if CORPUS.is_dir() else None)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    name = options.workflow or ("work-packages" if options.workflows else "work-package")
    workflow, source_bytes = load_workflow(name, options.workflows)
    arguments = ["--surface", "session", "--min-response-seconds", "0"]
    if options.workflows:
        arguments += ["--workflows", str(options.workflows)]
    with TemporaryDirectory() as folder:
        server = Server(Path(folder), *arguments)
        walk(Agent(server), workflow)
        sent, received = server.bytes_sent, server.bytes_received
        print(f"walk of {name}: {server.requests} calls, {sent:,} bytes sent, {received:,} received")
        print(f"source folder: {source_bytes:,} bytes; received / source {received / source_bytes:.2f}")
        for tool, times in times_of_calls(Agent(server), workflow, options.count).items():
            print(f"{tool:14} p50 {percentile(times, 0.5):6.2f} ms")
        server.close()


def load_workflow(name: str, folder: Path | None) -> tuple[Workflow, int]:
    """Return the workflow and the size of its folder."""
    sources = [BUNDLED, *([Source("configured", folder)] if folder else [])]
    loaded = Library(sources).load(name)
    assert isinstance(loaded, Loaded), loaded
    files = [path for path in (loaded.source.root / name).rglob("*") if path.is_file()]
    return loaded.workflow, sum(path.stat().st_size for path in files)


def walk(agent: Agent, workflow: Workflow) -> None:
    """Walk from the first activity to the end; what the agent has already read is not sent again."""
    agent.call("discover")
    agent.call("start_session", agent_id="agent", workflow_id=workflow.id)
    agent.call("get_workflow")
    target: str = workflow.initial or workflow.activities[0].id
    visits: Counter[str] = Counter()
    digests: dict[str, str] = {}
    while True:
        entered = json.loads(enter(agent, target, workflow, visits))
        if entered.get("status") == "completed":
            return
        target = visit(agent, workflow, entered["activity_id"], visits, digests)


def visit(
    agent: Agent, workflow: Workflow, activity_id: str, visits: Counter[str], digests: dict[str, str]
) -> str:
    """Read the activity and the skills not read yet; return the next activity."""
    known = {"known": digests[activity_id]} if activity_id in digests else {}
    text: str = agent.call("get_activity", **known)["content"][0]["text"]
    digests[activity_id] = text.partition("digest: ")[2].partition("\n")[0]
    activity = workflow.activity(activity_id)
    assert activity is not None
    visits[activity_id] += 1
    for step in activity.steps():
        if step.skill and step.skill not in digests:
            digests[step.skill] = ""
            agent.call("get_skill", step_id=step.id)
    exits = text.partition("exits: ")[2].partition("\n")[0].split("; ")
    return exits[(visits[activity_id] - 1) % len(exits)].split(" ")[0]


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


def times_of_calls(agent: Agent, workflow: Workflow, count: int) -> dict[str, list[float]]:
    """Time the calls that every session makes, in many sessions."""
    first = workflow.initial or workflow.activities[0].id
    calls: dict[str, dict[str, Any]] = {
        "next_activity": {"activity_id": first},
        "get_activity": {},
        "get_workflow": {},
    }
    times: dict[str, list[float]] = {tool: [] for tool in calls}
    for _ in range(count):
        agent.token = ""
        agent.call("start_session", agent_id="agent", workflow_id=workflow.id)
        for tool, arguments in calls.items():
            times[tool].append(milliseconds(partial(agent.call, tool, **arguments)))
    return times


if __name__ == "__main__":
    main()
